//! Table 1 of the PECAN paper, on the subjects that we have: what `predict` makes of each, next to what the paper says.

mod recall;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::build;
use crate::subjects::{self, Expected, Pecan, SourceLine, Subject};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A line of `predict --json`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Finding(Finding),
    Summary(Summary),
}

#[derive(Deserialize)]
struct Finding {
    kind: String,
    pattern: String,
    failure: String,
    unit: Option<String>,
    harm: Option<String>,
    locations: Vec<SourceLine>,
}

impl Finding {
    /// The bug is what the anomaly did to the program, or is the anomaly.
    fn shows(&self, expected: &Expected) -> bool {
        match &expected.message {
            Some(message) => self.failure.contains(message),
            None => self.kind == expected.kind || !self.failure.is_empty(),
        }
    }

    fn describe(&self) -> String {
        let name = |place: &SourceLine| {
            let file = Path::new(&place.file).file_name().unwrap_or_default();
            format!("{}:{}", file.to_string_lossy(), place.line)
        };
        let places: Vec<String> = self.locations.iter().map(name).collect();
        let unit = self.unit.as_ref().map_or(String::new(), |unit| format!(", unit by {unit}"));
        let harm = self.harm.as_deref().unwrap_or_default();
        format!("{} ({}{unit}) at {}: {harm} {}", self.kind, self.pattern, places.join(", "), self.failure)
    }
}

#[derive(Deserialize)]
struct Summary {
    events: u64,
    confirmed: u64,
    failed: u64,
    #[serde(rename = "false")]
    not_so: u64,
    kinds: BTreeMap<String, Counts>,
}

#[derive(Deserialize)]
struct Counts {
    predicted: u64,
}

impl Summary {
    fn predicted(&self, kind: &str) -> u64 {
        self.kinds.get(kind).map_or(0, |counts| counts.predicted)
    }

    fn row(&self) -> String {
        row([
            self.events,
            self.predicted("data-race"),
            self.predicted("atomicity-violation"),
            self.predicted("atomic-set-violation"),
            self.confirmed,
            self.failed,
            self.not_so,
        ])
    }
}

fn paper(row_of_paper: &Pecan) -> String {
    let Pecan { events, races, atomicity, atomic_set, real, exceptions, false_alarms } = *row_of_paper;
    row([events, races, atomicity, atomic_set, real, exceptions, false_alarms])
}

fn row(figures: [u64; 7]) -> String {
    figures.map(|figure| format!("{figure:>6}")).join("")
}

fn predict(tool: &Path, source: &Path, fixed: bool, out: &Path) -> Result<Vec<Line>> {
    let mut command = Command::new(tool);
    command.arg("predict").arg(source).arg("--json").arg("--out").arg(out);
    if fixed {
        command.arg("--cc-arg=-DFIXED");
    }
    let output = command.output()?;
    let lines = String::from_utf8(output.stdout)?;
    let lines: Vec<Line> = lines.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    match lines.last() {
        Some(Line::Summary(_)) => Ok(lines),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// The subjects of the paper, or those called `names`.
fn wanted(names: &[String]) -> Result<BTreeMap<PathBuf, Subject>> {
    let mut subjects = subjects::all()?;
    subjects.retain(|_, subject| match names {
        [] => !subject.published.pecan.is_empty(),
        names => names.contains(&subject.name),
    });
    Ok(subjects)
}

pub fn run(names: &[String], recall: Option<u64>) -> Result<bool> {
    match recall {
        Some(runs) => recall::run(runs, names),
        None => table(names),
    }
}

/// Predicts on the subjects of the paper, or on the subjects called `names`. Good if every known bug is found, and none
/// in the fixed versions. What else is confirmed there is printed, to be judged.
fn table(names: &[String]) -> Result<bool> {
    let tool = build::tool()?;
    let out = tempfile::tempdir()?;
    let heads =
        ["events", "race", "AV", "ASV", "real", "fail", "false"].map(|head| format!("{head:>6}")).join("");
    println!("{:<18} {:<8}{heads}   known bug", "subject", "");
    let mut good = true;
    for (source, subject) in wanted(names)? {
        let mut name = subject.name.as_str();
        for fixed in [false, true] {
            let lines = predict(&tool, &source, fixed, out.path())?;
            let findings = lines.iter().filter_map(|line| match line {
                Line::Finding(finding) => Some(finding),
                Line::Summary(_) => None,
            });
            let found = subject.expected.iter().any(|bug| findings.clone().any(|finding| finding.shows(bug)));
            good &= found != fixed || subject.expected.is_empty();
            let summary = lines.iter().find_map(|line| match line {
                Line::Summary(summary) => Some(summary.row()),
                Line::Finding(_) => None,
            });
            let version = if fixed { "fixed" } else { "ours" };
            let verdict = match found {
                true => "found",
                false if subject.expected.is_empty() => "none known",
                false => "not found",
            };
            println!("{name:<18} {version:<8}{}   {verdict}", summary.unwrap_or_default());
            name = "";
            if fixed {
                findings.for_each(|finding| println!("{:<18}   {}", "", finding.describe().trim_end()));
            }
        }
        for row_of_paper in &subject.published.pecan {
            println!("{:<18} {:<8}{}", "", "paper", paper(row_of_paper));
        }
    }
    Ok(good)
}
