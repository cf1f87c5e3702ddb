//! Cancellation of threads.
//!
//! A request takes effect when its thread comes to a cancellation point, or waits at one. Of libc's cancellation
//! points, those that may wait are modelled. An asynchronous request takes effect at the thread's next operation of any
//! kind.

use std::ffi::{c_int, c_void};

use threadbare_trace::{EventKind, Outcome};

use super::{thread_end, threads};
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait;

/// A thread's part in it.
#[derive(Clone, Copy, Default)]
pub struct Cancellation {
    requested: bool,
    pub disabled: bool,
    pub asynchronous: bool,
}

impl Cancellation {
    /// The thread is to end at its next cancellation point.
    pub fn is_due(self) -> bool {
        self.requested && !self.disabled
    }
}

/// The result of a thread that was cancelled.
const CANCELED: *mut c_void = usize::MAX as *mut c_void;

fn mine() -> Cancellation {
    scheduler::with_me(|me| me.cancellation)
}

/// Asks thread `handle` to end.
pub fn request(handle: libc::pthread_t, pc: u64) -> c_int {
    let Some(target) = threads::find(handle) else { return libc::ESRCH };
    let (object, pc) = (wait::thread_address(target), users_call(pc));
    point(Operation::new(EventKind::Cancel, pc, object));
    Entry::new(EventKind::Cancel, pc, object).value(object).write();
    scheduler::with(|sched| {
        sched.threads[target].cancellation.requested = true;
        sched.ready.insert(target);
    });
    0
}

/// A cancellation point that was waited at: if the thread is to end, the operation did not happen.
pub fn act_at(kind: EventKind, pc: u64, object: u64) {
    if mine().is_due() {
        Entry::new(kind, pc, object).outcome(Outcome::Error).write();
        act();
    }
}

/// A cancellation point: ends the thread if that is due.
pub fn act() {
    if mine().is_due() {
        scheduler::with_me(|me| me.cancellation.disabled = true);
        thread_end::exit(CANCELED);
    }
}
