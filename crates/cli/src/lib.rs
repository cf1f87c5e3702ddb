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
mod guide;
mod input;
mod interrupt;
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

use clap::Parser;
use threadbare_executor::scratch;

use arguments::{Arguments, Command};
use problem::Problem;

/// The command `threadbare`.
pub fn threadbare() -> ExitCode {
    let arguments = Arguments::parse();
    // The compiler takes the place of this process.
    let is_compiler = matches!(arguments.command, Command::Cc(_) | Command::Cxx(_));
    finish(|| {
        let cancelled = if is_compiler { Arc::default() } else { interrupt::watch()? };
        match arguments.command {
            Command::Hunt(options) => session::hunt(&options, &cancelled),
            Command::Predict(options) => predict::run(&options, &cancelled),
            Command::Rank(options) => session::rank(&options, &cancelled),
            Command::Explore(options) => session::explore(&options, &cancelled),
            Command::Guide(options) => guide::run(&options, &cancelled),
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
    finish(|| cargo::run(command, &interrupt::watch()?))
}

/// Runs a command and prints its problem, if there is one. What goes wrong after an interrupt is no problem of its own: a
/// run was given up, or the user's terminal has interrupted a compiler too.
fn finish(work: impl FnOnce() -> Result<u8, Problem>) -> ExitCode {
    let code = work().unwrap_or_else(|problem| {
        if interrupt::is_over() {
            return interrupt::last_words();
        }
        problem.print();
        exit::COULD_NOT_RUN
    });
    scratch::remove_all();
    ExitCode::from(code)
}
