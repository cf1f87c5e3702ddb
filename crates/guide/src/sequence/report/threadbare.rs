//! Findings of Threadbare itself: the lines below a headline that name places, and `--json`.

use serde::Deserialize;
use threadbare_trace::ThreadId;

use super::frame_line::file_and_line;
use super::single;
use crate::sequence::{FilePattern, Place, Sequence, Step, ThreadName, Warning, Waypoint};

/// Whether an indented line names a place: where it failed, where a thread waits, or an access of an anomaly.
pub fn is_place(line: &str) -> bool {
    line.starts_with("  ") && waypoint(line.trim()).is_some()
}

/// The sequence of a finding.
pub fn warning(title: &str, lines: &[String]) -> Option<Warning> {
    let rule = title.split([':', ',', '(']).next().unwrap_or_default().trim();
    let sequence = if let Some(both) = race(title) {
        single(both)
    } else if rule == "deadlock" {
        // Who waits for a thread to end has no part in the deadlock, if there are others.
        let waiting: Vec<&String> = lines.iter().filter(|line| !line.contains(" to end (")).collect();
        let waiting = if waiting.len() < 2 { lines.iter().collect() } else { waiting };
        single(Step::together(waiting.iter().filter_map(|line| waypoint(line)).collect())?)
    } else {
        let waypoints: Vec<Waypoint> = lines.iter().filter_map(|line| waypoint(line)).collect();
        match rule {
            "data race" => single(Step::together(waypoints)?),
            _ => Sequence { steps: waypoints.into_iter().map(Step::Pass).collect() },
        }
    };
    (!sequence.steps.is_empty()).then(|| Warning::new(rule, title, None, sequence))
}

/// The place of a line of one of these forms:
///
/// ```text
/// in check_amounts at account_ring.c:76, thread 0
/// thread 0.1 waits to lock accounts[1].lock (account_ring_dl.c:43 in transfer), held by thread 0.2
/// thread 0.2: read accounts[1].amount at account_ring.c:35 in deposit
/// ```
fn waypoint(line: &str) -> Option<Waypoint> {
    if let Some(rest) = line.strip_prefix("thread ") {
        let (thread, rest) = rest.split_once(' ')?;
        let is_access = thread.ends_with(':');
        let thread = thread.trim_end_matches(':').parse().ok()?;
        let (_, place) = if is_access { rest.rsplit_once(" at ")? } else { rest.split_once(" (")? };
        let place = place.split([' ', ')']).next()?;
        return at(place, thread);
    }
    let (before, thread) = line.rsplit_once(", thread ")?;
    let (_, place) =
        before.rsplit_once("at ").filter(|_| before.starts_with("in ") || before.starts_with("at "))?;
    at(place, thread.parse().ok()?)
}

/// Both accesses of `data race: read of x by thread 0.2 in f (a.c:35), write of x by thread 0.1 in g (a.c:52)`.
fn race(title: &str) -> Option<Step> {
    let accesses = title.strip_prefix("data race: ")?;
    let access = |text: &str| {
        let (_, after) = text.rsplit_once(" by thread ")?;
        let thread = after.split(' ').next()?.parse().ok()?;
        at(after.rsplit_once('(')?.1.trim_end_matches(')'), thread)
    };
    let (first, second) = accesses.split_once("), ")?;
    Step::together(vec![access(first)?, access(second)?])
}

fn at(place: &str, thread: ThreadId) -> Option<Waypoint> {
    let (file, line) = file_and_line(place)?;
    let place = Place::Line { file: FilePattern::new(file)?, line, column: None };
    Some(Waypoint { thread: Some(ThreadName::Id(thread)), ..Waypoint::anywhere(place) })
}

#[derive(Deserialize)]
struct Finding {
    kind: String,
    #[serde(default)]
    failure: String,
    #[serde(default)]
    locations: Vec<FindingPlace>,
    #[serde(default)]
    threads: Vec<String>,
}

#[derive(Deserialize)]
struct FindingPlace {
    file: String,
    line: u32,
}

/// A line of `--json` that is a finding.
pub fn json_warning(line: &str) -> Option<Warning> {
    let finding: Finding = serde_json::from_str(line).ok()?;
    let is_race = finding.kind == "data-race";
    let place = |(i, place): (usize, &FindingPlace)| {
        let file = FilePattern::new(place.file.as_str())?;
        let place = (place.line > 0).then_some(Place::Line { file, line: place.line, column: None })?;
        // Only the threads of a race are in the order of the locations.
        let thread = finding.threads.get(i).filter(|_| is_race).and_then(|thread| thread.parse().ok());
        Some(Waypoint { thread: thread.map(ThreadName::Id), ..Waypoint::anywhere(place) })
    };
    let mut waypoints: Vec<Waypoint> = finding.locations.iter().enumerate().filter_map(place).collect();
    if !is_race && finding.kind != "deadlock" {
        waypoints.truncate(1);
    }
    Some(Warning::new(&finding.kind, &finding.failure, None, single(Step::together(waypoints)?)))
}
