//! A planted race, which must be found, and its fixed twin, which must be clean.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_executor::Limits;
use threadbare_hunt::{Budget, Event, HuntConfig, StrategyChoice, Summary, run};
use threadbare_report::Check;

use crate::problem::Problem;
use crate::target;

const C: &str = include_str!("race.c");
const RUST: &str = include_str!("race.txt");
const MANIFEST: &str =
    "[package]\nname = \"planted\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
/// More than enough for a race between two threads that take one step each.
const RUNS: u64 = 200;
const ADVICE: &str = "please report it, with all that this command prints";

/// Hunts in the C program and in its twin.
pub fn in_c(cancelled: &Arc<AtomicBool>) -> Check {
    let what = "planted race in C";
    let hunts = tempfile::tempdir().map_err(|error| Problem::new(error.to_string())).and_then(|directory| {
        let source = directory.path().join("race.c");
        fs::write(&source, C).map_err(|error| Problem::file("write", &source, error))?;
        let planted = hunt(&source, &[], cancelled)?;
        let fixed = hunt(&source, &["-DFIXED".to_owned()], cancelled)?;
        Ok((planted, fixed))
    });
    match hunts {
        Err(problem) => Check::error(what, problem.to_string(), ADVICE),
        Ok((planted, _)) if planted.findings == 0 => {
            Check::error(what, format!("not found in {} runs", planted.runs), ADVICE)
        }
        Ok((_, fixed)) if fixed.findings > 0 => {
            Check::error(what, "found, but also where it is fixed", ADVICE)
        }
        Ok((_, fixed)) => Check::ok(what, format!("found; nothing in {} runs of its fixed twin", fixed.runs)),
    }
}

fn hunt(source: &Path, arguments: &[String], cancelled: &Arc<AtomicBool>) -> Result<Summary, Problem> {
    let subject = target::prepare_own(source, arguments)?;
    let config = HuntConfig {
        budget: Budget::runs(RUNS),
        stop_at_first: true,
        limits: Limits { cancelled: Arc::clone(cancelled), ..Limits::default() },
        out: source.with_extension("out"),
        ..HuntConfig::new(StrategyChoice::Hunt)
    };
    Ok(run(&subject, &config, &mut |_: Event<'_>| Ok(()))?)
}

/// Has `cargo threadbare` test a project of its own. The command is another program, which is installed beside this.
pub fn in_rust() -> Check {
    let what = "planted race in a cargo project";
    let Some(command) = cargo_threadbare() else {
        let advice = "install both commands: cargo install --path crates/cli";
        return Check::warning(what, "cargo-threadbare is not beside this program", advice);
    };
    match test_project(&command) {
        Err(error) => Check::error(what, error.to_string(), ADVICE),
        Ok(said) => {
            match (said.contains("FAIL"), said.contains(" planted clean ") && said.contains("PASS")) {
                (true, true) => Check::ok(what, "found; nothing in its fixed twin"),
                (false, true) => Check::error(what, "not found", ADVICE),
                (_, false) => Check::error(what, format!("it said:\n{}", said.trim_end()), ADVICE),
            }
        }
    }
}

fn cargo_threadbare() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    Some(this.with_file_name("cargo-threadbare")).filter(|path| path.exists())
}

/// What `cargo threadbare test` prints for the project.
fn test_project(command: &Path) -> std::io::Result<String> {
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join("src"))?;
    fs::write(directory.path().join("Cargo.toml"), MANIFEST)?;
    fs::write(directory.path().join("src/lib.rs"), RUST)?;
    let output = Command::new(command)
        .args(["threadbare", "test", "--lib", "--offline", "--budget", &format!("{RUNS}runs")])
        .current_dir(directory.path())
        // What is set for another project is not meant for this one.
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout);
    Ok(if said.is_empty() { text(&output.stderr) } else { said })
}
