//! Which schedules to try first, with nothing to go on.
//!
//! A [`Strategy`] is asked for one schedule after the other and told what came of each. [`Rank`] is the method of
//! this crate: schedules are ranked by how many preemptions, variables, threads and loop repeats they take, and
//! tried in that order (RankChecker). The others are what it is measured by, and there for those who know them:
//! [`dfs()`], [`RandomWalk`], [`Pct`], [`Pos`], [`preemption_bound()`], [`delay_bound()`] and [`Surw`].
//!
//! A strategy never runs anything itself: any number of workers may make the runs it asks for.

mod backlog;
mod contested;
mod covering;
mod delay_bound;
mod dfs;
mod feedback;
mod ground;
mod orders;
mod pct;
mod pos;
mod preemption_bound;
mod random;
mod rank;
mod surw;
mod tree;
mod tuple;

use threadbare_trace::Plan;

pub use covering::{Sequence, covering_array};
pub use delay_bound::delay_bound;
pub use dfs::dfs;
pub use feedback::{Decision, Feedback, Operation};
pub use ground::Ground;
pub use pct::Pct;
pub use pos::Pos;
pub use preemption_bound::preemption_bound;
pub use random::RandomWalk;
pub use rank::Rank;
pub use surw::Surw;
pub use tuple::{InvalidTuple, Tuple, Variables};

/// Decides which schedules are tried, and in which order.
///
/// The caller asks for schedules with [`next`](Strategy::next), runs them, and gives what came of them to
/// [`take`](Strategy::take): in the order in which they were asked for, each exactly once. It may ask for several
/// before it gives anything back; the strategy then knows less, and that is all. The same answers make the same
/// search: nothing else goes into a decision.
///
/// A strategy finds out itself which memory is shared: it makes plans that learn, and what they learnt comes back
/// in the [`Feedback`].
pub trait Strategy: Send {
    /// The name that users know it by.
    fn name(&self) -> &'static str;

    /// What to run next.
    fn next(&mut self) -> Next;

    /// What came of the schedule that was asked for first among those not answered yet.
    fn take(&mut self, feedback: &Feedback);

    /// What came of a schedule that another strategy asked for: the program is the same, so what it says of shared
    /// memory, threads and events is worth knowing.
    fn overhear(&mut self, feedback: &Feedback);

    /// From now on, schedules whose plans force no more than so many turns are wanted; others if there are none.
    fn prefer(&mut self, _most_turns: u64) {}

    /// Schedules are drawn at random: another seed makes another search, and there is no end to it.
    fn draws(&self) -> bool {
        false
    }

    /// Schedules that were given up because there was no memory to remember them by.
    fn dropped(&self) -> u64 {
        0
    }
}

/// A strategy's answer.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Run(Schedule),
    /// What is next depends on schedules that have not been answered for.
    Wait,
    /// Every schedule that the strategy would try was tried.
    Exhausted,
}

/// A schedule to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub plan: Plan,
    /// The name of the strategy that it comes from.
    pub method: &'static str,
    /// Where it stands in the ranking, if there is one.
    pub tuple: Option<Tuple>,
    /// The strategy wants to have the trace.
    pub traced: bool,
}

impl Schedule {
    pub fn new(method: &'static str, plan: Plan) -> Schedule {
        Schedule { plan, method, tuple: None, traced: false }
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
}

impl Settings {
    pub fn new(plan: Plan) -> Settings {
        Settings { plan, bound: 2, tuples: None, memory: 1 << 30 }
    }
}

/// The names of all strategies, the crate's own first.
pub const NAMES: [&str; 8] =
    ["rank", "dfs", "random", "pct", "pos", "preemption-bound", "delay-bound", "surw"];

/// The strategy with this name.
pub fn by_name(name: &str, settings: Settings) -> Option<Box<dyn Strategy>> {
    Some(match name {
        "rank" => Box::new(Rank::new(settings)),
        "dfs" => Box::new(dfs(settings)),
        "random" => Box::new(RandomWalk::new(settings)),
        "pct" => Box::new(Pct::new(settings)),
        "pos" => Box::new(Pos::new(settings)),
        "preemption-bound" => Box::new(preemption_bound(settings)),
        "delay-bound" => Box::new(delay_bound(settings)),
        "surw" => Box::new(Surw::new(settings)),
        _ => return None,
    })
}
