//! `threadbare doctor`: a self-test in words that a user can act on.
//!
//! Nothing here is assumed. Compilers compile, the kernel is asked, and a planted race is hunted for real, beside a twin
//! without it (`machine`, `planted`). A program that the user names is looked at as well: what of it is instrumented, and
//! whether it gets to its first thread (`program`).

mod machine;
mod planted;
mod program;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use threadbare_report::{Check, CheckResult};

use crate::exit;
use crate::output;
use crate::problem::Problem;

#[derive(Args)]
pub struct DoctorOptions {
    /// A program to look at: is all of it instrumented, and does it start?
    pub program: Option<PathBuf>,

    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub json: bool,
}

/// Prints checks as they are made, and remembers the worst.
struct Report<'a> {
    json: bool,
    worst: CheckResult,
    cancelled: &'a Arc<AtomicBool>,
}

impl Report<'_> {
    fn say(&mut self, check: Check) -> Result<(), Problem> {
        self.worst = self.worst.max(check.result());
        match self.json {
            true => output::print(format_args!("{}\n", check.json())),
            false => output::print(format_args!("{check}\n")),
        }
    }

    fn say_all(&mut self, checks: impl IntoIterator<Item = Check>) -> Result<(), Problem> {
        checks.into_iter().try_for_each(|check| self.say(check))
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

pub fn run(options: &DoctorOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let mut report = Report { json: options.json, worst: CheckResult::Ok, cancelled };
    report.say_all(machine::kernel())?;
    report.say_all(machine::library())?;
    let c = machine::c_compiler();
    let can_compile = c.result() == CheckResult::Ok;
    report.say(c)?;
    report.say(machine::cxx_compiler())?;
    if can_compile {
        report.say(planted::in_c(cancelled))?;
    }
    let rust = machine::rust();
    let can_build = rust.result() == CheckResult::Ok;
    report.say(rust)?;
    if can_build && !report.is_cancelled() {
        report.say(planted::in_rust())?;
    }
    if let Some(path) = &options.program
        && !report.is_cancelled()
    {
        report.say_all(program::checks(path, &options.arguments, cancelled))?;
    }
    Ok(match report.worst {
        _ if report.is_cancelled() => exit::INTERRUPTED,
        CheckResult::Ok => exit::WELL,
        CheckResult::Warning => exit::WARNINGS,
        CheckResult::Error => exit::COULD_NOT_RUN,
    })
}
