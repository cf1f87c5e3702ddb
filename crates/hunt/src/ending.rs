//! Where a run was when it was stopped, in words.

use threadbare_executor::RunEnd;
use threadbare_program::Program;
use threadbare_trace::{End, ThreadIndex};

/// Where a run was when its time was up, if it could still say so.
pub fn stopped_at(end: &RunEnd, program: &Program) -> Option<String> {
    let End::TimeLimit { at: Some(at) } = end else { return None };
    let thread = match at.thread {
        ThreadIndex::MAIN => "the main thread".into(),
        number => format!("thread number {number} by creation"),
    };
    (at.pc != 0).then(|| format!("in {thread}, at {}", program.location(at.pc)))
}
