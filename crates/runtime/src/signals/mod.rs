//! Signals: those that threads send and wait for, and those that the program would die of.
//!
//! Timers that send signals are in `time`. Termination without a signal is in `entry`.

pub mod handlers;
pub mod sending;
