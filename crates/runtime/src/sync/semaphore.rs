//! Semaphores.

use std::cell::Cell;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use super::{Patience, cancellation};
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::os::system::fail;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait::Wait;

/// glibc's `sem_t`, of which the first word is the value.
#[repr(transparent)]
pub struct Semaphore(Cell<u32>);

impl Semaphore {
    /// The semaphore of a program.
    ///
    /// # Safety
    /// `semaphore` points to an initialised semaphore that stays one for as long as a thread uses it. A program that
    /// calls a semaphore function promises libc the same.
    pub unsafe fn at(semaphore: *mut libc::sem_t) -> &'static Semaphore {
        // SAFETY: the caller's promise. All access is through the `Cell`, on the carrier.
        unsafe { &*semaphore.cast::<Semaphore>() }
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    pub fn value(&self) -> u32 {
        self.0.get()
    }
}

pub fn wait(semaphore: &'static Semaphore, patience: Patience, pc: u64) -> c_int {
    let (address, pc) = (semaphore.address(), users_call(pc));
    let operation = Operation::new(EventKind::SemWait, pc, address).cancellable();
    let timed_out = patience.point(operation, Wait::Semaphore(semaphore));
    cancellation::act_at(EventKind::SemWait, pc, address);
    let entry = Entry::new(EventKind::SemWait, pc, address);
    if timed_out {
        entry.outcome(Outcome::TimedOut).write();
        return fail(libc::ETIMEDOUT);
    }
    let Some(rest) = semaphore.value().checked_sub(1) else {
        entry.outcome(Outcome::Failed).write();
        return fail(libc::EAGAIN);
    };
    semaphore.0.set(rest);
    entry.value(u64::from(rest)).write();
    0
}

pub fn post(semaphore: &Semaphore, pc: u64) -> c_int {
    let (address, pc) = (semaphore.address(), users_call(pc));
    point(Operation::new(EventKind::SemPost, pc, address));
    if semaphore.value() == c_int::MAX as u32 {
        Entry::new(EventKind::SemPost, pc, address).outcome(Outcome::Error).write();
        return fail(libc::EOVERFLOW);
    }
    semaphore.0.set(semaphore.value() + 1);
    Entry::new(EventKind::SemPost, pc, address).value(u64::from(semaphore.value())).write();
    scheduler::released(address);
    0
}
