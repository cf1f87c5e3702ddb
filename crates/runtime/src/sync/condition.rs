//! Condition variables.
//!
//! A wait is two operations: the one that releases the mutex and begins to wait, and the one that ends the wait with
//! the mutex held again. Each is followed in the log by what it did to the mutex. A condition variable has no state of
//! its own here: the threads know which condition variable they wait for.

use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use super::cancellation;
use super::mutex::Mutex;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait::Wait;

/// Every bit: condition variables have no masks.
const ANY: u32 = u32::MAX;

pub fn wait(condition: u64, mutex: &'static Mutex, deadline: Option<u64>, pc: u64) -> c_int {
    let (address, pc) = (mutex.address(), users_call(pc));
    point(Operation::new(EventKind::Wait, pc, condition));
    if mutex.kind() == Mutex::ERROR_CHECK && !mutex.is_owned_by(scheduler::current()) {
        Entry::new(EventKind::Wait, pc, condition).outcome(Outcome::Error).write();
        return libc::EPERM;
    }
    Entry::new(EventKind::Wait, pc, condition).value(address).write();
    Entry::new(EventKind::Unlock, pc, address).write();
    // One hold of a recursive mutex, as in glibc: if there are more, it stays locked.
    mutex.release();
    let ticket = scheduler::with(|sched| sched.wakeups.ticket());
    let waiting = Wait::Wakeup { address: condition, ticket, mask: ANY, mutex: Some(mutex) };
    let operation = Operation::new(EventKind::Wake, pc, condition).waiting(waiting).until(deadline);
    let timed_out = point(operation.cancellable());
    if !timed_out {
        scheduler::with(|sched| sched.wakeups.take(condition, ticket, ANY));
    }
    mutex.retake(scheduler::current());
    let outcome = if timed_out { Outcome::TimedOut } else { Outcome::Done };
    Entry::new(EventKind::Wake, pc, condition).outcome(outcome).value(address).write();
    Entry::new(EventKind::Lock, pc, address).write();
    cancellation::act();
    if timed_out { libc::ETIMEDOUT } else { 0 }
}

pub fn signal(condition: u64, pc: u64) -> c_int {
    notify(condition, EventKind::NotifyOne, 1, pc)
}

pub fn broadcast(condition: u64, pc: u64) -> c_int {
    notify(condition, EventKind::NotifyAll, u64::MAX, pc)
}

fn notify(condition: u64, kind: EventKind, max: u64, pc: u64) -> c_int {
    let pc = users_call(pc);
    point(Operation::new(kind, pc, condition));
    let woken = scheduler::with(|sched| sched.notify(condition, max, ANY));
    Entry::new(kind, pc, condition).value(woken).write();
    0
}
