//! Clips, replayed: as they are, and after the source has moved.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::build;
use crate::subjects::{self, Line};

/// The line of `replay --json`.
#[derive(Deserialize)]
pub struct Replay {
    pub runs: u64,
    pub reproduced: u64,
}

pub fn run(times: u64) -> Result<bool, Box<dyn Error>> {
    let tool = build::tool()?;
    let mut good = true;
    for (source, subject) in subjects::all()? {
        // A copy, because it is going to be edited.
        let directory = tempfile::tempdir()?;
        copy_sources(source.parent().ok_or("a subject has a directory")?, directory.path())?;
        let copy = directory.path().join(source.file_name().ok_or("a subject has a name")?);
        let findings = subjects::hunt(&tool, &copy, false, directory.path())?;
        for finding in &findings {
            let Line::Finding { kind, locations, clip, .. } = finding else { continue };
            let before = replay(&tool, clip, times)?;
            let original = fs::read_to_string(&copy)?;
            let function = locations.first().map_or("", |place| place.function.as_str());
            fs::write(&copy, with_lines_above(&original, function))?;
            let after = replay(&tool, clip, times)?;
            fs::write(&copy, original)?;
            good &= before.reproduced == times && after.reproduced == times;
            println!(
                "{:<20} {kind:<12} {} of {}, and {} of {} after three blank lines and a comment above the bug",
                subject.name, before.reproduced, before.runs, after.reproduced, after.runs
            );
        }
    }
    Ok(good)
}

fn copy_sources(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c" || extension == "h") {
            fs::copy(&path, to.join(path.file_name().ok_or("a file has a name")?))?;
        }
    }
    Ok(())
}

/// Inserts the lines above the first definition, and just inside the function where the bug shows.
fn with_lines_above(source: &str, function: &str) -> String {
    const LINES: &str = "\n\n\n/* moved */\n";
    let mut text = String::new();
    let mut inside = false;
    for (number, line) in source.lines().enumerate() {
        if number == 0 {
            text.push_str(LINES);
        }
        text.push_str(line);
        text.push('\n');
        if !inside && line.contains(&format!("{function}(")) && line.trim_end().ends_with('{') {
            inside = true;
            text.push_str(LINES);
        }
    }
    text
}

pub fn replay(tool: &Path, clip: &Path, times: u64) -> Result<Replay, Box<dyn Error>> {
    replay_by(Command::new(tool).arg("replay"), clip, times)
}

/// The same by a command of which only the arguments are missing.
pub fn replay_by(command: &mut Command, clip: &Path, times: u64) -> Result<Replay, Box<dyn Error>> {
    let output = command.arg(clip).args(["--trust", "--json", "--times", &times.to_string()]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(serde_json::from_str(line)?)
}
