//! The contract between a strategy and whoever runs what it asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use threadbare_program::Program;
use threadbare_trace::{Plan, ThreadId, Waypoint};

use crate::anomaly::{Anomaly, AnomalyKind, Evidence};
use crate::{Feedback, Tuple};

/// Decides which schedules are tried, and in which order.
///
/// The caller asks for schedules with [`ask`](Strategy::ask), runs them, and answers with
/// [`tell`](Strategy::tell), naming each schedule by its token. It may ask for several before it answers any; the
/// strategy then knows less, and that is all. A schedule that was never run is never answered. The same answers in the
/// same order make the same search: nothing else goes into a decision.
///
/// A strategy finds out itself which memory is shared: it makes plans that learn, and what they learnt comes back in
/// the [`Feedback`].
pub trait Strategy: Send {
    /// The name that users know it by.
    fn name(&self) -> &'static str;

    /// What to run next.
    fn ask(&mut self) -> Next;

    /// What came of the schedule with this token.
    fn tell(&mut self, token: Token, feedback: &Feedback);

    /// What came of a schedule that another strategy asked for. The program is the same, so the strategy can learn
    /// which memory is shared, which threads there are, and how long runs get.
    fn observe(&mut self, feedback: &Feedback);

    /// From now on the strategy gives schedules first whose plans force at most so many turns.
    fn prefer_short(&mut self, _max_turns: u64) {}

    /// What the strategy has concluded since it was last asked, besides the failures that every caller sees itself.
    fn conclusions(&mut self) -> Vec<Conclusion> {
        Vec::new()
    }

    /// What another strategy has concluded about the same program.
    fn take_up(&mut self, _conclusion: &Conclusion) {}

    /// Schedules are drawn at random: another seed makes another search, and the search has no end.
    fn is_random(&self) -> bool {
        false
    }

    /// How many schedules were given up because there was no memory to remember them.
    fn dropped(&self) -> u64 {
        0
    }

    /// What was explored, if the strategy tells classes of equivalent interleavings apart.
    fn explored(&self) -> Option<Explored> {
        None
    }
}

/// An exploration of classes of equivalent interleavings, in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Classes that were explored, each by one run.
    pub classes: u64,
    /// Runs that were found to be in a class that was explored before.
    pub redundant: u64,
    /// Runs whose schedule could not be followed.
    pub blocked: u64,
    /// Runs that only found out which memory is shared, or how long runs are.
    pub learning: u64,
    /// About how many classes are left, as long as there are any.
    pub left: Option<u64>,
}

/// A strategy that users can name.
#[derive(Clone, Copy)]
pub struct StrategyEntry {
    pub name: &'static str,
    /// What it does, as `--help` says it.
    pub summary: &'static str,
    pub make: fn(Settings) -> Box<dyn Strategy>,
}

/// A strategy's answer to [`ask`](Strategy::ask).
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Run(Schedule),
    /// What is next depends on schedules that have not been answered for.
    Wait,
    /// Every schedule that the strategy would try was tried.
    Exhausted,
}

/// Names one schedule among all that a strategy has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A schedule to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub token: Token,
    pub plan: Plan,
    /// The name of the strategy that it comes from.
    pub method: &'static str,
    /// Where it stands in the ranking, if there is one.
    pub tuple: Option<Tuple>,
    /// The strategy wants the trace of the run.
    pub traced: bool,
    /// The strategy wants what the run wrote down, without names.
    pub recorded: bool,
}

impl Schedule {
    pub fn new(token: Token, method: &'static str, plan: Plan) -> Schedule {
        Schedule { token, plan, method, tuple: None, traced: false, recorded: false }
    }
}

/// Schedules that were asked for and not answered yet, each with what its strategy must remember of it.
#[derive(Debug)]
pub struct Outstanding<T> {
    issued: u64,
    open: BTreeMap<Token, T>,
}

impl<T> Default for Outstanding<T> {
    fn default() -> Outstanding<T> {
        Outstanding { issued: 0, open: BTreeMap::new() }
    }
}

impl<T> Outstanding<T> {
    /// A token for a new schedule.
    pub fn issue(&mut self, remembered: T) -> Token {
        let token = Token(self.issued);
        self.issued += 1;
        self.open.insert(token, remembered);
        token
    }

    /// What was remembered of this schedule; `None` if it was answered before.
    pub fn answer(&mut self, token: Token) -> Option<T> {
        self.open.remove(&token)
    }

    /// How many schedules were ever asked for.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// What is remembered of those that were not answered.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.open.values()
    }
}

/// What strategies can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What all plans have in common: what the program sees as random, and the most events there may be.
    pub plan: Plan,
    /// For `preemption-bound` and `delay-bound`: no schedule with more.
    pub bound: u32,
    /// For `rank`: these tuples in this order, instead of the paper's.
    pub tuples: Option<Vec<Tuple>>,
    /// Bytes for what is still to be tried and what is known already.
    pub memory: u64,
    /// How many runs there may be at most.
    pub runs: Option<u64>,
    /// The program that is searched, for strategies that look at its code.
    pub program: Option<Arc<Program>>,
    /// For `race-equivalent`: only branches count, and an array is one variable.
    pub branches_only: bool,
}

impl Settings {
    pub fn new(plan: Plan) -> Settings {
        let memory = 1 << 30;
        Settings { plan, bound: 2, tuples: None, memory, runs: None, program: None, branches_only: false }
    }
}

/// Something that a strategy has concluded from the runs.
#[derive(Debug)]
pub enum Conclusion {
    /// A run with so many events was predicted from. So many candidates had no schedule: they were found false without
    /// a run.
    Analysed { events: u64, infeasible: u64 },
    /// An anomaly of this kind was predicted for the first time.
    Predicted { kind: AnomalyKind },
    /// The trace of a run cannot be analysed, for this reason.
    NotAnalysed { reason: String },
    /// A run has passed more locations of a sequence than any before it, by these threads, and `plan` makes it again.
    Driven { passes: Vec<ThreadId>, plan: Box<Plan> },
    /// Something was predicted, and its schedules did not bring it about. It has happened when a run has passed these
    /// places, in their order.
    NotShown { waypoints: Vec<Waypoint> },
    /// An anomaly was predicted, and a run showed it.
    Confirmed { anomaly: Box<Anomaly>, evidence: Box<Evidence> },
}
