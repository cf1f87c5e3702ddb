//! Memory accesses and calls of the program, as the compiler's instrumentation and libc's memory functions report them.
//!
//! A hook decides whether an access counts and records it. Which memory counts is the business of `memory`, and who
//! runs next that of `schedule`.

pub mod accesses;
mod annotations;
mod atomics;
pub mod calls;
pub mod copies;
mod strings;
pub mod watched;
