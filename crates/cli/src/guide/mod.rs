//! `threadbare guide`: drives a program through locations that the user gives.

mod driver;
mod tasks;
mod variants;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_guide::{behind, lines_of, resolve, resolve_report};
use threadbare_hunt::{Budget, Event, GuideConfig, Guided, HuntConfig, StrategyChoice, Verdict};
use threadbare_program::Program;
use threadbare_trace::{Afterwards, Guidance, Preference, Trace, Waypoint};

pub use self::driver::Variant;
use self::driver::{Answer, Driver};
pub use self::tasks::{Task, tasks};
pub use self::variants::seeds;
use crate::arguments::{GuideBy, GuideOptions, SequenceOptions};
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::trust::{self, Builder};
use crate::{exit, session, target};

/// The default budget for each sequence.
pub const BUDGET: Budget = session::BUDGET;

pub fn run(options: &GuideOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    interrupt::begin(search.output.reporter("threadbare replay"), Due::session());
    let tasks = tasks(&options.sequences)?;
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    let others = variants::others(&subject, options)?;
    session::check_directory(&search.out)?;
    let directory = target::current_directory()?;
    let replay_command = trust::replay_command(Builder::Compiler, &subject.origin, &directory, &search.out);
    interrupt::begin(search.output.reporter(replay_command), Due::session());
    let config = |strategy| session::program_config(strategy, search, program, cancelled);
    let variants = variants::all(&subject, &others, &options.sequences);
    drive(variants, &tasks, &options.sequences, config)
}

/// Tries each sequence on the variants of a program. `config` makes the configuration of a session.
pub fn drive(
    variants: Vec<Variant<'_>>,
    tasks: &[Task],
    options: &SequenceOptions,
    config: impl Fn(StrategyChoice) -> HuntConfig,
) -> Result<u8, Problem> {
    let mut driver = Driver::new(variants, options, config)?;
    let mut code = exit::NOTHING_FOUND;
    for task in tasks {
        let known = driver.reported();
        let verdict = match driver.prepare(task) {
            Ok(guides) => {
                let Answer { guided, summary } = driver.try_sequence(&guides)?;
                interrupt::report(&Event::Guided(&guided)).map_err(crate::output::problem)?;
                interrupt::report(&Event::Finished(&summary)).map_err(crate::output::problem)?;
                if summary.interrupted {
                    let has_found = driver.reported() > 0;
                    return Ok(if has_found { exit::FOUND } else { exit::INTERRUPTED });
                }
                guided.verdict
            }
            Err(problem) if task.is_reported => {
                let guided = Guided::not_tried(task.name.clone(), problem.to_string());
                interrupt::report(&Event::Guided(&guided)).map_err(crate::output::problem)?;
                guided.verdict
            }
            Err(problem) => return Err(problem),
        };
        let is_good = match task.expected {
            Some(expected) => expected == verdict,
            None => verdict != Verdict::Real && driver.reported() == known,
        };
        if !is_good {
            code = exit::FOUND;
        }
        if let Some(expected) = task.expected.filter(|_| !is_good) {
            let note = format!("{}: expected {expected}, and it is {verdict}", task.name);
            threadbare_report::print_note(&note);
        }
    }
    Ok(code)
}

/// How to drive a program through a sequence.
fn guide_config(
    program: &Program,
    start: &Trace,
    task: &Task,
    options: &SequenceOptions,
) -> Result<GuideConfig, Problem> {
    let resolve = if task.is_reported { resolve_report } else { resolve };
    let resolved = resolve(program, &task.sequence).map_err(|error| match error.advice() {
        Some(advice) => Problem::new(error.to_string()).help(advice),
        None => Problem::new(error.to_string()),
    })?;
    let behind = behind::behind(program, start, &resolved.waypoints);
    let waypoints: Arc<[Waypoint]> = behind::left(&resolved.waypoints, behind);
    let preference = match options.by {
        _ if !options.prefer.is_empty() => Preference::Threads(options.prefer.clone()),
        GuideBy::Distance => Preference::Nearest(program.distances(&waypoints)),
        GuideBy::Sequence => Preference::None,
    };
    let guidance = Guidance { seed: 0, waypoints, preference, afterwards: Afterwards::RunOn };
    let guide = GuideConfig::new(guidance, resolved.watched, resolved.texts);
    let last = task.sequence.steps.last().filter(|_| task.is_about_last);
    Ok(GuideConfig {
        name: task.name.clone(),
        left_out: resolved.left_out,
        behind,
        max_backtrack: options.max_backtrack,
        fails_at: last.map_or_else(Vec::new, |last| lines_of(program, last)),
        ..guide
    })
}
