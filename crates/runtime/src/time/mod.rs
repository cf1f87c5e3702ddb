//! Virtual time: clocks, sleeping, and timers.
//!
//! Time stands still while threads run, jumps when all of them wait, and moves a little whenever a clock is read, so
//! that a loop that waits for a time to come ends. The functions that a program calls are in [`calls`]. Timed waits of
//! primitives are in `sync` and `os`.

pub mod alarms;
mod calls;
pub mod clock;
mod countdown;
pub mod sleep;
pub mod timers;
