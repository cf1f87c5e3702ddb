//! Commands that search: `hunt`, `rank` and `predict`, and `cargo threadbare run`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_hunt::{Budget, Event, HuntConfig, HuntError, StrategyChoice, Subject, Summary, run};
use threadbare_report::Reporter;

use crate::arguments::{HuntOptions, LaunchOptions, OutputOptions, RankOptions, SearchOptions};
use crate::exit;
use crate::problem::Problem;
use crate::target;

/// For one program, unless the user says otherwise.
pub const BUDGET: Budget = Budget::runs(2000);

pub fn hunt(options: &HuntOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    let config = HuntConfig {
        spurious: program.spurious_wakeups,
        ..config(StrategyChoice::Hunt, search, &program.launch, cancelled)
    };
    search_and_report(&subject, &config, &search.output, "threadbare replay")
}

pub fn rank(options: &RankOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    let strategy = StrategyChoice::Named {
        entry: options.strategy,
        bound: options.bound,
        tuples: (!options.tuples.is_empty()).then(|| options.tuples.clone()),
        memory: options.search_memory.saturating_mul(1 << 20),
    };
    let config = HuntConfig {
        spurious: program.spurious_wakeups,
        ..config(strategy, search, &program.launch, cancelled)
    };
    search_and_report(&subject, &config, &search.output, "threadbare replay")
}

fn config(
    strategy: StrategyChoice,
    search: &SearchOptions,
    launch: &LaunchOptions,
    cancelled: &Arc<AtomicBool>,
) -> HuntConfig {
    let config = HuntConfig {
        seed: launch.seed,
        max_events: launch.limits.max_events,
        limits: target::limits(&launch.limits, cancelled),
        ..HuntConfig::new(strategy)
    };
    search.configure(config, BUDGET)
}

/// Hunts in one program, and reports what is found as it is found, and the figures at the end.
pub fn search_and_report(
    subject: &Subject,
    config: &HuntConfig,
    output: &OutputOptions,
    replay_command: &'static str,
) -> Result<u8, Problem> {
    check_directory(&config.out)?;
    let mut reporter = output.reporter(replay_command);
    let mut emit = |event: Event<'_>| reporter.report(&event);
    let summary = run(subject, config, &mut emit)?;
    Ok(exit_code(&summary, config.limits.cancelled.load(Ordering::Relaxed)))
}

/// The exit code of a session that was made to its end, or to an interrupt.
pub fn exit_code(summary: &Summary, is_cancelled: bool) -> u8 {
    match summary.findings {
        0 if is_cancelled => exit::INTERRUPTED,
        0 => exit::NOTHING_FOUND,
        _ => exit::FOUND,
    }
}

/// Clips can be written to `out`, as far as can be told beforehand.
pub fn check_directory(out: &Path) -> Result<(), Problem> {
    if out.exists() && !out.is_dir() {
        let what = format!("{} is not a directory: clips cannot be written there", out.display());
        return Err(Problem::new(what).help("name another with --out"));
    }
    Ok(())
}

impl From<HuntError> for Problem {
    fn from(error: HuntError) -> Problem {
        let message = error.to_string();
        match error {
            HuntError::Start(error) => error.into(),
            HuntError::Run(error) => error.into(),
            HuntError::Report(error) => crate::output::problem(error),
            HuntError::Unsupported { .. } | HuntError::NotAnalysed(_) => Problem::new(message),
            HuntError::NothingKnown { .. } => {
                Problem::new(message).help("raise that limit, or give the program less to do")
            }
        }
    }
}
