//! Where a run was when it was stopped, in words.

use threadbare_executor::RunEnd;
use threadbare_program::Program;
use threadbare_trace::{End, ThreadId, ThreadIndex};

/// Where a run was when its time was up, if it could still say so. `threads` are the names of its threads.
pub fn stopped_at(end: &RunEnd, threads: &[ThreadId], program: &Program) -> Option<String> {
    let End::TimeLimit { at: Some(at) } = end else { return None };
    let thread = thread_name(threads, at.thread);
    (at.pc != 0).then(|| format!("in thread {thread}, at {}", program.location(at.pc)))
}

/// `0.1`. A thread that was stopped before it had a name has its number, `#1`.
pub(crate) fn thread_name(threads: &[ThreadId], thread: ThreadIndex) -> String {
    threads.get(thread.index()).map_or_else(|| format!("#{thread}"), ThreadId::to_string)
}
