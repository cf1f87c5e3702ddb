//! The subjects, and what `hunt` makes of them.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::build;

/// A subject's data file, as far as it is used here.
#[derive(Deserialize)]
pub struct Subject {
    pub name: String,
    pub expected: Vec<Expected>,
    #[serde(default)]
    pub published: Published,
}

/// What papers say of it.
#[derive(Default, Deserialize)]
pub struct Published {
    #[serde(default)]
    pub pecan: Vec<Pecan>,
}

/// A row of Table 1 of the PECAN paper.
#[derive(Deserialize)]
pub struct Pecan {
    pub events: u64,
    pub races: u64,
    #[serde(default)]
    pub atomicity: u64,
    #[serde(default)]
    pub atomic_set: u64,
    pub real: u64,
    pub exceptions: u64,
    pub false_alarms: u64,
}

#[derive(Deserialize)]
pub struct Expected {
    pub kind: String,
    pub function: String,
    pub message: Option<String>,
}

/// Every subject, with its source file, in the order of names.
pub fn all() -> Result<BTreeMap<PathBuf, Subject>, Box<dyn Error>> {
    let mut subjects = BTreeMap::new();
    for entry in std::fs::read_dir(build::root().join("subjects/c"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let subject = toml::from_str(&std::fs::read_to_string(&path)?)?;
            subjects.insert(path.with_extension("c"), subject);
        }
    }
    Ok(subjects)
}

/// A `finding` or the `summary` of `hunt --json`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line {
    Finding { kind: String, failure: String, locations: Vec<Place>, clip: PathBuf, run: u64 },
    Summary { runs: u64, seconds: f64 },
}

#[derive(Deserialize)]
pub struct Place {
    pub function: String,
}

/// Runs `hunt` with default settings.
pub fn hunt(tool: &Path, source: &Path, fixed: bool, out: &Path) -> Result<Vec<Line>, Box<dyn Error>> {
    let mut command = Command::new(tool);
    command.arg("hunt").arg(source).arg("--json").arg("--out").arg(out);
    if fixed {
        command.arg("--cc-arg=-DFIXED");
    }
    let output = command.output()?;
    let lines = String::from_utf8(output.stdout)?;
    let lines: Vec<Line> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    if lines.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(lines)
}

impl Expected {
    /// The finding is this one.
    pub fn is(&self, line: &Line) -> bool {
        let Line::Finding { kind, failure, locations, .. } = line else { return false };
        *kind == self.kind
            && locations.iter().any(|place| place.function == self.function)
            && self.message.as_ref().is_none_or(|message| failure.contains(message))
    }
}

/// Hunts on the subjects called `names`, or on all of them.
pub fn run(names: &[String]) -> Result<bool, Box<dyn Error>> {
    let tool = build::tool()?;
    let out = tempfile::tempdir()?;
    let mut good = true;
    println!(
        "{:<20} {:<12} {:>6} {:>8} {:>7}   fixed version",
        "subject", "finding", "run", "runs", "seconds"
    );
    let wanted = |subject: &Subject| names.is_empty() || names.contains(&subject.name);
    for (source, subject) in all()?.into_iter().filter(|(_, subject)| wanted(subject)) {
        let lines = hunt(&tool, &source, false, out.path())?;
        let fixed = hunt(&tool, &source, true, out.path())?;
        let false_alarms = fixed.iter().filter(|line| matches!(line, Line::Finding { .. })).count();
        let (runs, seconds) = lines
            .iter()
            .find_map(|line| match line {
                Line::Summary { runs, seconds } => Some((*runs, *seconds)),
                Line::Finding { .. } => None,
            })
            .ok_or("no summary")?;
        for expected in &subject.expected {
            let run = lines.iter().find_map(|line| match line {
                Line::Finding { run, .. } if expected.is(line) => Some(run.to_string()),
                _ => None,
            });
            good &= run.is_some() && false_alarms == 0;
            println!(
                "{:<20} {:<12} {:>6} {runs:>8} {seconds:>7.2}   {}",
                subject.name,
                expected.kind,
                run.unwrap_or_else(|| "never".into()),
                if false_alarms == 0 { "clean".into() } else { format!("{false_alarms} FALSE") },
            );
        }
    }
    Ok(good)
}
