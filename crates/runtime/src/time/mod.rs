//! Virtual time: clocks, sleeping, and timers.
//!
//! Time passes when the scheduler says so, never by itself. Timed waits of primitives are in `sync` and `os`.

pub mod alarms;
pub mod clock;
mod countdown;
pub mod timers;
