//! The commands `threadbare` and `cargo threadbare`.
//!
//! This crate turns the command line into a session. A reporter of `threadbare_report` writes what the session finds.
//! An error becomes a `Problem` with advice on what to do next. Exit codes are constants of `exit`.

mod arguments;
mod cargo;
mod cc;
mod doctor;
mod exit;
mod files;
mod input;
mod output;
mod predict;
mod problem;
mod record;
mod replay;
mod session;
mod target;
mod trace;
mod trust;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

use arguments::{Arguments, Command};
use problem::Problem;

/// The command `threadbare`.
pub fn threadbare() -> ExitCode {
    let arguments = Arguments::parse();
    let watches = matches!(
        arguments.command,
        Command::Hunt(_)
            | Command::Predict(_)
            | Command::Rank(_)
            | Command::Record(_)
            | Command::Replay(_)
            | Command::Doctor(_)
    );
    finish(|| {
        let cancelled = if watches { watch_for_interrupts()? } else { Arc::default() };
        match arguments.command {
            Command::Hunt(options) => session::hunt(&options, &cancelled),
            Command::Predict(options) => predict::run(&options, &cancelled),
            Command::Rank(options) => session::rank(&options, &cancelled),
            Command::Record(options) => record::run(&options, &cancelled),
            Command::Replay(options) => replay::run(&options, &cancelled),
            Command::Trace(options) => trace::run(&options),
            Command::Doctor(options) => doctor::run(&options, &cancelled),
            Command::Cc(options) => cc::run(cc::Language::C, &options.arguments),
            Command::Cxx(options) => cc::run(cc::Language::Cxx, &options.arguments),
        }
    })
}

/// The command `cargo threadbare`, which is also the compiler wrapper that it gives to cargo.
pub fn cargo_threadbare() -> ExitCode {
    if let Some(call) = cargo::compiler_call() {
        return finish(|| cargo::compile(call));
    }
    let command = cargo::Command::parse_from_cargo();
    finish(|| cargo::run(command, &watch_for_interrupts()?))
}

/// Set by the first interrupt. The command then stops and reports what it has. A second interrupt ends it at once.
fn watch_for_interrupts() -> Result<Arc<AtomicBool>, Problem> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(exit::INTERRUPTED.into());
        }
    })?;
    Ok(cancelled)
}

/// Runs a command and prints its problem, if there is one.
fn finish(work: impl FnOnce() -> Result<u8, Problem>) -> ExitCode {
    let code = work().unwrap_or_else(|problem| {
        problem.print();
        exit::COULD_NOT_RUN
    });
    threadbare_executor::remove_temporary_cache();
    ExitCode::from(code)
}
