//! Futexes, on which Rust, libstdc++ and many libraries build their own locks.

use std::ffi::{c_int, c_long};

use threadbare_trace::{EventKind, Outcome};

use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::entry::process;
use crate::memory::heap;
use crate::os::system;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait::Wait;
use crate::time::clock;

/// The arguments of the system call, by their meaning for the operations that are modelled.
pub struct Call {
    pub address: u64,
    pub operation: c_int,
    /// What is expected at the address, or how many threads to wake.
    pub value: u32,
    pub timeout: *const libc::timespec,
    pub mask: u32,
}

/// The system call.
///
/// # Safety
/// `address` is that of a word that stays, if it is one, and `timeout` is null or a time. A program that makes the system call
/// promises the kernel the same, for the operations that use them.
pub unsafe fn call(call: &Call, pc: u64) -> c_long {
    const ALL: u32 = libc::FUTEX_BITSET_MATCH_ANY as u32;
    let &Call { address, operation, value, timeout, mask } = call;
    let pc = users_call(pc);
    // SAFETY: the caller's promise.
    unsafe {
        match operation & libc::FUTEX_CMD_MASK {
            libc::FUTEX_WAIT => wait(address, value, clock::after(timeout), ALL, pc),
            libc::FUTEX_WAIT_BITSET => wait(address, value, clock::deadline(timeout), mask, pc),
            libc::FUTEX_WAKE => wake(address, value, ALL, pc),
            libc::FUTEX_WAKE_BITSET => wake(address, value, mask, pc),
            other => process::unsupported(&format!("futex operation {other} is not modelled"), pc),
        }
    }
}

/// # Safety
/// `address` is that of a word that can be read, if it can be read when this is called.
unsafe fn wait(address: u64, expected: u32, deadline: Option<u64>, mask: u32, pc: u64) -> c_long {
    // The kernel does not die of a bad address. The heap can be read, though the kernel is kept from it in a guarded run.
    if !heap::contains(address) && !system::can_read(address, size_of::<u32>() as u64) {
        return system::fail(libc::EFAULT).into();
    }
    point(Operation::new(EventKind::FutexWait, pc, address));
    // SAFETY: the caller's promise.
    let found = unsafe { (address as *const u32).read_volatile() };
    let entry = Entry::new(EventKind::FutexWait, pc, address).value(u64::from(found)).size(4);
    if found != expected {
        entry.outcome(Outcome::Failed).write();
        return system::fail(libc::EAGAIN).into();
    }
    entry.write();
    let ticket = scheduler::with(|sched| sched.wakeups.ticket());
    let waiting = Wait::Wakeup { address, ticket, mask, mutex: None };
    let resume = EventKind::FutexResume;
    let timed_out = point(Operation::new(resume, pc, address).waiting(waiting).until(deadline));
    if timed_out {
        Entry::new(resume, pc, address).outcome(Outcome::TimedOut).write();
        return system::fail(libc::ETIMEDOUT).into();
    }
    scheduler::with(|sched| sched.wakeups.take(address, ticket, mask));
    Entry::new(resume, pc, address).write();
    0
}

fn wake(address: u64, max: u32, mask: u32, pc: u64) -> c_long {
    point(Operation::new(EventKind::FutexWake, pc, address));
    let woken = scheduler::with(|sched| sched.notify(address, u64::from(max), mask));
    Entry::new(EventKind::FutexWake, pc, address).value(woken).write();
    woken as c_long
}
