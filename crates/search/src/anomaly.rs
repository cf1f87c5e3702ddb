//! Anomalies: what a strategy may predict and then confirm by a run.

use std::fmt;
use std::sync::Arc;

use threadbare_trace::{EventKind, Location, Plan, ThreadId, Trace};

use crate::reorder::{Tier, Verdict};

/// Defines the kinds of anomalies. A row is `Variant = "name", "text"`.
macro_rules! anomaly_kinds {
    ($($(#[$meta:meta])* $variant:ident = $name:literal, $text:literal;)+) => {
        /// What an anomaly is called in a report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum AnomalyKind { $($(#[$meta])* $variant,)+ }

        impl AnomalyKind {
            pub const ALL: &[AnomalyKind] = &[$(AnomalyKind::$variant),+];

            /// The word for it in `--json` output, in the names of clips and in files of patterns.
            pub const fn name(self) -> &'static str {
                match self { $(AnomalyKind::$variant => $name,)+ }
            }

            /// The words for it in reports to people.
            pub const fn text(self) -> &'static str {
                match self { $(AnomalyKind::$variant => $text,)+ }
            }
        }
    };
}

anomaly_kinds! {
    DataRace = "data-race", "data race";
    AtomicityViolation = "atomicity-violation", "atomicity violation";
    AtomicSetViolation = "atomic-set-violation", "atomic set violation";
    /// A cycle of locks. It is not a pattern of accesses.
    Deadlock = "deadlock", "deadlock";
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A pattern of events that no serial program would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: AnomalyKind,
    /// What the trace alone says.
    pub verdict: Verdict,
    /// The name of the pattern; empty for a deadlock.
    pub pattern: String,
    /// What makes accesses one unit of work; `None` where there is no such unit.
    pub tier: Option<Tier>,
    /// For how many combinations of threads and variables it was found.
    pub count: u64,
    /// Its events, in the order of the pattern.
    pub participants: Vec<Participant>,
    /// The same for the same anomaly in another run of the program.
    pub identity: String,
}

/// One event of an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    pub thread: ThreadId,
    pub kind: EventKind,
    pub variable: String,
    pub location: Location,
}

/// The run that showed an anomaly.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The plan that the run was made by, with all of its schedule forced.
    pub plan: Plan,
    pub trace: Arc<Trace>,
    pub harm: Harm,
}

/// What an anomaly did to the run that showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The run failed.
    Failure,
    /// Variables ended with values that they have after no serial order of the units of work.
    Values,
    /// Nothing that was seen. It may still matter, hence the question mark in reports.
    Unseen,
}

impl Harm {
    pub const fn name(self) -> &'static str {
        match self {
            Harm::Failure => "failure",
            Harm::Values => "values",
            Harm::Unseen => "benign?",
        }
    }
}
