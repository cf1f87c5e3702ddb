//! Standard output, whose end may be closed or full.

use std::fmt;
use std::io::{self, Write};

use crate::problem::Problem;

/// Prints a line.
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($argument)*))) };
}
pub(crate) use say;

/// Prints at once, so that what was said is there whatever comes next.
pub fn print(text: fmt::Arguments<'_>) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(problem)
}

/// Standard output cannot be written to. Whoever reads it may stop at any time: that is no news to anybody.
pub fn problem(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Problem::silent(),
        _ => Problem::new(format!("cannot write to standard output: {error}")),
    }
}
