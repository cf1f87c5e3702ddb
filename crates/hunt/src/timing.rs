//! Whether a failure depends on timing.
//!
//! Two things decide: how many of the schedules failed so, and what the program does once when the system schedules it
//! (a [`PlainRun`]). A failure of some schedules depends on timing. One of every schedule, and of the plain run, does
//! not. Everything else stays unknown, and the words say what was seen.

use std::collections::{BTreeMap, HashMap};

use threadbare_executor::{FailureKey, Limits, PlainEnd, PlainRun, Target};
use threadbare_trace::{End, FailureKind};

use crate::pool::{Guarded, Outcome};

/// How often a failure was seen, and what that says.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    failing: u64,
    schedules: u64,
    /// Enough schedules were tried to speak of all.
    enough: bool,
    plain: Option<PlainRun>,
    /// The plain run failed likewise; `None` if it cannot tell.
    alike: Option<bool>,
}

/// Whether a failure depends on timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// Some schedules fail so, and others do not.
    Depends,
    /// Every schedule fails so, and so does the program by itself.
    Always,
    Unknown,
}

impl Dependence {
    /// The `timing` of a finding in `--json` output.
    pub const fn name(self) -> &'static str {
        match self {
            Dependence::Depends => "depends",
            Dependence::Always => "always",
            Dependence::Unknown => "unknown",
        }
    }
}

impl Timing {
    /// Runs that failed so.
    pub fn failing(&self) -> u64 {
        self.failing
    }

    /// Runs that could have failed so: those that came to an end. 0 if they were not counted.
    pub fn schedules(&self) -> u64 {
        self.schedules
    }

    /// The program without our scheduling, if that was tried.
    pub fn plain(&self) -> Option<&PlainRun> {
        self.plain.as_ref()
    }

    pub fn dependence(&self) -> Dependence {
        match self.alike {
            _ if self.failing < self.schedules => Dependence::Depends,
            // Some errors show only under control: memory that is used after it was freed.
            None | Some(true) if self.enough && self.plain.is_some() => Dependence::Always,
            _ => Dependence::Unknown,
        }
    }
}

/// So many schedules are enough to speak of all, where there are more.
const ENOUGH: u64 = 10;

/// Counts how runs ended, and makes the plain run when it is needed.
#[derive(Default)]
pub struct Tally {
    /// Runs that came to their end, or failed.
    ended: u64,
    failing: HashMap<FailureKey, u64>,
    /// The same for guarded runs.
    guarded_ended: u64,
    guarded_failing: HashMap<FailureKey, u64>,
    /// Runs by exit code, among those that came to their end.
    exit_codes: BTreeMap<i32, u64>,
    /// There are no other schedules.
    is_all: bool,
    /// `Some(None)` if it could not be made.
    plain: Option<Option<PlainRun>>,
}

impl Tally {
    pub fn count(&mut self, outcome: &Outcome) {
        match outcome.ended() {
            End::Finished => *self.exit_codes.entry(0).or_default() += 1,
            End::Failed(failure) => {
                if let FailureKind::ExitCode(code) = failure.kind {
                    *self.exit_codes.entry(code).or_default() += 1;
                }
            }
            _ => return,
        }
        self.ended += 1;
        let own = outcome.failures.iter().filter(|(key, _)| key.kind != FailureKind::DataRace);
        for (key, _) in own {
            *self.failing.entry(key.clone()).or_default() += 1;
        }
        if let Some(Guarded { failure }) = &outcome.guarded {
            self.guarded_ended += 1;
            if let Some((key, _)) = failure {
                *self.guarded_failing.entry(key.clone()).or_default() += 1;
            }
        }
    }

    /// Every schedule was tried.
    pub fn set_all(&mut self) {
        self.is_all = true;
    }

    /// So many runs were made that a failure of each is one of every schedule.
    pub fn is_enough(&self) -> bool {
        self.is_all || self.ended >= ENOUGH
    }

    /// Makes the plain run, once.
    pub fn run_plainly(&mut self, target: &Target, limits: &Limits) {
        self.plain.get_or_insert_with(|| PlainRun::make(target, limits));
    }

    /// What is known of this failure so far.
    pub fn timing(&self, key: &FailureKey) -> Timing {
        let counted = self.failing.get(key).copied().unwrap_or_default();
        let guarded = self.guarded_failing.get(key).copied().unwrap_or_default();
        let is_guarded = counted == 0 && guarded > 0;
        let (failing, schedules) = match key.kind {
            // A race is told once by each worker.
            FailureKind::DataRace => return Timing::default(),
            // A run that crashed says nothing about its exit code. Where it exits does not matter.
            FailureKind::ExitCode(code) => {
                (self.exit_codes.get(&code).copied().unwrap_or_default(), self.exit_codes.values().sum())
            }
            // Only guarded runs can fail so.
            _ if is_guarded => (guarded, self.guarded_ended),
            _ => (counted, self.ended),
        };
        let plain = self.plain.clone().flatten();
        let alike = plain.as_ref().and_then(|plain| plain.fails_like(key.kind));
        let enough = if is_guarded { self.is_all || schedules >= ENOUGH } else { self.is_enough() };
        Timing { failing, schedules, enough, plain, alike }
    }

    /// The exit code that every run and the plain run ended with, if that is not 0: the program's normal one.
    pub fn normal_exit_code(&self) -> Option<i32> {
        let plain = self.plain.as_ref()?.as_ref()?;
        let mut codes = self.exit_codes.keys();
        match (codes.next(), codes.next()) {
            (Some(&code), None) if code != 0 && self.is_enough() => {
                (plain.end() == PlainEnd::Exited(code)).then_some(code)
            }
            _ => None,
        }
    }
}
