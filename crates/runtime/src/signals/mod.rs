//! Signals: those that threads send and wait for, and those that the program would die of.
//!
//! The functions that a program calls are in [`calls`]. Timers that send signals are in `time`. Termination without a
//! signal is in `entry`.

mod calls;
pub mod handlers;
pub mod masks;
pub mod sending;

use std::ffi::c_int;

/// The bit of a signal in a mask.
fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}
