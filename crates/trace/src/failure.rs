//! Every kind of failure, with its number, its names and its text, in one table.
//!
//! All else follows from the table: the shared memory and the trace file use the number, `--json` and clips the
//! finding, people read the text, and property tests draw from [`FailureKind::ALL`].

use std::fmt;

/// Defines the kinds of failures. A row is `Variant = number, "finding", text`. A variant that carries a detail names
/// it in brackets; its text is then an expression over that name.
macro_rules! failure_kinds {
    ($($(#[$meta:meta])* $variant:ident $(($detail:ident))? = $number:literal, $finding:literal, $text:expr;)+) => {
        /// What kind of oracle fired.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FailureKind { $($(#[$meta])* $variant $((failure_kinds!(@type $detail)))?,)+ }

        impl FailureKind {
            /// Every kind, in the order of its number. The detail of those that carry one is 0.
            pub const ALL: &[FailureKind] =
                &[$(FailureKind::$variant $((failure_kinds!(@zero $detail)))?,)+];

            /// The number that stands for it in shared memory and in trace files.
            pub const fn number(self) -> u8 {
                match self { $(FailureKind::$variant { .. } => $number,)+ }
            }

            /// The `kind` of a finding in `--json` output and in clips.
            pub const fn finding(self) -> &'static str {
                match self { $(FailureKind::$variant { .. } => $finding,)+ }
            }

            /// The signal or the exit code; `None` for a kind that carries nothing.
            #[allow(unreachable_code, reason = "an arm ends early where there is a detail")]
            pub const fn detail(self) -> Option<i32> {
                match self { $(FailureKind::$variant $(($detail))? => { $(return Some($detail);)? None })+ }
            }

            /// The same kind with this signal or exit code. A kind that carries nothing stays as it is.
            pub const fn with_detail(self, detail: i32) -> FailureKind {
                match self {
                    $(FailureKind::$variant { .. } =>
                        FailureKind::$variant $((failure_kinds!(@use detail $detail)))?,)+
                }
            }
        }

        impl fmt::Display for FailureKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self { $(FailureKind::$variant $(($detail))? => write!(f, "{}", $text),)+ }
            }
        }
    };
    (@type $detail:ident) => { i32 };
    (@zero $detail:ident) => { 0 };
    (@use $value:ident $detail:ident) => { $value };
}

// The numbers are part of the trace format: append, never renumber.
failure_kinds! {
    /// A failed `assert`.
    Assertion = 1, "assertion", "assertion failed";
    /// `abort`, outside an assertion.
    Abort = 2, "crash", "aborted";
    /// A fatal signal, by its number.
    Signal(signal) = 3, "crash", signal_name(signal);
    /// A C++ exception that nobody caught.
    Exception = 4, "crash", "uncaught exception";
    /// The process ended with this code.
    ExitCode(code) = 5, "exit-code", format_args!("exit code {code}");
    /// Every thread waits for another.
    Deadlock = 6, "deadlock", "deadlock";
    /// Threads run, but only in circles.
    Livelock = 7, "livelock", "livelock";
    /// An access to heap memory that was freed.
    UseAfterFree = 8, "use-after-free", "use after free";
    /// A block freed a second time.
    DoubleFree = 9, "double-free", "double free";
    /// Something freed that is not a block.
    InvalidFree = 10, "crash", "invalid free";
    /// An access outside the heap block it is next to.
    HeapOverflow = 11, "crash", "heap overflow";
    /// Two threads about to access the same memory, one of them to write.
    DataRace = 12, "data-race", "data race";
    /// A panic of a Rust program that ended it.
    Panic = 13, "panic", "panicked";
    /// A mutex, or another primitive, used after it was destroyed.
    UseAfterDestroy = 14, "use-after-destroy", "use after destroy";
    /// A primitive destroyed while another thread holds it or waits for it.
    DestroyedInUse = 15, "destroyed-in-use", "destroyed in use";
    /// A primitive used that was never initialised.
    NotInitialised = 16, "not-initialised", "not initialised";
    /// An access to the stack of another thread, where no frame is any more.
    UseAfterReturn = 17, "use-after-return", "use after return";
}

impl FailureKind {
    /// The kind with this number, with detail 0 if it carries one.
    pub fn from_number(number: u8) -> Option<FailureKind> {
        FailureKind::ALL.iter().copied().find(|kind| kind.number() == number)
    }
}

/// `SIGSEGV` for 11; the number where it has no common name. (Linux x86-64 numbers.)
pub fn signal_name(signal: i32) -> String {
    match signal {
        4 => "SIGILL".into(),
        5 => "SIGTRAP".into(),
        6 => "SIGABRT".into(),
        7 => "SIGBUS".into(),
        8 => "SIGFPE".into(),
        9 => "SIGKILL".into(),
        11 => "SIGSEGV".into(),
        13 => "SIGPIPE".into(),
        15 => "SIGTERM".into(),
        31 => "SIGSYS".into(),
        _ => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects files and the wire from two kinds that share a number, or a gap that hides a removed one.
    #[test]
    fn numbers_count_up_from_1() {
        let numbers: Vec<u8> = FailureKind::ALL.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers, (1..=FailureKind::ALL.len() as u8).collect::<Vec<_>>());
        assert!(FailureKind::ALL.iter().all(|&kind| FailureKind::from_number(kind.number()) == Some(kind)));
        assert_eq!(FailureKind::from_number(0), None);
    }

    /// Protects what is carried: a signal stays a signal, and other kinds carry nothing.
    #[test]
    fn details_belong_to_signals_and_exit_codes_alone() {
        for &kind in FailureKind::ALL {
            let carries = matches!(kind, FailureKind::Signal(_) | FailureKind::ExitCode(_));
            assert_eq!(kind.with_detail(-7).detail(), carries.then_some(-7), "{kind}");
            assert_eq!(kind.with_detail(-7).number(), kind.number());
        }
    }

    /// Protects the words that people and tools know.
    #[test]
    fn texts_and_findings_are_these() {
        let words = |kind: FailureKind| format!("{kind} ({})", kind.finding());
        assert_eq!(words(FailureKind::Signal(11)), "SIGSEGV (crash)");
        assert_eq!(words(FailureKind::Signal(40)), "signal 40 (crash)");
        assert_eq!(words(FailureKind::ExitCode(3)), "exit code 3 (exit-code)");
        assert_eq!(words(FailureKind::UseAfterFree), "use after free (use-after-free)");
    }
}
