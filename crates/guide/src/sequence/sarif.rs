//! Warnings of static analysers in SARIF 2.1.0, the format that most of them can write.
//!
//! Each result becomes one sequence:
//!
//! - If it has a code flow, the locations of the first one. What a thread flow has is in one thread, in its order. Several
//!   thread flows are several threads; `executionOrder` merges them, and without it they follow each other.
//! - Else its locations and related locations. Of a race or deadlock they are at the same time. Of anything else they are
//!   in order, with the result's own locations last: they are where it goes wrong.
//!
//! Columns are only in the ids of warnings. Locations on the same line that follow each other are one waypoint.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::through::variables;
use super::warning::{Warning, with_unique_ids};
use super::{FilePattern, Place, Sequence, Step, ThreadName, Waypoint};

/// How many `uriBaseId`s may be relative to one another.
const MAX_BASES: usize = 16;
/// The words of a rule or message that make its locations be at the same time.
const SIMULTANEOUS: [&str; 6] =
    ["race", "deadlock", "lock order", "lock-order", "lock inversion", "concurrent"];

#[derive(Deserialize)]
struct Log {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    #[serde(default)]
    results: Option<Vec<SarifResult>>,
    #[serde(default)]
    artifacts: Vec<Artifact>,
    #[serde(default)]
    original_uri_base_ids: BTreeMap<String, ArtifactLocation>,
    #[serde(default)]
    thread_flow_locations: Vec<ThreadFlowLocation>,
    #[serde(default)]
    tool: Tool,
}

#[derive(Default, Deserialize)]
struct Tool {
    #[serde(default)]
    driver: Driver,
}

#[derive(Default, Deserialize)]
struct Driver {
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(default)]
    id: String,
}

#[derive(Deserialize)]
struct Artifact {
    location: Option<ArtifactLocation>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: Option<String>,
    uri_base_id: Option<String>,
    index: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: Option<String>,
    rule_index: Option<i64>,
    rule: Option<RuleReference>,
    #[serde(default)]
    message: Message,
    #[serde(default)]
    locations: Vec<Location>,
    #[serde(default)]
    related_locations: Vec<Location>,
    #[serde(default)]
    code_flows: Vec<CodeFlow>,
}

#[derive(Deserialize)]
struct RuleReference {
    id: Option<String>,
    index: Option<i64>,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodeFlow {
    #[serde(default)]
    thread_flows: Vec<ThreadFlow>,
}

#[derive(Deserialize)]
struct ThreadFlow {
    #[serde(default)]
    locations: Vec<ThreadFlowLocation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadFlowLocation {
    location: Option<Location>,
    index: Option<i64>,
    execution_order: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: Option<PhysicalLocation>,
    #[serde(default)]
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: Option<ArtifactLocation>,
    region: Option<Region>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: Option<u32>,
    start_column: Option<u32>,
}

/// Reads the results of all runs.
pub fn read(text: &str) -> Result<Vec<Warning>, serde_json::Error> {
    let log: Log = serde_json::from_str(text)?;
    let warnings = log.runs.iter().flat_map(|run| {
        let results = run.results.as_deref().unwrap_or_default();
        results.iter().filter_map(|result| run.warning(result))
    });
    Ok(with_unique_ids(warnings.collect()))
}

impl Run {
    fn warning(&self, result: &SarifResult) -> Option<Warning> {
        let rule = self.rule(result);
        let from_flow =
            result.code_flows.first().map(|flow| self.flow(flow)).filter(|steps| !steps.is_empty());
        let steps = from_flow.unwrap_or_else(|| self.locations(result, &rule));
        let place = result.locations.iter().find_map(|location| self.id_place(location));
        let is_about_last = matches!(steps.last(), Some(Step::Pass(_)));
        let warning = |steps| Warning::new(&rule, &result.message.text, place, Sequence { steps });
        (!steps.is_empty()).then(|| Warning { is_about_last, ..warning(steps) })
    }

    fn rule(&self, result: &SarifResult) -> String {
        let reference = result.rule.as_ref();
        let named = result.rule_id.clone().or_else(|| reference?.id.clone());
        let index = result.rule_index.or_else(|| reference?.index);
        let indexed =
            || self.tool.driver.rules.get(usize::try_from(index?).ok()?).map(|rule| rule.id.clone());
        named.or_else(indexed).unwrap_or_else(|| "warning".to_owned())
    }

    /// The steps of a code flow.
    fn flow(&self, flow: &CodeFlow) -> Vec<Step> {
        let mut located: Vec<(i64, Waypoint)> = Vec::new();
        for (thread_flow, thread) in flow.thread_flows.iter().zip(variables()) {
            located.extend(self.thread_flow(thread_flow, &thread));
        }
        // Only if all say when they are: a merge of some would be a guess.
        if located.iter().all(|(order, _)| *order >= 0) {
            located.sort_by_key(|(order, _)| *order);
        }
        let mut waypoints: Vec<Waypoint> = located.into_iter().map(|(_, waypoint)| waypoint).collect();
        waypoints.dedup();
        waypoints.into_iter().map(Step::Pass).collect()
    }

    /// The waypoints of a thread, each with its place in the order of all, or -1.
    fn thread_flow(&self, flow: &ThreadFlow, thread: &ThreadName) -> Vec<(i64, Waypoint)> {
        let waypoint = |step: &ThreadFlowLocation| {
            let shared =
                step.index.and_then(|index| self.thread_flow_locations.get(usize::try_from(index).ok()?));
            let location = step.location.as_ref().or_else(|| shared?.location.as_ref())?;
            let order = step.execution_order.or_else(|| shared?.execution_order).unwrap_or(-1);
            let waypoint = Waypoint::anywhere(self.place(location)?);
            Some((order, Waypoint { thread: Some(thread.clone()), ..waypoint }))
        };
        flow.locations.iter().filter_map(waypoint).collect()
    }

    /// The steps of a result without a code flow.
    fn locations(&self, result: &SarifResult, rule: &str) -> Vec<Step> {
        let all = result.related_locations.iter().chain(&result.locations);
        let mut places: Vec<Place> = all.filter_map(|location| self.place(location)).collect();
        places.dedup();
        let text = format!("{rule} {}", result.message.text).to_lowercase();
        let is_simultaneous = SIMULTANEOUS.iter().any(|word| text.contains(word));
        let waypoints = places.into_iter().map(Waypoint::anywhere);
        if is_simultaneous {
            Step::together(waypoints.collect()).into_iter().collect()
        } else {
            waypoints.map(Step::Pass).collect()
        }
    }

    /// The line of a location, or its function if it has no line.
    fn place(&self, location: &Location) -> Option<Place> {
        if let Some((file, line, _)) = self.position(location) {
            return Some(Place::Line { file: FilePattern::new(file)?, line, column: None });
        }
        let names = location.logical_locations.iter();
        let mut names =
            names.filter_map(|logical| logical.fully_qualified_name.as_ref().or(logical.name.as_ref()));
        names.find(|name| !name.is_empty()).cloned().map(Place::Function)
    }

    /// `jobs.c:46:19`.
    fn id_place(&self, location: &Location) -> Option<String> {
        let (file, line, column) = self.position(location)?;
        let base = file.rsplit('/').next().unwrap_or_default();
        Some(column.map_or(format!("{base}:{line}"), |column| format!("{base}:{line}:{column}")))
    }

    fn position(&self, location: &Location) -> Option<(String, u32, Option<u32>)> {
        let physical = location.physical_location.as_ref()?;
        let region = physical.region.as_ref()?;
        let line = region.start_line.filter(|line| *line > 0)?;
        let column = region.start_column.filter(|column| *column > 0);
        Some((self.path(physical.artifact_location.as_ref()?)?, line, column))
    }

    /// The path of an artifact, with the directories that its URI is relative to.
    fn path(&self, location: &ArtifactLocation) -> Option<String> {
        let listed = || {
            let index = usize::try_from(location.index?).ok()?;
            self.artifacts.get(index)?.location.as_ref()
        };
        let location = if location.uri.is_some() { location } else { listed()? };
        let mut uri = location.uri.clone()?;
        let mut base = location.uri_base_id.as_ref();
        for _ in 0..MAX_BASES {
            if is_whole(&uri) {
                break;
            }
            let Some(found) = base.and_then(|base| self.original_uri_base_ids.get(base)) else { break };
            if let Some(directory) = &found.uri {
                let slash = if directory.ends_with('/') { "" } else { "/" };
                uri = format!("{directory}{slash}{uri}");
            }
            base = found.uri_base_id.as_ref();
        }
        Some(path_of(&uri)).filter(|path| !path.is_empty())
    }
}

fn is_whole(uri: &str) -> bool {
    uri.starts_with('/') || uri.contains("://") || uri.starts_with("file:")
}

/// The path of a `file:` URI or of a relative one.
fn path_of(uri: &str) -> String {
    let path = match uri.strip_prefix("file://") {
        // What comes before the path is the name of a machine.
        Some(rest) => &rest[rest.find('/').unwrap_or(0)..],
        None => uri.strip_prefix("file:").unwrap_or(uri),
    };
    percent_decoded(path).trim_start_matches("./").to_owned()
}

/// The text with `%20` and the like replaced.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
