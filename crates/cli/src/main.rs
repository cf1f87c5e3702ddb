//! `threadbare`, the command.
//!
//! Each subcommand is a module; what is printed for a person is made in `view`, problems become
//! `Problem`s with advice on what to do next, and exit codes are constants of `exit`.

mod arguments;
mod cc;
mod exit;
mod finding;
mod hunt;
mod predict;
mod problem;
mod record;
mod replay;
mod screen;
mod target;
mod trace;
mod view;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

use arguments::{Arguments, Command};
use problem::Problem;

fn main() -> ExitCode {
    // Whoever reads the output may stop reading: that ends the tool, as it does others.
    // SAFETY: sets a signal's default action, before any thread.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let arguments = Arguments::parse();
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    // The first interrupt asks the work to stop and say what it has; a second one does not wait.
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(exit::INTERRUPTED.into());
        }
    };
    let watches = matches!(
        arguments.command,
        Command::Hunt(_) | Command::Predict(_) | Command::Record(_) | Command::Replay(_)
    );
    if watches && let Err(error) = ctrlc::set_handler(handler) {
        Problem::from(error).print();
        return ExitCode::from(exit::COULD_NOT_RUN);
    }
    let result = match arguments.command {
        Command::Hunt(options) => hunt::run(&options, &cancelled),
        Command::Predict(options) => predict::run(&options, &cancelled),
        Command::Record(options) => record::run(&options, &cancelled),
        Command::Replay(options) => replay::run(&options, &cancelled),
        Command::Trace(options) => trace::run(&options),
        Command::Cc(options) => cc::run(cc::Language::C, &options.arguments),
        Command::Cxx(options) => cc::run(cc::Language::Cxx, &options.arguments),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            problem.print();
            ExitCode::from(exit::COULD_NOT_RUN)
        }
    }
}
