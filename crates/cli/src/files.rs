//! Files that the user or a clip names, each read up to a limit.

use std::path::Path;

use threadbare_program::bounded::{self, ReadError};

use crate::problem::Problem;

/// A clip of the most events it can have takes a tenth of this.
pub const CLIP_LIMIT: u64 = 64 << 20;
/// A trace of a hundred million events.
pub const TRACE_LIMIT: u64 = 1 << 30;
pub const PATTERNS_LIMIT: u64 = 1 << 20;
/// The input is kept in memory, and the program reads it anew in every run.
pub const INPUT_LIMIT: u64 = 256 << 20;

/// Reads a file that the user has named. It may be a pipe.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    bounded::read(path, limit).map_err(|error| problem(path, error))
}

/// Reads a file that a clip has named.
pub fn read_regular(path: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    bounded::read_regular(path, limit).map_err(|error| problem(path, error))
}

/// The problem of a file that could not be read.
pub fn problem(path: &Path, error: ReadError) -> Problem {
    let problem = Problem::file("read", path, &error);
    match error {
        ReadError::TooLarge(_) => problem.help("no option raises this limit; is it the file that you mean?"),
        ReadError::Io(_) | ReadError::NotAFile => problem,
    }
}
