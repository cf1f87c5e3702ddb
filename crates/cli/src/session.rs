//! `threadbare hunt`, `rank` and `explore`, and what all commands that search have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_hunt::{Budget, Event, HuntConfig, HuntError, StrategyChoice, Subject, Summary, run};

use crate::arguments::{
    ExplorationOptions, ExploreOptions, HuntOptions, OutputOptions, ProgramOptions, RankOptions, RunOptions,
    SearchOptions,
};
use crate::exit;
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::target;
use crate::trust::{self, Builder};

/// The default budget for one program.
pub const BUDGET: Budget = Budget::runs(2000);

pub fn hunt(options: &HuntOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    interrupt::begin(search.output.reporter("threadbare replay"), Due::session());
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    let config = program_config(StrategyChoice::Hunt, search, program, cancelled);
    search_and_report(&subject, &config, &search.output, Builder::Compiler)
}

pub fn rank(options: &RankOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    interrupt::begin(search.output.reporter("threadbare replay"), Due::session());
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    let strategy = StrategyChoice::Named {
        entry: options.strategy,
        bound: options.bound,
        tuples: (!options.tuples.is_empty()).then(|| options.tuples.clone()),
        memory: options.search_memory.saturating_mul(1 << 20),
        branches_only: false,
    };
    let config = program_config(strategy, search, program, cancelled);
    search_and_report(&subject, &config, &search.output, Builder::Compiler)
}

pub fn explore(options: &ExploreOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    if program.spurious_wakeups > 0 {
        let problem = Problem::new("an exploration does not try spurious wake-ups");
        return Err(problem.help("`threadbare hunt --spurious-wakeups` draws them at random"));
    }
    interrupt::begin(search.output.reporter("threadbare replay"), Due::session());
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    let search = SearchOptions { budget: search.budget.or(Some(Budget::UNLIMITED)), ..search.clone() };
    let config = program_config(options.exploration.strategy(), &search, program, cancelled);
    search_and_report(&subject, &config, &search.output, Builder::Compiler)
}

impl ExplorationOptions {
    pub fn strategy(&self) -> StrategyChoice {
        let memory = self.search_memory.saturating_mul(1 << 20);
        let branches_only = self.branches_only;
        StrategyChoice::Named { entry: self.method, bound: 0, tuples: None, memory, branches_only }
    }
}

/// The configuration for one program.
pub fn program_config(
    strategy: StrategyChoice,
    search: &SearchOptions,
    program: &ProgramOptions,
    cancelled: &Arc<AtomicBool>,
) -> HuntConfig {
    let config = config(strategy, search, BUDGET, &program.launch.run, cancelled);
    HuntConfig { spurious: program.spurious_wakeups, ..config }
}

/// The configuration that the options describe. Every command that searches uses this function. `budget` is the
/// default budget.
pub fn config(
    strategy: StrategyChoice,
    search: &SearchOptions,
    budget: Budget,
    run: &RunOptions,
    cancelled: &Arc<AtomicBool>,
) -> HuntConfig {
    let defaults = HuntConfig::new(strategy);
    HuntConfig {
        budget: search.budget.unwrap_or(budget),
        stop_at_first: search.first,
        races: search.races,
        jobs: search.jobs.unwrap_or(defaults.jobs),
        seed: run.seed,
        max_events: run.max_events,
        limits: target::limits(run, cancelled),
        out: search.out.clone(),
        ..defaults
    }
}

/// Hunts in one program. Reports each finding at once, and a summary at the end.
pub fn search_and_report(
    subject: &Subject,
    config: &HuntConfig,
    output: &OutputOptions,
    builder: Builder,
) -> Result<u8, Problem> {
    check_directory(&config.out)?;
    let directory = target::current_directory()?;
    let replay_command = trust::replay_command(builder, &subject.origin, &directory, &config.out);
    interrupt::begin(output.reporter(replay_command), Due::session());
    let summary = run(subject, config, &mut |event: Event<'_>| interrupt::report(&event))?;
    Ok(exit_code(&summary))
}

/// The exit code of a session that ended, or was interrupted.
pub fn exit_code(summary: &Summary) -> u8 {
    match summary.findings {
        0 if summary.interrupted => exit::INTERRUPTED,
        0 => exit::NOTHING_FOUND,
        _ => exit::FOUND,
    }
}

/// Fails if `out` is a file, before any run is made.
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
            HuntError::NothingEnded { .. } => {
                Problem::new(message).help("raise that limit, or give the program less to do")
            }
        }
    }
}
