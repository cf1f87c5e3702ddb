//! The sequences that the options name.

use std::path::{Path, PathBuf};

use threadbare_guide::Sequence;
use threadbare_guide::sequence::{Suite, warning};
use threadbare_hunt::Verdict;
use threadbare_program::bounded;

use crate::arguments::SequenceOptions;
use crate::files::{self, SEQUENCES_LIMIT};
use crate::problem::Problem;

/// A sequence that is to be tried.
pub struct Task {
    /// Empty if there is only one.
    pub name: String,
    pub sequence: Sequence,
    /// What is to come of it, if it is a test.
    pub expected: Option<Verdict>,
    /// It comes from a report of another tool, which may speak of places that the program does not have.
    pub is_reported: bool,
    /// A failure counts if it is at the last location, however a run came there.
    pub is_about_last: bool,
}

impl Task {
    fn new(name: String, sequence: Sequence) -> Task {
        Task { name, sequence, expected: None, is_reported: false, is_about_last: false }
    }
}

/// The sequences of the options, in their order.
pub fn tasks(options: &SequenceOptions) -> Result<Vec<Task>, Problem> {
    let mut tasks = Vec::new();
    for sequence in &options.through {
        let name = if options.through.len() > 1 { sequence.to_string() } else { String::new() };
        if sequence.waypoints().any(|waypoint| !waypoint.callers.is_empty()) {
            threadbare_report::print_note(
                "a location counts however it is reached: what stands before > is not looked at",
            );
        }
        tasks.push(Task::new(name, sequence.clone()));
    }
    for path in &options.from {
        let warnings = warning::read(&read(path)?).map_err(|error| {
            Problem::file("read", path, error).help(
                "it is to be a stack trace, a report of ThreadSanitizer or Threadbare, SARIF, or what gcc writes with \
                 -fdiagnostics-format=json",
            )
        })?;
        if warnings.is_empty() {
            threadbare_report::print_note(&format!("{} has no warnings", path.display()));
        }
        tasks.extend(warnings.into_iter().map(|warning| Task {
            is_reported: true,
            is_about_last: warning.is_about_last,
            ..Task::new(warning.id, warning.sequence)
        }));
    }
    for path in &options.sequences {
        let text = String::from_utf8(read(path)?)
            .map_err(|error| Problem::file("read", path, error.utf8_error()))?;
        let suite: Suite = text.parse().map_err(|error| Problem::file("read", path, error))?;
        tasks.extend(suite.entries.into_iter().map(|entry| Task {
            expected: Some(entry.expectation),
            ..Task::new(entry.name, entry.sequence)
        }));
    }
    match tasks.is_empty() && options.from.is_empty() {
        true => Err(Problem::new("there is no sequence to drive the program through")
            .help("name locations with --through FILE:LINE,FILE:LINE,…")),
        false => Ok(tasks),
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, Problem> {
    if path != Path::new("-") {
        return files::read(path, SEQUENCES_LIMIT);
    }
    bounded::read_stream(std::io::stdin().lock(), SEQUENCES_LIMIT)
        .map_err(|error| files::problem(Path::new("standard input"), error))
}
