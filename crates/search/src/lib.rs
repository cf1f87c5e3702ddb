//! What every search shares.
//!
//! A [`Strategy`] decides which schedules are tried, and in which order. It is asked for one [`Schedule`] after the
//! other and told what came of each ([`Feedback`]). It never runs anything itself, so any number of workers may make
//! the runs it asks for. [`Search`] is the loop of one worker: ask, run, tell.
//!
//! | module | holds |
//! |---|---|
//! | [`strategy`] | the trait [`Strategy`] and what it speaks in: [`StrategyEntry`], [`Schedule`], [`Token`], [`Next`], [`Conclusion`] |
//! | [`feedback`] | what a strategy is told of a run |
//! | [`anomaly`] | what a strategy may conclude besides failures: [`Anomaly`], its [`AnomalyKind`], [`Evidence`] |
//! | [`knowledge`] | what becomes known of the program as a search goes: shared memory, threads, length |
//! | [`general`] | the strategies that are no method of their own: `dfs`, `random`, `pct`, `pos`, `surw`, the two bounds |
//! | [`outlast`] | a search that lets sleeps be outlasted behind all else |
//! | [`reorder`] | what a trace says of its events, and other schedules of the same events |
//! | [`tuple`](mod@tuple) | where a schedule stands in a ranking |
//! | [`backlog`] | schedules still to be tried, in bounded memory |
//!
//! # A strategy in one file
//!
//! A strategy that draws a policy for each run is a [`general::Sampler`]:
//!
//! ```
//! use threadbare_search::general::Sampler;
//! use threadbare_search::{Next, Settings, Strategy};
//! use threadbare_trace::{Plan, Policy};
//!
//! let settings = Settings::new(Plan::default());
//! let mut strategy = Sampler::new("coin", settings, |_, random| Policy::Random { seed: random.next() });
//! let Next::Run(schedule) = strategy.ask() else { panic!("a sampler never ends") };
//! assert_eq!(schedule.method, "coin");
//! ```

pub mod anomaly;
pub mod backlog;
pub mod feedback;
pub mod general;
pub mod knowledge;
mod one_worker;
pub mod outlast;
pub mod reorder;
pub mod strategy;
pub mod tuple;

pub use anomaly::{Anomaly, AnomalyKind, Evidence, Harm, Participant};
pub use feedback::{CodePoint, Decision, Feedback, GuidedDecision, Operation, Recording};
pub use knowledge::Knowledge;
pub use one_worker::{Answered, Search, run_schedule};
pub use strategy::{
    Conclusion, Explored, Next, Outstanding, Schedule, Settings, Strategy, StrategyEntry, Token,
};
pub use threadbare_wire::{Condition, OperationPatience, PendingRecord, Record, Round, Update};
pub use tuple::{InvalidTuple, Tuple, Variables};
