//! Files that the user or a clip names, each read up to a limit.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use threadbare_executor::keep;
use threadbare_program::bounded::{self, ReadError};

use crate::problem::Problem;

/// A clip of the most events it can have takes a tenth of this.
pub const CLIP_LIMIT: u64 = 64 << 20;
/// A trace of a hundred million events.
pub const TRACE_LIMIT: u64 = 1 << 30;
pub const PATTERNS_LIMIT: u64 = 1 << 20;
/// Reports of analysers are seldom larger than a few megabytes.
pub const SEQUENCES_LIMIT: u64 = 256 << 20;
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

/// Runs a command and collects what it prints. One that prints more than `limit` is stopped.
pub fn output(command: &mut Command, limit: u64) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), ReadError> {
    keep(command)?;
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Side by side, because a command that fills one of both waits for its reader.
    let (stdout, stderr) = std::thread::scope(|scope| {
        let stderr = scope.spawn(|| collect(stderr, limit));
        let stdout = collect(stdout, limit);
        if stdout.is_err() {
            let _ = child.kill();
        }
        (stdout, stderr.join().unwrap_or_else(|_| Err(io::Error::other("a reader failed").into())))
    });
    if stderr.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    Ok((status, stdout?, stderr?))
}

fn collect(stream: Option<impl Read>, limit: u64) -> Result<Vec<u8>, ReadError> {
    stream.map_or_else(|| Ok(Vec::new()), |stream| bounded::read_stream(stream, limit))
}
