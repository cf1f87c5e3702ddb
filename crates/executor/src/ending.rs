//! How a run ended, as addresses without names.

use threadbare_trace::{End, EventKind, Failure, FailureKind, StackIndex};
use threadbare_wire::CodePlace;

use crate::memory::Memory;

/// The end of a run, with addresses and no names.
pub type RunEnd = End<CodePlace>;

/// Why the tool has sent a run a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    AtTimeLimit,
    AtMemoryLimit,
}

/// Reads the end of a run from what it said itself. If it said nothing, the wait status counts, unless the tool has
/// stopped the run: what the tool does is never a failure of the program, however the process took it.
pub fn of(memory: &Memory, status: i32, stopped: Option<Stop>) -> RunEnd {
    memory.control().end.get().unwrap_or_else(|| match stopped {
        Some(Stop::AtTimeLimit) => End::TimeLimit { at: None },
        Some(Stop::AtMemoryLimit) => End::MemoryLimit,
        None => of_status(status, || last_place(memory)),
    })
}

/// Where a run that said nothing has ended: where it left, or else at its last operation.
fn last_place(memory: &Memory) -> CodePlace {
    let latest = || memory.records().iter().rev();
    let exit = latest().find(|record| record.event_kind() == Some(EventKind::Exit));
    let operation = || latest().find(|record| record.event_kind().is_some_and(|kind| !kind.is_silent()));
    exit.or_else(operation).map_or_else(CodePlace::default, |record| CodePlace {
        thread: record.thread_index(),
        stack: StackIndex::new(record.stack),
        pc: record.pc(),
    })
}

/// The reason that Rust's test harness prints for a test that failed without a panic: it returned an error, or it should
/// have panicked.
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
fn of_status(status: i32, place: impl FnOnce() -> CodePlace) -> RunEnd {
    let failed = |kind| End::Failed(Failure::new(kind, "", place()));
    if libc::WIFSIGNALED(status) {
        return failed(FailureKind::Signal(libc::WTERMSIG(status)));
    }
    match libc::WEXITSTATUS(status) {
        0 => End::Finished,
        code => failed(FailureKind::ExitCode(code)),
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::End;

    use super::{RunEnd, Stop, harness_words, of};
    use crate::memory::Memory;

    /// Protects users from findings that the tool has made itself: however a process takes the signal of a limit, the run
    /// was stopped.
    #[test]
    fn what_the_tool_does_to_a_run_is_never_a_failure() {
        let memory = Memory::create().expect("there is memory");
        let exited = 3 << 8;
        for status in [libc::SIGXCPU, libc::SIGKILL, libc::SIGTERM, exited, 0] {
            assert_eq!(of(&memory, status, Some(Stop::AtTimeLimit)), RunEnd::TimeLimit { at: None });
            assert_eq!(of(&memory, status, Some(Stop::AtMemoryLimit)), RunEnd::MemoryLimit);
        }
        for status in [libc::SIGXCPU, exited] {
            assert!(matches!(of(&memory, status, None), End::Failed(_)));
        }
    }

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
