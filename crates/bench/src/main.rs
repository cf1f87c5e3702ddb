//! Measures Threadbare, on this machine, now.
//!
//! Everything is measured side by side in one run and printed as ratios next to the goals, because machines
//! differ and are noisy; absolute figures are printed for orientation.

mod build;
mod clips;
mod determinism;
mod engine;
mod predict;
mod subjects;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures Threadbare")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What runs, switches and accesses cost
    Engine,
    /// The same plan twice, for many plans of every subject: is the log the same, byte for byte?
    Determinism {
        /// Random plans for each subject
        #[arg(long, default_value_t = 200)]
        plans: u64,
    },
    /// `hunt` with default settings on every subject, buggy and fixed
    Subjects,
    /// What prediction costs, on generated traces
    Predict {
        /// Events of the longest trace
        #[arg(long, default_value_t = 10_000_000)]
        most: usize,
    },
    /// Every subject's clip, replayed many times, also after lines were added above the bug
    Clips {
        /// Replays of each clip
        #[arg(long, default_value_t = 100)]
        times: u64,
    },
}

fn main() -> ExitCode {
    let result: Result<bool, Box<dyn Error>> = match Arguments::parse().command {
        Command::Engine => engine::run(),
        Command::Determinism { plans } => determinism::run(plans),
        Command::Subjects => subjects::run(),
        Command::Predict { most } => predict::run(most),
        Command::Clips { times } => clips::run(times),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
