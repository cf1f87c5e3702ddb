//! How a run ended, in a few words.

use threadbare_executor::Ended;
use threadbare_program::Program;
use threadbare_trace::{End, Trace};

/// How the run ended that left `trace`.
pub fn ending(trace: &Trace) -> String {
    match &trace.end {
        End::Finished => "finished".into(),
        End::Failed { kind, message, .. } if message.is_empty() => kind.to_string(),
        End::Failed { kind, message, .. } => format!("{kind}: {message}"),
        End::EventBound => "stopped at the bound on events".into(),
        End::TimeLimit => "stopped at the time limit".into(),
        End::MemoryLimit => "stopped at the memory limit".into(),
        End::Diverged { reason, .. } => format!("diverged: {reason}"),
        End::Unsupported { message, .. } => format!("not supported: {message}"),
    }
}

/// Where a run was when its time was up, if it could still say so.
pub fn stopped_at(ended: &Ended, program: &Program) -> Option<String> {
    let &Ended::TimeLimit { thread, pc } = ended else { return None };
    let thread = match thread {
        0 => "the main thread".into(),
        number => format!("thread number {number} by creation"),
    };
    (pc != 0).then(|| format!("in {thread}, at {}", program.location(pc)))
}
