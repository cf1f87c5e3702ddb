//! Condition variables.
//!
//! A wait is two operations: the one that releases the mutex and begins to wait, and the one that ends the
//! wait with the mutex held again. Each is followed in the log by what it did to the mutex. A condition variable has no state of its own here; who waits for it is
//! known from the threads.

use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, point};
use crate::schedule::wait::{Mutex, Wait, resume_kind};
use crate::sync::{cancellation, locks};
use crate::time::clock;
use crate::time::clock::Clock;

type Condition = *mut libc::pthread_cond_t;
type MutexPointer = *mut libc::pthread_mutex_t;
type Until = *const libc::timespec;

intercept! {
    pthread_cond_wait/2 => wait;
    pthread_cond_timedwait/3 => timed_wait;
    pthread_cond_clockwait/4 => clock_wait;
    pthread_cond_signal/1 => signal;
    pthread_cond_broadcast/1 => broadcast;
    pthread_cond_destroy/1 => destroy;
}

/// Every bit: condition variables have no masks.
const ANY: u32 = u32::MAX;

fn wait_until(condition: u64, mutex: u64, deadline: Option<u64>, pc: u64) -> c_int {
    let pc = users_call(pc);
    point(Operation::new(EventKind::Wait, pc, condition));
    if Mutex::at(mutex).kind() == Mutex::ERROR_CHECK
        && !Mutex::at(mutex).is_owned_by(scheduler::get().current)
    {
        Entry::new(EventKind::Wait, pc, condition).outcome(Outcome::Error).write();
        return libc::EPERM;
    }
    Entry::new(EventKind::Wait, pc, condition).value(mutex).write();
    Entry::new(EventKind::Unlock, pc, mutex).write();
    // One hold of a recursive mutex, as in glibc: if there are more, it stays locked.
    locks::release(mutex);
    let ticket = scheduler::get().wakeups.ticket();
    let waiting = Wait::Wakeup { address: condition, ticket, mask: ANY, mutex: Some(mutex) };
    let kind = resume_kind(Some(mutex));
    let operation = Operation::new(kind, pc, condition).waiting(waiting).until(deadline);
    let timed_out = point(operation.cancellable());
    let sched = scheduler::get();
    if !timed_out {
        sched.wakeups.take(condition, ticket, ANY);
    }
    match Mutex::at(mutex) {
        held if held.is_owned_by(sched.current) => held.count += 1,
        free => free.take(sched.current),
    }
    let outcome = if timed_out { Outcome::TimedOut } else { Outcome::Done };
    Entry::new(kind, pc, condition).outcome(outcome).value(mutex).write();
    Entry::new(EventKind::Lock, pc, mutex).write();
    cancellation::act();
    if timed_out { libc::ETIMEDOUT } else { 0 }
}

pub extern "C" fn wait(condition: Condition, mutex: MutexPointer, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_cond_wait @ c"GLIBC_2.3.2" (
            condition => Condition, mutex => MutexPointer
        ) -> c_int);
    }
    wait_until(condition as u64, mutex as u64, None, pc)
}

pub extern "C" fn timed_wait(condition: Condition, mutex: MutexPointer, until: Until, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_cond_timedwait @ c"GLIBC_2.3.2" (
            condition => Condition, mutex => MutexPointer, until => Until
        ) -> c_int);
    }
    wait_until(condition as u64, mutex as u64, clock::deadline(until), pc)
}

extern "C" fn clock_wait(
    condition: Condition,
    mutex: MutexPointer,
    clock: Clock,
    until: Until,
    pc: u64,
) -> c_int {
    if !active() {
        return real!(pthread_cond_clockwait(
            condition => Condition, mutex => MutexPointer, clock => Clock, until => Until
        ) -> c_int);
    }
    wait_until(condition as u64, mutex as u64, clock::deadline(until), pc)
}

fn notify(condition: u64, kind: EventKind, most: u64, pc: u64) -> c_int {
    let pc = users_call(pc);
    point(Operation::new(kind, pc, condition));
    let woken = scheduler::get().notify(condition, most, ANY);
    Entry::new(kind, pc, condition).value(woken).write();
    0
}

pub extern "C" fn signal(condition: Condition, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_cond_signal @ c"GLIBC_2.3.2" (condition => Condition) -> c_int);
    }
    notify(condition as u64, EventKind::NotifyOne, 1, pc)
}

pub extern "C" fn broadcast(condition: Condition, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_cond_broadcast @ c"GLIBC_2.3.2" (condition => Condition) -> c_int);
    }
    notify(condition as u64, EventKind::NotifyAll, u64::MAX, pc)
}

/// glibc's would wait for waiters it believes in.
extern "C" fn destroy(condition: Condition, _: u64) -> c_int {
    if !active() {
        return real!(pthread_cond_destroy @ c"GLIBC_2.3.2" (condition => Condition) -> c_int);
    }
    0
}
