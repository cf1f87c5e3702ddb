//! Stack traces and reports as they are printed, pasted or saved.
//!
//! | text | becomes |
//! |---|---|
//! | a stack trace: gdb's `bt`, a Rust backtrace or panic, AddressSanitizer | one location |
//! | stack traces of several threads: `thread apply all bt` | the locations of all of them at the same time |
//! | data race: ThreadSanitizer, Helgrind, Threadbare | both accesses at the same time |
//! | lock order inversion: ThreadSanitizer, Helgrind | each thread takes its first lock; then all are before their second |
//! | use after free, double free: ThreadSanitizer, AddressSanitizer | the first free, then the use |
//! | deadlock: Threadbare | the waiting threads at the same time |
//! | anomaly: `threadbare predict` | its accesses in order |
//!
//! A location is the innermost frame of a stack that is in the user's code. The frames around it are its callers.
//! Threads that wait for others to end are left out of a group, if there are two more: they have no part in it.
//!
//! A text may have several reports, and anything else around them, such as the program's own output.

mod debugger;
mod frame_line;
mod lines;
mod panic;
mod sanitizer;
mod threadbare;
mod user_code;

use super::warning::{Warning, with_unique_ids};
use super::{Sequence, Step};
use lines::{Kind, Section};

/// Reads all reports of a text, in their order. There are none, if nothing in it has a place in the user's code.
pub fn read(text: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for Section { kind, title, stacks, places } in lines::sections(text) {
        warnings.extend(match kind {
            Kind::Sanitizer => sanitizer::warning(&title, &stacks),
            Kind::Panic => panic::warning(&title, &stacks),
            Kind::Debugger => debugger::warning(&stacks),
            Kind::Threadbare => threadbare::warning(&title, &places),
            Kind::Json => threadbare::json_warning(&title),
        });
    }
    with_unique_ids(warnings)
}

/// A sequence of one step.
fn single(step: Step) -> Sequence {
    Sequence { steps: vec![step] }
}
