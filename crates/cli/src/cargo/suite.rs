//! `cargo threadbare test` and `explore`: a session for each test of the project.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use threadbare_executor::Target;
use threadbare_hunt::clip::Origin;
use threadbare_hunt::suite::{self, SuiteSummary, Test};
use threadbare_hunt::{Budget, Emit, Event, HuntConfig, StrategyChoice, Subject};

use super::arguments::{CargoExploreOptions, CargoTestOptions};
use super::harness_options::HarnessOptions;
use super::listing::{self, Case, HARNESS_THREADS};
use super::project::{Built, Project};
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::target::seen_from;
use crate::trust::{self, Builder};
use crate::{exit, output, session};

/// The default budget for each test.
const BUDGET: Budget = Budget { runs: Some(200), time: Some(Duration::from_secs(60)) };

/// The default budget for each test that is explored.
const EXPLORATION: Budget = Budget { runs: None, time: Some(Duration::from_secs(60)) };

pub fn test(options: &CargoTestOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let config = || config(options, StrategyChoice::Hunt, BUDGET, cancelled);
    run(options, &config, cancelled)
}

pub fn explore(options: &CargoExploreOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let config = || config(&options.tests, options.exploration.strategy(), EXPLORATION, cancelled);
    run(&options.tests, &config, cancelled)
}

fn run(
    options: &CargoTestOptions,
    config: &(dyn Fn() -> HuntConfig + Sync),
    cancelled: &Arc<AtomicBool>,
) -> Result<u8, Problem> {
    interrupt::begin(options.hunt.search.output.reporter("cargo threadbare replay"), Due::suite());
    session::check_directory(&options.hunt.search.out)?;
    let harness = if options.no_hunt { None } else { Some(HarnessOptions::parse(&options.arguments)?) };
    let project = Project::find(&options.hunt.cargo, None)?;
    let built = project.build("test", &options.hunt.cargo.build_arguments())?;
    let directory = seen_from(&options.hunt.search.out, &project.root);
    interrupt::begin(options.hunt.search.output.reporter(replay_command(&project, options)), Due::suite());
    let mut emit = |event: Event<'_>| interrupt::report(&event);
    for program in &built.in_compiler {
        emit(Event::Skipped { program }).map_err(output::problem)?;
    }
    let Some(harness) = harness.filter(|harness| !harness.asks_harness) else {
        return run_once(&built, options, &mut emit);
    };
    let list = |executable| listing::list(executable, options.filter.as_ref(), &harness);
    let listings: Vec<_> = built.executables.iter().map(list).collect::<Result<_, _>>()?;
    let ignored = listings.iter().map(|listing| listing.ignored).sum();
    let cases: Vec<Case<'_>> = listings.into_iter().flat_map(|listing| listing.cases).collect();
    let jobs = options.hunt.search.jobs.or(harness.test_threads);
    let jobs = jobs.unwrap_or_else(|| config().jobs);
    let started = Event::SuiteStarted { tests: cases.len(), programs: built.executables.len() };
    emit(started).map_err(output::problem)?;
    let make = |index: usize, worker: u32| test_of(&cases[index], &directory, worker, config());
    let is_cancelled = || cancelled.load(Ordering::Relaxed);
    let summary = suite::run(cases.len(), jobs, ignored, &make, &is_cancelled, &mut emit)?;
    exit_code(&summary, options, built.incomplete)
}

/// Runs each test program once, as `cargo test` does.
fn run_once(built: &Built, options: &CargoTestOptions, emit: &mut Emit<'_>) -> Result<u8, Problem> {
    let mut failed = false;
    for executable in &built.executables {
        emit(Event::RunningOnce { program: &executable.name }).map_err(output::problem)?;
        let mut command = executable.command();
        let status = command.args(&options.filter).args(&options.arguments).status();
        let status = status.map_err(|error| Problem::file("run", &executable.path, error))?;
        failed |= !status.success();
    }
    match (failed, built.incomplete) {
        (true, _) => Ok(exit::FOUND),
        (false, true) => Err(incomplete()),
        (false, false) => Ok(exit::NOTHING_FOUND),
    }
}

/// The command that replays the clips of the project's tests. They differ in their names only, which are harmless.
fn replay_command(project: &Project, options: &CargoTestOptions) -> &'static str {
    let any = Origin {
        directory: None,
        target: String::new(),
        compiler_arguments: Vec::new(),
        arguments: Vec::new(),
        input: None,
    };
    trust::replay_command(Builder::Cargo, &any, &project.root, &options.hunt.search.out)
}

fn incomplete() -> Problem {
    Problem::new("some of the project does not build; what does was tested")
}

/// The session of a test, for the worker with this number.
fn test_of(case: &Case<'_>, directory: &str, worker: u32, config: HuntConfig) -> Test {
    Test {
        program: case.executable.name.clone(),
        // A program with a harness of its own is run from there.
        name: case.name.clone().unwrap_or_else(|| "main".to_owned()),
        subject: subject(case, directory, worker),
        config: HuntConfig {
            stop_at_first: true,
            // Tests run side by side, each with one worker.
            jobs: 1,
            exit_code_must_be_0: true,
            harness_threads: if case.name.is_some() { HARNESS_THREADS } else { 1 },
            ..config
        },
    }
}

/// What is run for a test, by the worker with this number.
pub fn subject(case: &Case<'_>, directory: &str, worker: u32) -> Subject {
    let target = Target { pid_offset: worker, ..case.executable.target(case.arguments.clone()) };
    let origin = Origin {
        directory: Some(directory.to_owned()),
        target: case.executable.path.to_string_lossy().into_owned(),
        compiler_arguments: case.executable.recipe.clone(),
        arguments: case.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        input: None,
    };
    let name = case.name.as_ref().unwrap_or(&case.executable.name).clone();
    Subject { target, origin, name, unsaved_input: None }
}

fn config(
    options: &CargoTestOptions,
    strategy: StrategyChoice,
    budget: Budget,
    cancelled: &Arc<AtomicBool>,
) -> HuntConfig {
    session::config(strategy, &options.hunt.search, budget, &options.hunt.run, cancelled)
}

fn exit_code(summary: &SuiteSummary, options: &CargoTestOptions, is_incomplete: bool) -> Result<u8, Problem> {
    match summary {
        SuiteSummary { failed: 1.., .. } => Ok(exit::FOUND),
        SuiteSummary { interrupted: true, .. } => Ok(exit::INTERRUPTED),
        _ if is_incomplete => Err(incomplete()),
        SuiteSummary { tests: 0, ignored, .. } => Err(nothing_to_run(options, *ignored)),
        SuiteSummary { could_not_run: 1.., .. } => Ok(exit::COULD_NOT_RUN),
        _ => Ok(exit::NOTHING_FOUND),
    }
}

/// No test ran: an error, so that a mistyped name does not look like success.
fn nothing_to_run(options: &CargoTestOptions, ignored: u64) -> Problem {
    match (&options.filter, ignored) {
        (_, 1..) => Problem::new("no tests to run: those that were asked for are ignored")
            .help("to run them: cargo threadbare test [FILTER] -- --ignored"),
        (filter, 0) if !options.arguments.is_empty() => {
            let filter = filter.as_ref().map_or_else(String::new, |filter| format!(" `{filter}` and"));
            Problem::new(format!("no tests to run:{filter} `-- {}` leave none", options.arguments.join(" ")))
                .help("to see all names: cargo test -- --list")
        }
        (Some(filter), 0) => Problem::new(format!("no tests to run: no name contains `{filter}`"))
            .help("to see all names: cargo test -- --list"),
        (None, 0) => Problem::new("no tests to run"),
    }
}
