//! Crates that people use, at their current versions: their own tests under `cargo test` and under
//! `cargo threadbare test --no-hunt` (the facade and the instrumentation are in, the system schedules), and hunts
//! in them.

mod comparison;
mod hunts;
mod package;
mod peers;
mod results;
mod suite;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::build;
use package::PACKAGES;
use suite::Suite;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Args)]
pub struct Options {
    /// These packages only
    packages: Vec<String>,
    /// Put sources, builds, logs and clips here, and use again what is there; a build that is used again has no
    /// time [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Hunt in the suites instead of comparing their results
    #[arg(long)]
    hunt: bool,
    /// Hunts in each suite, each with a seed of its own
    #[arg(long, default_value_t = 5, value_name = "N", requires = "hunt")]
    hunts: u64,
    /// The seed of the first hunt; the next have the seeds that follow
    #[arg(long, default_value_t = 0, requires = "hunt")]
    seed: u64,
    /// Runs of each test in a hunt
    #[arg(long, default_value_t = 200, requires = "hunt")]
    runs: u64,
    /// What they may take; a test that makes fewer runs in this time is named
    #[arg(long, default_value_t = 30, requires = "hunt")]
    seconds: u64,
    /// Measure two little programs side by side with loom and shuttle instead
    #[arg(long, conflicts_with_all = ["hunt", "packages"])]
    peers: bool,
}

pub fn run(options: &Options) -> Result<bool> {
    let tool = build::tool()?.with_file_name("cargo-threadbare");
    let temporary = tempfile::tempdir()?;
    let directory = options.keep.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(directory)?;
    let directory = directory.canonicalize()?;
    if options.peers {
        return peers::run(&directory, &tool);
    }
    if options.hunt {
        hunts::print_header();
        let &Options { seed, hunts, runs, seconds, .. } = options;
        return each(options, &directory, &tool, |suite| {
            hunts::run(suite, seed..seed + hunts, runs, seconds)
        });
    }
    comparison::print_header();
    each(options, &directory, &tool, comparison::run)
}

/// Fetches each suite that is wanted and does `what` with it. One that cannot be had or does not build is said
/// and counts as bad; the others go on.
fn each(
    options: &Options,
    directory: &Path,
    tool: &Path,
    what: impl Fn(&Suite) -> Result<bool>,
) -> Result<bool> {
    let wanted = &options.packages;
    if let Some(unknown) = wanted.iter().find(|name| PACKAGES.iter().all(|package| package.name != **name)) {
        return Err(format!("{unknown} is none of the packages that are measured").into());
    }
    let mut good = true;
    for package in PACKAGES {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == package.name) {
            continue;
        }
        let result = package.fetch(directory).and_then(|source| what(&Suite::new(package, source, tool)?));
        good &= result.unwrap_or_else(|error| {
            println!("{:<18} {error}", package.name);
            false
        });
    }
    Ok(good)
}
