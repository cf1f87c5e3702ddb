//! What a trace says of its events, and other schedules of the same events.
//!
//! [`History`] knows, for each event of a trace, its locks, its unit of work, its variable, and what it is ordered with.
//! [`Generator`](schedule::Generator) rearranges the events so that a [`Target`] comes about, and
//! [`Checker`](witness::Checker) says of the result whether it is certain. The steps are those of PECAN (Huang and Zhang,
//! "Persuasive Prediction of Concurrency Access Anomalies", ISSTA 2011) and what later work added to it:
//!
//! | module | step | section |
//! |---|---|---|
//! | [`history`], [`lockset`], [`region`], [`variable`] | what is known of each event | 4.1 |
//! | [`communication`], [`order`] | the partial order | 4.2, 5.1 |
//! | [`schedule`] | schedule generation | 6.1 |
//! | [`reads`] | what threads would see in another order | beyond the paper |
//! | [`seeing`] | schedules in which a read sees another write | beyond the paper |
//! | [`dependence`], [`closure`] | what is certain without a second run | beyond the paper |
//! | [`witness`] | the check of every schedule before it is used | beyond the paper |
//! | [`plan`] | a schedule as the turns of a plan | 6.2 |
//!
//! Nothing here looks for anomalies or for other paths: that is the work of `predict` and `variants`. Nothing here runs a
//! program.

pub mod closure;
pub mod communication;
pub mod dependence;
pub mod error;
pub mod history;
pub mod lockset;
pub mod order;
pub mod plan;
pub mod reads;
pub mod region;
pub mod schedule;
pub mod seeing;
pub mod variable;
pub mod witness;

pub use error::TraceError;
pub use history::{History, LocalIndex};
pub use region::Tier;
pub use schedule::Target;
pub use witness::Verdict;
