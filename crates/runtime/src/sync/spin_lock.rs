//! Spin locks. A thread that spins on one waits for it, as with any other lock.

use std::cell::Cell;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use super::Patience;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait::Wait;

/// glibc's `pthread_spinlock_t` on x86: 1 when free.
#[repr(transparent)]
pub struct SpinLock(Cell<c_int>);

impl SpinLock {
    /// The lock of a program.
    ///
    /// # Safety
    /// `lock` points to an initialised spin lock that stays one for as long as a thread uses it. A program that calls a
    /// function for spin locks promises libc the same.
    pub unsafe fn at(lock: *mut c_int) -> &'static SpinLock {
        // SAFETY: the caller's promise. All access is through the `Cell`, on the carrier.
        unsafe { &*lock.cast::<SpinLock>() }
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    pub fn is_free(&self) -> bool {
        self.0.get() > 0
    }
}

pub fn lock(lock: &'static SpinLock, patience: Patience, pc: u64) -> c_int {
    let (address, pc) = (lock.address(), users_call(pc));
    patience.point(Operation::new(EventKind::Lock, pc, address), Wait::SpinLock(lock));
    let free = lock.is_free();
    if free {
        lock.0.set(0);
    }
    let outcome = if free { Outcome::Done } else { Outcome::Failed };
    Entry::new(EventKind::Lock, pc, address).outcome(outcome).write();
    if free { 0 } else { libc::EBUSY }
}

pub fn unlock(lock: &SpinLock, pc: u64) -> c_int {
    let (address, pc) = (lock.address(), users_call(pc));
    point(Operation::new(EventKind::Unlock, pc, address));
    Entry::new(EventKind::Unlock, pc, address).write();
    lock.0.set(1);
    scheduler::released(address);
    0
}
