//! What another tool warned of, as a sequence to be tried.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::{Place, Sequence, gcc_json, report, sarif};

/// One warning or report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The rule and the place, such as `core.NullDereference jobs.c:46:19`. No two warnings of a reader have the same.
    pub id: String,
    /// What kind of warning it is: `data race`, or the name of a rule.
    pub rule: String,
    /// In the other tool's words.
    pub message: String,
    pub sequence: Sequence,
    /// It says that something goes wrong at the last location. The locations before it only explain how. A report of a
    /// race or a deadlock is about all of its locations.
    pub is_about_last: bool,
}

/// Why nothing was read.
#[derive(Debug, Error)]
pub enum WarningsError {
    #[error("there is no stack trace, report or warning with a place in the user's code")]
    Nothing,
    #[error("it is not JSON as it should be")]
    Json(#[from] serde_json::Error),
}

/// Reads the warnings of a file, whatever it is: SARIF, the JSON of gcc or of Threadbare, or the text of reports. SARIF says
/// what it is, so it may have no warnings. Anything else has at least one, or it is not a report.
pub fn read(bytes: &[u8]) -> Result<Vec<Warning>, WarningsError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let warnings = match text.chars().next() {
        Some('{') if is_sarif(text) => return Ok(sarif::read(text)?),
        Some('[') if text[1..].trim_start().starts_with(['{', ']']) => gcc_json::read(text)?,
        _ => {
            let mut warnings = report::read(text);
            warnings.extend(gcc_json::read_among(text));
            with_unique_ids(warnings)
        }
    };
    if warnings.is_empty() { Err(WarningsError::Nothing) } else { Ok(warnings) }
}

/// Threadbare's own JSON is one object a line, each with a `type`.
fn is_sarif(text: &str) -> bool {
    !text.starts_with("{\"type\"") && text.contains("\"runs\"")
}

impl Warning {
    /// A warning whose id has its place. If that is not known, it is the first one of the sequence's last step.
    pub(super) fn new(rule: &str, message: &str, place: Option<String>, sequence: Sequence) -> Warning {
        let place = place.or_else(|| Some(short(&sequence.steps.last()?.waypoints().first()?.place)));
        let id = place.into_iter().fold(rule.to_owned(), |id, place| format!("{id} {place}"));
        let (rule, message) = (rule.to_owned(), message.to_owned());
        Warning { id, rule, message, sequence, is_about_last: false }
    }
}

/// A place with the base name of its file.
fn short(place: &Place) -> String {
    match place {
        Place::Line { file, line, .. } => format!("{}:{line}", file.base_name()),
        Place::Function(name) => name.clone(),
    }
}

/// Numbers those that would have the same id.
pub(super) fn with_unique_ids(mut warnings: Vec<Warning>) -> Vec<Warning> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for warning in &mut warnings {
        let plain = warning.id.clone();
        let count = counts.entry(plain.clone()).or_default();
        while !used.insert(warning.id.clone()) {
            *count += 1;
            warning.id = format!("{plain} #{}", *count + 1);
        }
    }
    warnings
}
