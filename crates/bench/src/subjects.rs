//! The subjects, and what `hunt` makes of them.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use crate::build;
use crate::clips::{self, Replay};

/// Of each clip.
const REPLAYS: u64 = 5;

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

/// Every subject in C, with its source file, in the order of names.
pub fn all() -> Result<BTreeMap<PathBuf, Subject>, Box<dyn Error>> {
    all_in("subjects/c", "c")
}

/// Every subject in a folder, with its source file, which ends in `extension`.
fn all_in(folder: &str, extension: &str) -> Result<BTreeMap<PathBuf, Subject>, Box<dyn Error>> {
    let mut subjects = BTreeMap::new();
    for entry in std::fs::read_dir(build::root().join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let subject = toml::from_str(&std::fs::read_to_string(&path)?)?;
            subjects.insert(path.with_extension(extension), subject);
        }
    }
    Ok(subjects)
}

/// A `finding` or the `summary` of `hunt --json`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line {
    Finding { kind: String, failure: String, locations: Vec<SourceLine>, clip: PathBuf, run: u64 },
    Summary { runs: u64, seconds: f64 },
}

/// A location of a finding in `--json`.
#[derive(Deserialize)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    pub function: String,
}

impl SourceLine {
    /// In Rust, the function's path goes before its name.
    fn is_in(&self, function: &str) -> bool {
        self.function.rsplit("::").next() == Some(function)
    }
}

/// Runs `hunt` with default settings.
pub fn hunt(tool: &Path, source: &Path, fixed: bool, out: &Path) -> Result<Vec<Line>, Box<dyn Error>> {
    let mut command = Command::new(tool);
    command.arg("hunt").arg(source).arg("--json").arg("--out").arg(out);
    if fixed {
        command.arg("--cc-arg=-DFIXED");
    }
    lines(&mut command)
}

/// What a hunt prints.
fn lines(command: &mut Command) -> Result<Vec<Line>, Box<dyn Error>> {
    let output = command.output()?;
    let lines = String::from_utf8(output.stdout)?;
    let lines: Vec<Line> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    if lines.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(lines)
}

/// The subjects of one language, and the command that hunts in them.
struct Language {
    tool: PathBuf,
    subjects: BTreeMap<PathBuf, Subject>,
    /// The project that they are the programs of, and where it is built.
    project: Option<(PathBuf, PathBuf)>,
    out: TempDir,
}

impl Language {
    fn c() -> Result<Language, Box<dyn Error>> {
        Ok(Language { tool: build::tool()?, subjects: all()?, project: None, out: tempfile::tempdir()? })
    }

    fn rust() -> Result<Language, Box<dyn Error>> {
        let tool = build::tool()?.with_file_name("cargo-threadbare");
        let manifest = build::root().join("subjects/rust/Cargo.toml");
        let target = tool.with_file_name("rust-subjects");
        let subjects = all_in("subjects/rust/src/bin", "rs")?;
        Ok(Language { tool, subjects, project: Some((manifest, target)), out: tempfile::tempdir()? })
    }

    /// Runs `hunt`, or `cargo threadbare run`, with default settings.
    fn hunt(&self, source: &Path, subject: &Subject, fixed: bool) -> Result<Vec<Line>, Box<dyn Error>> {
        if self.project.is_none() {
            return hunt(&self.tool, source, fixed, self.out.path());
        }
        let mut command = self.command();
        command.args(["run", "--json", "--bin", &subject.name]).arg("--out").arg(self.out.path());
        if fixed {
            command.args(["--features", "fixed"]);
        }
        lines(&mut command)
    }

    fn replay(&self, clip: &Path) -> Result<Replay, Box<dyn Error>> {
        clips::replay_by(self.command().arg("replay"), clip, REPLAYS)
    }

    /// The command, to which the subcommand and its arguments are still to be added.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.tool);
        if let Some((manifest, target)) = &self.project {
            // What the cargo that runs this has set for it is not meant for the project.
            for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER"] {
                command.env_remove(variable);
            }
            command.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true").arg("threadbare");
            command.current_dir(manifest.parent().unwrap_or(manifest));
        }
        command
    }
}

impl Expected {
    /// The finding is this one.
    pub fn is(&self, line: &Line) -> bool {
        let Line::Finding { kind, failure, locations, .. } = line else { return false };
        *kind == self.kind
            && locations.iter().any(|place| place.is_in(&self.function))
            && self.message.as_ref().is_none_or(|message| failure.contains(message))
    }
}

/// Hunts on the subjects called `names`, or on all of them, and replays what is found.
pub fn run(names: &[String], rust: bool) -> Result<bool, Box<dyn Error>> {
    let language = if rust { Language::rust()? } else { Language::c()? };
    let mut good = true;
    println!(
        "{:<20} {:<12} {:>6} {:>8} {:>7}   {:<10} fixed version",
        "subject", "finding", "run", "runs", "seconds", "replayed"
    );
    let wanted = |subject: &Subject| names.is_empty() || names.contains(&subject.name);
    for (source, subject) in language.subjects.iter().filter(|(_, subject)| wanted(subject)) {
        let lines = language.hunt(source, subject, false)?;
        let rows = rows(&language, subject, &lines)?;
        let fixed = language.hunt(source, subject, true)?;
        let false_alarms = findings(&fixed).count();
        let unexpected = findings(&lines).filter(|line| !subject.expected.iter().any(|one| one.is(line)));
        let unexpected = unexpected.count();
        good &= false_alarms == 0 && unexpected == 0;
        for (found, row) in rows {
            good &= found;
            let verdict = if false_alarms == 0 { "clean".into() } else { format!("{false_alarms} FALSE") };
            println!("{row} {verdict}");
        }
        if unexpected > 0 {
            println!("{:<20} {unexpected} UNEXPECTED", subject.name);
        }
    }
    Ok(good)
}

fn findings(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| matches!(line, Line::Finding { .. }))
}

/// For each finding expected: whether it was made and its clip replayed every time, and the row without the last
/// column.
fn rows(
    language: &Language,
    subject: &Subject,
    lines: &[Line],
) -> Result<Vec<(bool, String)>, Box<dyn Error>> {
    let summary = lines.iter().find_map(|line| match line {
        Line::Summary { runs, seconds } => Some((*runs, *seconds)),
        Line::Finding { .. } => None,
    });
    let (runs, seconds) = summary.ok_or("no summary")?;
    let row = |expected: &Expected| {
        let found = lines.iter().find_map(|line| match line {
            Line::Finding { run, clip, .. } if expected.is(line) => Some((run, clip)),
            _ => None,
        });
        let (run, reproduced) = match found {
            Some((run, clip)) => (run.to_string(), language.replay(clip)?.reproduced),
            None => ("never".into(), 0),
        };
        let row = format!(
            "{:<20} {:<12} {run:>6} {runs:>8} {seconds:>7.2}   {:<10}",
            subject.name,
            expected.kind,
            format!("{reproduced} of {REPLAYS}"),
        );
        Ok((reproduced == REPLAYS, row))
    };
    subject.expected.iter().map(row).collect()
}
