//! Predicts, from the trace of one run, what other schedules of it would have shown: data races, atomicity
//! violations, violations of atomic sets, deadlocks; each with a schedule that brings it about.
//!
//! This is the method of PECAN (Huang and Zhang, "Persuasive Prediction of Concurrency Access Anomalies", ISSTA
//! 2011). The modules are its steps, in its order:
//!
//! | module | step | section |
//! |---|---|---|
//! | [`pattern`] | anomalies as data | 3 |
//! | [`history`], [`lockset`], [`region`], [`variable`] | what is known of each event | 4.1 |
//! | [`communication`], [`order`] | the partial order | 4.2, 5.1 |
//! | [`units`], [`gap`] | the indexed graph, with equal events merged | 5.1 |
//! | [`search`] | pattern-directed search, the mutation condition | 5.2 |
//! | [`schedule`] | schedule generation | 6.1 |
//! | [`prediction`] | all of it | 2 |
//!
//! and what goes beyond the paper: [`exposed`] leaves out what locks make impossible, [`reads`] knows what threads would
//! see in another order,
//! [`dependence`] and [`closure`] find what is certain without a second run,
//! [`deadlock`] finds lock cycles, [`witness`] checks every schedule before it is used.
//!
//! Nothing here runs a program: [`plan`] says how to ask for a schedule, and [`confirm`] what to look for in
//! the trace that comes of it.

pub mod closure;
pub mod communication;
pub mod confirm;
pub mod deadlock;
pub mod dependence;
pub mod error;
pub mod exposed;
pub mod gap;
mod hash;
pub mod history;
pub mod lockset;
pub mod order;
pub mod pattern;
pub mod plan;
pub mod prediction;
pub mod reads;
pub mod region;
pub mod schedule;
pub mod search;
pub mod units;
pub mod variable;
pub mod witness;

pub use error::PredictError;
pub use history::History;
pub use pattern::{Kind, Pattern};
pub use prediction::{Prediction, Predictions, Predictor, predict};
pub use region::Tier;
pub use witness::Verdict;
