//! A session in figures.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use threadbare_executor::PlainRun;
use threadbare_search::{AnomalyKind, Explored, Feedback, Harm};
use threadbare_trace::{End, Influence};

use crate::length::Length;
use crate::pace::Pace;
use crate::pool::Outcome;
use crate::{HuntConfig, HuntError, Timing, Unfinished};

/// Counts as the session goes.
#[derive(Clone)]
pub struct Summary {
    pub runs: u64,
    pub events: u64,
    pub seconds: f64,
    pub findings: u64,
    /// Failures that did not happen again when the same schedule was forced: no findings.
    pub unconfirmed: u64,
    /// The last of them, in words.
    pub failed_once: Option<String>,
    /// What the program was seen to depend on then, besides its schedule.
    pub influences: Vec<Influence>,
    /// The most threads that a run had.
    pub threads: u32,
    pub methods: BTreeMap<&'static str, MethodFigures>,
    /// Every schedule was tried that would have been.
    pub exhausted: bool,
    /// The classes of interleavings that were explored, if the search tells them apart.
    pub explored: Option<Explored>,
    /// Sleeps lasted for as long as others could run, also in the runs that were to outlast the most of them.
    pub sleeps_held: bool,
    /// The most sleeps that a run might outlast.
    outlasting: u32,
    /// Schedules that a strategy gave up for want of memory.
    pub dropped: u64,
    pub stopped: Stopped,
    /// Runs that called `exec` and were over there.
    pub became_another: u64,
    /// What the last of them became.
    pub became: Option<String>,
    /// Runs that could not go as planned and were ended there.
    diverged: u64,
    /// A run was stopped though it had all the events that the user allows.
    pub bound_reached: bool,
    /// Runs of which only the beginning was run.
    pub beginnings: u64,
    /// No run is expected to come to its end.
    pub endless: bool,
    /// Where the last run to be stopped at the time limit was, in words.
    pub stuck_at: Option<String>,
    /// What was predicted, if the session predicts.
    pub predictions: Option<PredictionFigures>,
    /// It was told to stop.
    pub interrupted: bool,
    /// Runs that failed.
    pub failed: u64,
    /// The failures among the findings, each with how often it was seen in the end.
    pub failures: Vec<FailureFigures>,
    /// A run that did not end, however long it was let, though others end.
    pub unfinished: Option<Unfinished>,
    /// One run without our scheduling, of a program that comes to no end with it.
    pub plain: Option<PlainRun>,
    /// The program ends with this exit code in every schedule and by itself, so it is no finding.
    pub normal_exit_code: Option<i32>,
    start: Instant,
}

/// What a method has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodFigures {
    pub runs: u64,
    pub findings: u64,
}

/// A failure that was reported, and how often it was seen.
#[derive(Clone, Debug)]
pub struct FailureFigures {
    /// `assertion at bank.c:12`.
    pub what: String,
    pub clip: Option<PathBuf>,
    pub timing: Timing,
}

/// Runs that did not come to their own end, by limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    pub max_events: u64,
    pub time_limit: u64,
    pub memory_limit: u64,
}

impl Stopped {
    fn add(&mut self, other: Stopped) {
        self.max_events += other.max_events;
        self.time_limit += other.time_limit;
        self.memory_limit += other.memory_limit;
    }
}

/// Predictions in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredictionFigures {
    /// Events of the runs that were predicted from.
    pub events: u64,
    pub predicted: u64,
    pub confirmed: u64,
    /// Confirmed, and the run failed.
    pub failed: u64,
    /// Found false without a run, for there is no schedule.
    pub infeasible: u64,
    /// Predictions that are certain, where no run can confirm them; `None` where one can.
    pub witnessed: Option<u64>,
    /// By kind: predicted, confirmed, failed.
    pub kinds: BTreeMap<AnomalyKind, [u64; 3]>,
}

impl PredictionFigures {
    pub(crate) fn analysed(&mut self, events: u64, infeasible: u64) {
        self.events += events;
        self.infeasible += infeasible;
    }

    pub(crate) fn predicted(&mut self, kind: AnomalyKind) {
        self.predicted += 1;
        self.kinds.entry(kind).or_default()[0] += 1;
    }

    pub(crate) fn confirmed(&mut self, kind: AnomalyKind, harm: Harm) {
        let failed = u64::from(harm == Harm::Failure);
        self.confirmed += 1;
        self.failed += failed;
        let [_, of_kind, failed_of_kind] = self.kinds.entry(kind).or_default();
        *of_kind += 1;
        *failed_of_kind += failed;
    }

    /// Predictions whose schedules could not be followed, or did not show them.
    pub fn not_so(&self) -> u64 {
        self.predicted - self.confirmed
    }
}

/// A session ends after so many runs that did not come to their end, if no other did.
const MAX_STUCK_RUNS: u64 = 6;

/// What keeps runs from coming to their end.
pub(crate) enum Obstacle {
    Events,
    Time,
    Memory,
}

impl Summary {
    pub fn new(start: Instant) -> Summary {
        Summary {
            runs: 0,
            events: 0,
            seconds: 0.0,
            findings: 0,
            unconfirmed: 0,
            failed_once: None,
            influences: Vec::new(),
            threads: 0,
            methods: BTreeMap::new(),
            exhausted: false,
            explored: None,
            sleeps_held: false,
            outlasting: 0,
            dropped: 0,
            stopped: Stopped::default(),
            became_another: 0,
            became: None,
            diverged: 0,
            bound_reached: false,
            beginnings: 0,
            endless: false,
            stuck_at: None,
            predictions: None,
            interrupted: false,
            failed: 0,
            failures: Vec::new(),
            unfinished: None,
            plain: None,
            normal_exit_code: None,
            start,
        }
    }

    pub(crate) fn count(&mut self, outcome: &Outcome, length: Length) {
        self.runs += 1;
        self.events += outcome.feedback.events;
        self.threads = self.threads.max(outcome.feedback.threads.len() as u32);
        self.methods.entry(outcome.method).or_default().runs += 1;
        self.note_sleeps(&outcome.feedback);
        match outcome.ended() {
            End::EventBound => {
                self.stopped.max_events += 1;
                self.beginnings += u64::from(length == Length::Beginning);
            }
            End::TimeLimit { .. } => self.stopped.time_limit += 1,
            End::MemoryLimit => self.stopped.memory_limit += 1,
            End::Diverged { .. } => self.diverged += 1,
            End::Exec { program, .. } => {
                self.became_another += 1;
                self.became = Some(program.clone());
            }
            End::Failed(_) => self.failed += 1,
            _ => {}
        }
    }

    /// Takes in an earlier session with the same program.
    pub fn add_earlier(&mut self, earlier: Summary) {
        self.runs += earlier.runs;
        self.events += earlier.events;
        self.seconds += earlier.seconds;
        self.unconfirmed += earlier.unconfirmed;
        self.failed += earlier.failed;
        self.threads = self.threads.max(earlier.threads);
        for (method, figures) in earlier.methods {
            let own = self.methods.entry(method).or_default();
            own.runs += figures.runs;
            own.findings += figures.findings;
        }
        self.stopped.add(earlier.stopped);
        self.bound_reached |= earlier.bound_reached;
        self.beginnings += earlier.beginnings;
        let is_new = |figures: &FailureFigures| !self.failures.iter().any(|known| known.clip == figures.clip);
        let further: Vec<FailureFigures> = earlier.failures.into_iter().filter(is_new).collect();
        self.failures.extend(further);
        self.findings = self.failures.len() as u64;
    }

    /// What was held back before says nothing any more, once more sleeps may be outlasted.
    fn note_sleeps(&mut self, feedback: &Feedback) {
        let sleeps = feedback.outlasting.sleeps;
        if sleeps > self.outlasting {
            (self.outlasting, self.sleeps_held) = (sleeps, false);
        }
        self.sleeps_held |= sleeps == self.outlasting && feedback.held_sleep.is_some();
    }

    pub fn found(&mut self, method: &'static str) {
        self.findings += 1;
        self.methods.entry(method).or_default().findings += 1;
    }

    /// Every run was stopped or diverged. False if there was no run.
    pub fn nothing_ended(&self) -> bool {
        let Stopped { max_events, time_limit, memory_limit } = self.stopped;
        self.runs > 0 && max_events + time_limit + memory_limit + self.diverged == self.runs
    }

    /// Every run was stopped, and none of them only because the session wanted its beginning.
    pub fn is_nothing_known(&self) -> bool {
        self.nothing_ended() && self.beginnings == 0 && !self.endless
    }

    /// The program started no thread, so that there is only one schedule.
    pub fn has_no_threads(&self) -> bool {
        self.threads == 1
    }

    /// Some run was stopped after all the events, or all the time, that the user allows.
    pub fn had_all(&self) -> bool {
        self.bound_reached || self.stopped.time_limit > 0
    }

    /// No more runs should be made: enough were stopped, and none came to its end.
    pub fn is_hopeless(&self) -> bool {
        let Stopped { time_limit, memory_limit, .. } = self.stopped;
        let stuck = if self.endless { time_limit + memory_limit } else { self.runs - self.diverged };
        self.nothing_ended() && stuck >= MAX_STUCK_RUNS
    }

    /// What stopped the runs of which none came to its end. The bound on events begins low: that it stopped some says
    /// little, if others were allowed more.
    fn obstacle(&self) -> Obstacle {
        match self.stopped {
            Stopped { memory_limit: 1.., .. } => Obstacle::Memory,
            Stopped { time_limit: 1.., .. } => Obstacle::Time,
            Stopped { .. } => Obstacle::Events,
        }
    }

    /// The figures of predictions, which a session has as soon as it predicts.
    pub(crate) fn predictions(&mut self) -> &mut PredictionFigures {
        self.predictions.get_or_insert_default()
    }

    /// No more is going to be counted.
    pub fn finish(&mut self) {
        self.seconds = self.start.elapsed().as_secs_f64();
    }

    /// Says at which limit every run was stopped.
    pub(crate) fn nothing_known(&self, config: &HuntConfig) -> HuntError {
        let limits = &config.limits;
        let (time, has_all) = Pace::whole_run_limit(config.budget, limits.time);
        let (limit, flag) = match self.obstacle() {
            Obstacle::Events => (format!("{} events", config.max_events), "--max-events"),
            Obstacle::Time => (
                format!("{} s", time.as_secs_f64()),
                if has_all { "--time-limit" } else { "a quarter of --budget" },
            ),
            Obstacle::Memory => (format!("{} MiB", limits.memory >> 20), "--memory-limit"),
        };
        HuntError::NothingEnded { runs: self.runs, limit, flag }
    }
}
