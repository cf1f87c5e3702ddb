//! Predicts, from the trace of one run, what other schedules of it would have shown: data races, atomicity
//! violations, violations of atomic sets, deadlocks; each with a schedule that brings it about.
//!
//! This is the method of PECAN (Huang and Zhang, "Persuasive Prediction of Concurrency Access Anomalies", ISSTA
//! 2011). What it says of the events of a trace, and how it makes schedules of them, is in
//! [`threadbare_search::reorder`]. The modules here are its other steps, in its order:
//!
//! | module | step | section |
//! |---|---|---|
//! | [`pattern`] | anomalies as data | 3 |
//! | [`units`], [`gap`] | the indexed graph, with equal events merged | 5.1 |
//! | [`search`] | pattern-directed search, the mutation condition | 5.2 |
//! | [`prediction`] | all of it | 2 |
//! | [`confirm`] | what to look for in the run that is to show an anomaly | 6.3 |
//!
//! Beyond the paper, [`exposed`] leaves out what locks make impossible, and [`deadlock`] finds lock cycles.
//!
//! Two strategies make runs of predictions. [`Forecast`] runs the schedule of each prediction, in case the program fails;
//! it is a member of the hunt. [`Confirming`] follows each prediction to a verdict: it happened, with this harm, or it is
//! false; it is the command `predict`.

mod anomaly;
pub mod confirm;
mod confirming;
pub mod deadlock;
pub mod exposed;
mod forecast;
pub mod gap;
pub mod pattern;
pub mod prediction;
pub mod search;
pub mod units;

pub use anomaly::anomaly;
pub use confirming::{ConfirmConfig, Confirming};
pub use forecast::Forecast;
pub use pattern::Pattern;
pub use prediction::{Prediction, Predictions, Predictor, predict};
pub use threadbare_search::AnomalyKind;
use threadbare_search::StrategyEntry;
pub use threadbare_search::reorder::{History, Tier, TraceError, Verdict};

/// The method as a strategy of the hunt.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "predict",
    summary: "the schedules that recorded runs predict to go wrong",
    make: |settings| Box::new(Forecast::new(settings)),
};
