//! Sleeping and yielding.

use threadbare_trace::EventKind;

use super::clock;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait::Wait;
use crate::sync::cancellation;

/// Lets others go first.
pub fn give_way(pc: u64) {
    let pc = users_call(pc);
    point(Operation::new(EventKind::Yield, pc, 0));
    Entry::new(EventKind::Yield, pc, 0).write();
}

/// Sleeps until a virtual time. That time comes when no other thread can run and all earlier deadlines have passed.
pub fn until(time: u64, pc: u64) {
    let pc = users_call(pc);
    let deadline = Some(time.max(scheduler::now()));
    point(Operation::new(EventKind::Sleep, pc, 0).waiting(Wait::Sleep).until(deadline).cancellable());
    cancellation::act_at(EventKind::Sleep, pc, 0);
    Entry::new(EventKind::Sleep, pc, 0).write();
}

/// Sleeps for so many nanoseconds.
pub fn for_nanoseconds(duration: u64, pc: u64) {
    until(scheduler::now().saturating_add(duration), pc);
}

/// Sleeps for a time, if there is one.
///
/// # Safety
/// `duration` is null or points to a time.
pub unsafe fn for_duration(duration: *const libc::timespec, pc: u64) {
    // SAFETY: the caller's promise.
    if let Some(time) = unsafe { clock::after(duration) } {
        until(time, pc);
    }
}
