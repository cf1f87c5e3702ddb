//! Virtual time: clocks, sleeping, and timers.
//!
//! The virtual time stands still while threads run and jumps when a wait ends by time. To it, a clock adds the work of
//! the thread that looks ([`work`]), so that work takes time and a loop that waits for a time to come ends. The functions
//! that a program calls are in [`calls`]. Timed waits of primitives are in `sync` and `os`.

pub mod alarms;
mod calls;
pub mod clock;
mod countdown;
pub mod sleep;
pub mod timers;
pub mod work;
