//! How a run ended.
//!
//! [`End`] is generic over how it names a place. What the process itself leaves behind has addresses; a trace has
//! indices into its tables ([`TracePlace`]). [`End::map`] turns one into the other.

use std::fmt;

use crate::event::named_bytes;
use crate::{FailureKind, LocationIndex, StackIndex, ThreadIndex};

named_bytes! {
    /// The ways in which a run can end, with the word for each in exported traces. The numbers are part of the trace
    /// format: append, never renumber.
    EndKind {
        Finished = 0, "finished";
        Failed = 1, "failed";
        EventBound = 2, "event-bound";
        TimeLimit = 3, "time-limit";
        MemoryLimit = 4, "memory-limit";
        Diverged = 5, "diverged";
        Unsupported = 6, "unsupported";
        Exec = 7, "exec";
    }
}

impl EndKind {
    /// The words for it on the screen. Where an end has words of its own, they follow after a colon.
    pub const fn text(self) -> &'static str {
        match self {
            EndKind::Finished => "finished without a failure",
            EndKind::Failed => "failed",
            EndKind::EventBound => "stopped at the bound on events, but was getting somewhere",
            EndKind::TimeLimit => "stopped at the time limit",
            EndKind::MemoryLimit => "stopped at the memory limit",
            EndKind::Diverged => "left its schedule",
            EndKind::Unsupported => "not supported",
            EndKind::Exec => "became another program",
        }
    }
}

/// How a run ended. `P` says where something happened: who did it, in which code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End<P> {
    /// By itself, with exit code 0.
    Finished,
    /// An oracle fired.
    Failed(Failure<P>),
    /// It reached the plan's bound on events, but was getting somewhere.
    EventBound,
    /// It was stopped from outside after the time limit. `at` is where it was then, if it could still say so.
    TimeLimit { at: Option<P> },
    /// It was stopped from outside because it used too much memory.
    MemoryLimit,
    /// Step `step` of a strict plan could not be taken.
    Diverged { step: u32, reason: String },
    /// The program did something Threadbare does not model.
    Unsupported { message: String, at: P },
    /// It called `exec`. What the new program does is not part of the run.
    Exec { program: String, at: P },
}

/// What an oracle found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<P> {
    pub kind: FailureKind,
    /// The failure's own words, such as the expression that an assertion checked. Often empty. The full text for
    /// people, with the related places, is [`Trace::failure_message`](crate::Trace::failure_message).
    pub message: String,
    pub at: P,
    /// Other places that explain the failure, in the order of their roles.
    pub related: Vec<Related<P>>,
}

/// A place that explains a failure, and what happened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Related<P> {
    pub role: Role,
    pub at: P,
}

named_bytes! {
    /// What a related place has to do with the failure. The numbers are part of the trace format and of the wire:
    /// append, never renumber.
    Role {
        /// The heap block was allocated there.
        Allocated = 1, "allocated";
        /// The heap block was freed there.
        Freed = 2, "freed";
        /// The other thread of a data race was about to access the same memory there.
        OtherAccess = 3, "other-access";
        /// The primitive was destroyed there.
        Destroyed = 4, "destroyed";
        /// A thread that uses the primitive stands there.
        Used = 5, "used";
    }
}

/// A place in the terms of a [`Trace`](crate::Trace): indices into its tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracePlace {
    pub thread: ThreadIndex,
    pub location: LocationIndex,
    /// The calls that led there; empty when unknown.
    pub stack: StackIndex,
}

/// `what: message`, or `what` alone where there is no message.
fn write_with_message(f: &mut fmt::Formatter<'_>, what: impl fmt::Display, message: &str) -> fmt::Result {
    match message {
        "" => write!(f, "{what}"),
        _ => write!(f, "{what}: {message}"),
    }
}

/// The kind and the failure's own words: `assertion failed: sum == 200`.
impl<P> fmt::Display for Failure<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_message(f, self.kind, &self.message)
    }
}

/// How the run ended, in one line, without places.
impl<P> fmt::Display for End<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.kind().text();
        match self {
            End::Failed(failure) => failure.fmt(f),
            End::Diverged { step, reason } => {
                write_with_message(f, format_args!("{text} at step {step}"), reason)
            }
            End::Unsupported { message, .. } => write_with_message(f, text, message),
            End::Exec { program, .. } => write_with_message(f, text, program),
            End::Finished | End::EventBound | End::TimeLimit { .. } | End::MemoryLimit => f.write_str(text),
        }
    }
}

impl<P> Failure<P> {
    /// A failure with no related places.
    pub fn new(kind: FailureKind, message: impl Into<String>, at: P) -> Failure<P> {
        Failure { kind, message: message.into(), at, related: Vec::new() }
    }

    /// The place that has this role, if there is one.
    pub fn related(&self, role: Role) -> Option<&P> {
        self.related.iter().find(|related| related.role == role).map(|related| &related.at)
    }
}

impl<P> End<P> {
    /// Which of the ways to end it is.
    pub const fn kind(&self) -> EndKind {
        match self {
            End::Finished => EndKind::Finished,
            End::Failed(_) => EndKind::Failed,
            End::EventBound => EndKind::EventBound,
            End::TimeLimit { .. } => EndKind::TimeLimit,
            End::MemoryLimit => EndKind::MemoryLimit,
            End::Diverged { .. } => EndKind::Diverged,
            End::Unsupported { .. } => EndKind::Unsupported,
            End::Exec { .. } => EndKind::Exec,
        }
    }

    /// The failure, if it was one.
    pub fn failure(&self) -> Option<&Failure<P>> {
        match self {
            End::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The kind of the failure, if it was one.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        self.failure().map(|failure| failure.kind)
    }

    /// Where it ended, if that is known.
    pub fn at(&self) -> Option<&P> {
        match self {
            End::Failed(Failure { at, .. }) | End::Unsupported { at, .. } | End::Exec { at, .. } => Some(at),
            End::TimeLimit { at } => at.as_ref(),
            End::Finished | End::EventBound | End::MemoryLimit | End::Diverged { .. } => None,
        }
    }

    /// The same end with every place put differently.
    pub fn map<Q>(self, mut place: impl FnMut(P) -> Q) -> End<Q> {
        match self {
            End::Finished => End::Finished,
            End::Failed(Failure { kind, message, at, related }) => End::Failed(Failure {
                kind,
                message,
                at: place(at),
                related: related
                    .into_iter()
                    .map(|Related { role, at }| Related { role, at: place(at) })
                    .collect(),
            }),
            End::EventBound => End::EventBound,
            End::TimeLimit { at } => End::TimeLimit { at: at.map(place) },
            End::MemoryLimit => End::MemoryLimit,
            End::Diverged { step, reason } => End::Diverged { step, reason },
            End::Unsupported { message, at } => End::Unsupported { message, at: place(at) },
            End::Exec { program, at } => End::Exec { program, at: place(at) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the words that people know. Every command and every report has them from here.
    #[test]
    fn every_end_has_its_words() {
        let failed = |message: &str| End::Failed(Failure::new(FailureKind::Panic, message, ()));
        let diverged = |reason: &str| End::Diverged { step: 3, reason: reason.into() };
        let text = |end: End<()>| end.to_string();
        assert_eq!(text(End::Finished), "finished without a failure");
        assert_eq!(text(failed("")), "panicked");
        assert_eq!(text(failed("no account")), "panicked: no account");
        assert_eq!(text(End::EventBound), "stopped at the bound on events, but was getting somewhere");
        assert_eq!(text(End::TimeLimit { at: None }), "stopped at the time limit");
        assert_eq!(text(End::MemoryLimit), "stopped at the memory limit");
        assert_eq!(
            text(diverged("thread 0.1 has ended")),
            "left its schedule at step 3: thread 0.1 has ended"
        );
        assert_eq!(text(diverged("")), "left its schedule at step 3");
        assert_eq!(text(End::Unsupported { message: "fork".into(), at: () }), "not supported: fork");
        assert_eq!(text(End::Exec { program: "/bin/sh".into(), at: () }), "became another program: /bin/sh");
    }
}
