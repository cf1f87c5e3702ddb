//! The end of a run, for a reason that the tool reads.

use threadbare_trace::{End, Failure, FailureKind};
use threadbare_wire::CodePlace;

use super::scheduler::{self, Scheduler};
use crate::entry::log;
use crate::hooks::calls;
use crate::os::system;

/// Where the running thread is, with the address of what it does there.
pub fn here(pc: u64) -> CodePlace {
    CodePlace { thread: scheduler::current(), stack: calls::current(), pc }
}

/// Ends the run as failed, because of what the running thread does at `pc`.
pub fn fail(kind: FailureKind, pc: u64, message: &str) -> ! {
    finish(&End::Failed(Failure::new(kind, message, here(pc))))
}

/// Ends the run because the running thread does something at `pc` that is not modelled.
pub fn refuse(pc: u64, message: &str) -> ! {
    finish(&End::Unsupported { message: message.into(), at: here(pc) })
}

/// Ends the run and says how.
pub fn finish(end: &End<CodePlace>) -> ! {
    log::close_write();
    if matches!(end, End::Failed(_)) && scheduler::is_running() && !scheduler::is_lent() {
        scheduler::with(Scheduler::note_failure);
    }
    log::control().end.put(end);
    system::exit(0)
}
