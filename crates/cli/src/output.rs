//! Writing to standard output, which may be closed or full.

use std::fmt;
use std::io::{self, Write};

use crate::problem::Problem;

/// Prints and flushes, so that the text is visible at once.
pub fn print(text: fmt::Arguments<'_>) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(problem)
}

/// The problem of a standard output that cannot be written to. A closed pipe is not reported: its reader stopped on
/// purpose.
pub fn problem(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Problem::silent(),
        _ => Problem::new(format!("cannot write to standard output: {error}")),
    }
}
