//! How a run ended, before anything is looked up.

use std::sync::atomic::Ordering;

use threadbare_trace::FailureKind;
use threadbare_wire::Ending;

use crate::memory::Memory;

/// The end of a run in the terms of the process: addresses, no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Finished,
    Failed {
        kind: FailureKind,
        message: String,
        thread: u32,
        pc: u64,
    },
    EventBound,
    /// Where it was when it was stopped, if it could still say so.
    TimeLimit {
        thread: u32,
        pc: u64,
    },
    MemoryLimit,
    Diverged {
        step: u32,
        reason: String,
    },
    Unsupported {
        message: String,
        thread: u32,
        pc: u64,
    },
}

/// Reads the end of a run from its wait status and from what it said itself.
pub fn of(memory: &Memory, status: i32) -> Ended {
    let control = memory.control();
    let detail = control.ending_detail.load(Ordering::Relaxed);
    let thread = control.ending_thread.load(Ordering::Relaxed);
    let pc = control.ending_pc.load(Ordering::Relaxed);
    let failed = |kind| Ended::Failed { kind, message: memory.message(), thread, pc };
    match Ending::from_number(control.ending.load(Ordering::Acquire)) {
        Some(Ending::Assertion) => failed(FailureKind::Assertion),
        Some(Ending::Abort) => failed(FailureKind::Abort),
        Some(Ending::Signal) => failed(FailureKind::Signal(detail as i32)),
        Some(Ending::Exception) => failed(FailureKind::Exception),
        Some(Ending::Deadlock) => failed(FailureKind::Deadlock),
        Some(Ending::Livelock) => failed(FailureKind::Livelock),
        Some(Ending::EventBound) => Ended::EventBound,
        Some(Ending::TimeLimit) => Ended::TimeLimit { thread, pc },
        Some(Ending::UseAfterFree) => failed(FailureKind::UseAfterFree),
        Some(Ending::DoubleFree) => failed(FailureKind::DoubleFree),
        Some(Ending::InvalidFree) => failed(FailureKind::InvalidFree),
        Some(Ending::HeapOverflow) => failed(FailureKind::HeapOverflow),
        Some(Ending::DataRace) => failed(FailureKind::DataRace),
        Some(Ending::Panic) => failed(FailureKind::Panic),
        Some(Ending::Diverged) => Ended::Diverged { step: detail, reason: memory.message() },
        Some(Ending::Unsupported) => Ended::Unsupported { message: memory.message(), thread, pc },
        Some(Ending::Silent) | None => of_status(status),
    }
}

/// Why Rust's test harness lets a test fail that did not panic, from what it prints: the test has returned an error, or
/// should have panicked.
pub fn harness_words(output: &str) -> Option<&str> {
    let is_heading = |line: &&str| line.starts_with("---- ") && line.ends_with(" stdout ----");
    let lines = output.lines().skip_while(|line| !is_heading(line)).take_while(|&line| line != "failures:");
    // It speaks last.
    let words = lines.filter_map(|line| match line.strip_prefix("note: ") {
        Some(note) if note.starts_with("test did not panic") => Some(note),
        _ => line.strip_prefix("Error: ").map(|_| line),
    });
    words.last()
}

/// The end of a process that said nothing.
fn of_status(status: i32) -> Ended {
    let failed = |kind| Ended::Failed { kind, message: String::new(), thread: 0, pc: 0 };
    if libc::WIFSIGNALED(status) {
        return failed(FailureKind::Signal(libc::WTERMSIG(status)));
    }
    match libc::WEXITSTATUS(status) {
        0 => Ended::Finished,
        code => failed(FailureKind::ExitCode(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::harness_words;

    /// Protects that a test which fails without a panic says more than its exit code.
    #[test]
    fn the_harness_says_why_a_test_failed() {
        let output = |said: &str| {
            format!(
                "test t::x ... FAILED\n\nfailures:\n\n---- t::x stdout ----\n{said}\n\n\nfailures:\n    t::x\n"
            )
        };
        assert_eq!(harness_words(&output("Error: once more\nError: \"lost\"")), Some("Error: \"lost\""));
        let note = "test did not panic as expected at src/lib.rs:16:8";
        assert_eq!(harness_words(&output(&format!("note: {note}"))), Some(note));
        assert_eq!(harness_words(&output("note: something else")), None);
        assert_eq!(harness_words("Error: not the harness"), None);
    }
}
