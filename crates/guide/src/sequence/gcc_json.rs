//! Warnings of `gcc -fanalyzer -fdiagnostics-format=json`.
//!
//! A file has an array of diagnostics for each compilation, one after the other. The path of a warning is of one thread:
//! gcc does not know of others. A diagnostic without a path is its location. Errors of compilation and notes are no
//! warnings about a run, and are left out.

use serde::Deserialize;
use serde_json::Deserializer;

use super::through::variables;
use super::warning::{Warning, with_unique_ids};
use super::{FilePattern, Place, Sequence, Step, Waypoint};

#[derive(Deserialize)]
struct Diagnostic {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    message: String,
    /// `-Wanalyzer-double-free`, or `-Werror=analyzer-double-free`.
    option: Option<String>,
    #[serde(default)]
    locations: Vec<Location>,
    #[serde(default)]
    path: Vec<Event>,
}

#[derive(Deserialize)]
struct Location {
    caret: Option<Position>,
}

#[derive(Deserialize)]
struct Event {
    location: Option<Position>,
}

#[derive(Deserialize)]
struct Position {
    file: String,
    line: u32,
    column: Option<u32>,
}

/// Reads the warnings of all compilations.
pub fn read(text: &str) -> Result<Vec<Warning>, serde_json::Error> {
    let mut warnings = Vec::new();
    for compilation in Deserializer::from_str(text).into_iter::<Vec<Diagnostic>>() {
        warnings.extend(compilation?.iter().filter_map(warning));
    }
    Ok(with_unique_ids(warnings))
}

/// Reads the warnings from the output of a build: a line for each compilation, with other lines in between.
pub fn read_among(text: &str) -> Vec<Warning> {
    let compilations = text.lines().filter(|line| line.starts_with("[{"));
    with_unique_ids(compilations.flat_map(|line| read(line).unwrap_or_default()).collect())
}

fn warning(diagnostic: &Diagnostic) -> Option<Warning> {
    if diagnostic.kind != "warning" && diagnostic.option.is_none() {
        return None;
    }
    let option = diagnostic.option.as_deref().unwrap_or("warning");
    let rule = option.trim_start_matches("-Werror=").trim_start_matches("-W");
    let caret = diagnostic.locations.iter().find_map(|location| location.caret.as_ref());
    let thread = variables().next().filter(|_| !diagnostic.path.is_empty());
    let path = diagnostic.path.iter().filter_map(|event| event.location.as_ref());
    // The last event of a path is the warning itself.
    let positions = path.chain(caret);
    let waypoint = |position: &Position| {
        Some(Waypoint { thread: thread.clone(), ..Waypoint::anywhere(place(position)?) })
    };
    let mut waypoints: Vec<Waypoint> = positions.filter_map(waypoint).collect();
    waypoints.dedup();
    let sequence = Sequence { steps: waypoints.into_iter().map(Step::Pass).collect() };
    let place = caret.map(id_place);
    let warning = || Warning::new(rule, &diagnostic.message, place, sequence.clone());
    (!sequence.steps.is_empty()).then(|| Warning { is_about_last: true, ..warning() })
}

fn place(position: &Position) -> Option<Place> {
    let file = FilePattern::new(position.file.trim_start_matches("./"))?;
    (position.line > 0).then_some(Place::Line { file, line: position.line, column: None })
}

/// `jobs.c:46:19`.
fn id_place(position: &Position) -> String {
    let base = position.file.rsplit('/').next().unwrap_or_default();
    let column = position.column.map(|column| format!(":{column}")).unwrap_or_default();
    format!("{base}:{}{column}", position.line)
}
