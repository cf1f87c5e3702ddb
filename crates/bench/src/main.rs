//! Measures Threadbare, on this machine, now.
//!
//! Everything is measured side by side in one run and printed as ratios next to the goals, because machines
//! differ and are noisy; absolute figures are printed for orientation.

mod build;
mod clips;
mod determinism;
mod engine;
mod guide;
mod interrupt;
mod memory;
mod pecan;
mod predict;
mod program;
mod random_programs;
mod rank;
mod real;
mod rust;
mod snapshots;
mod states;
mod subjects;
mod variants;

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
    /// How long the tool takes to end when it is interrupted, whatever it does
    Interrupt,
    /// What runs of ten million events take
    Memory,
    /// The same plan twice, for many plans of every subject: is the log the same, byte for byte?
    Determinism {
        /// Random plans for each subject
        #[arg(long, default_value_t = 200)]
        plans: u64,
    },
    /// Runs that begin like an earlier one: from the start, and from a snapshot of that one
    Snapshots,
    /// States of every subject: does the same number ever stand for two of them?
    States {
        /// In all
        #[arg(long, default_value_t = 1_000_000)]
        states: u64,
    },
    /// `hunt` with default settings on every subject, buggy and fixed, and what it finds replayed
    Subjects {
        /// Those in Rust, with `cargo threadbare run`
        #[arg(long)]
        rust: bool,
        /// These subjects only
        names: Vec<String>,
    },
    /// What it costs to read the control flow of large programs, and what of it could not be read
    Program {
        /// List the jumps that were not resolved
        #[arg(long)]
        list: bool,
        /// These programs instead of this one and gcc's compiler
        files: Vec<std::path::PathBuf>,
    },
    /// What prediction costs, on generated traces
    Predict {
        /// Events of the longest trace
        #[arg(long, default_value_t = 10_000_000)]
        max_events: usize,
    },
    /// `predict` with default settings on the subjects of the PECAN paper, buggy and fixed, next to its Table 1
    Pecan {
        /// These subjects instead
        names: Vec<String>,
        /// Measure recall instead: look in this many other runs for predictions that were not confirmed
        #[arg(long, value_name = "RUNS")]
        recall: Option<u64>,
    },
    /// Every subject's clip, replayed many times, also after lines were added above the bug
    Clips {
        /// Replays of each clip
        #[arg(long, default_value_t = 100)]
        times: u64,
    },
    /// Schedules that strategies need to the bug, and what they cost
    Rank {
        #[command(subcommand)]
        part: rank::Part,
    },
    /// Explorations of random programs: every class of interleavings that brute force finds, and none twice?
    RandomPrograms {
        #[arg(long, default_value_t = 10_000)]
        programs: u64,
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Guided test on the subjects of its paper, next to the paper's tables
    Guide(guide::Options),
    /// Test cases of reachability, tpair and race-equivalent: the tables of the paper, and every subject
    Variants(variants::Options),
    /// Programs from Debian's sources, under many schedules: is every result right?
    Real {
        /// Schedules for each program
        #[arg(long, default_value_t = 500)]
        schedules: u64,
        /// This source package only
        package: Option<String>,
    },
    /// Test suites of crates that people use: the same results as under `cargo test`?
    Rust(rust::Options),
}

fn main() -> ExitCode {
    let result: Result<bool, Box<dyn Error>> = match Arguments::parse().command {
        Command::Engine => engine::run(),
        Command::Interrupt => interrupt::run(),
        Command::Memory => memory::run(),
        Command::Determinism { plans } => determinism::run(plans),
        Command::Snapshots => snapshots::run(),
        Command::States { states } => states::run(states),
        Command::RandomPrograms { programs, seed } => random_programs::run(programs, seed),
        Command::Subjects { rust, names } => subjects::run(&names, rust),
        Command::Program { list, files } => program::run(&files, list),
        Command::Predict { max_events } => predict::run(max_events),
        Command::Pecan { names, recall } => pecan::run(&names, recall),
        Command::Clips { times } => clips::run(times),
        Command::Rank { part } => rank::run(&part),
        Command::Guide(options) => guide::run(&options),
        Command::Variants(options) => variants::run(&options),
        Command::Real { schedules, package } => real::run(schedules, package.as_deref()),
        Command::Rust(options) => rust::run(&options),
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
