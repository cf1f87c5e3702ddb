//! `threadbare guide`: drives a program through locations that the user gives.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_executor::Worker;
use threadbare_guide::sequence::{Suite, warning};
use threadbare_guide::{Sequence, behind, resolve, resolve_report};
use threadbare_hunt::{
    Budget, Event, GuideConfig, Guided, HuntConfig, StrategyChoice, Subject, Summary, Verdict,
    run as run_session,
};
use threadbare_program::{Program, bounded};
use threadbare_trace::{Afterwards, Guidance, Plan, Preference, Trace, Waypoint};

use crate::arguments::{GuideBy, GuideOptions, SequenceOptions};
use crate::files::{self, SEQUENCES_LIMIT};
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::trust::{self, Builder};
use crate::{exit, session, target};

/// The default budget for each sequence.
pub const BUDGET: Budget = session::BUDGET;

/// A sequence that is to be tried.
pub struct Task {
    /// Empty if there is only one.
    name: String,
    sequence: Sequence,
    /// What is to come of it, if it is a test.
    expected: Option<Verdict>,
    /// It comes from a report of another tool, which may speak of places that the program does not have.
    is_reported: bool,
}

pub fn run(options: &GuideOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (program, search) = (&options.program, &options.search);
    interrupt::begin(search.output.reporter("threadbare replay"), Due::session());
    let tasks = tasks(&options.sequences)?;
    let subject = target::prepare(&program.target, &program.launch, &search.out)?;
    session::check_directory(&search.out)?;
    let directory = target::current_directory()?;
    let replay_command = trust::replay_command(Builder::Compiler, &subject.origin, &directory, &search.out);
    interrupt::begin(search.output.reporter(replay_command), Due::session());
    let config = |strategy| session::program_config(strategy, search, program, cancelled);
    drive(&subject, &tasks, &options.sequences, config)
}

/// Tries each sequence. `config` makes the configuration of a session.
pub fn drive(
    subject: &Subject,
    tasks: &[Task],
    options: &SequenceOptions,
    config: impl Fn(StrategyChoice) -> HuntConfig,
) -> Result<u8, Problem> {
    let limits = config(StrategyChoice::Hunt).limits;
    let mut worker = Worker::start(&subject.target, &limits)?;
    // Only its first event matters, which says where the main thread is by then.
    let plan = Plan { max_events: 1, ..Plan::default() };
    let start = worker.run(&plan)?.trace();
    let mut driver = Driver { subject, program: worker.program(), config, reported: HashSet::new() };
    let mut code = exit::NOTHING_FOUND;
    for task in tasks {
        let known = driver.reported.len();
        let verdict = match guide_config(driver.program, &start, task, options) {
            Ok(guide) => match driver.try_sequence(guide)? {
                ControlFlow::Break(code) => return Ok(code),
                ControlFlow::Continue(verdict) => verdict,
            },
            Err(problem) if task.is_reported => {
                let guided = Guided::not_tried(task.name.clone(), problem.to_string());
                interrupt::report(&Event::Guided(&guided)).map_err(crate::output::problem)?;
                guided.verdict
            }
            Err(problem) => return Err(problem),
        };
        let is_good = match task.expected {
            Some(expected) => expected == verdict,
            None => verdict != Verdict::Real && driver.reported.len() == known,
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

/// How many stores of other threads are added to a sequence, one at a time, because a branch depends on them.
const MAX_STORES: usize = 4;

/// Tries sequences on one program.
struct Driver<'a, C> {
    subject: &'a Subject,
    program: &'a Program,
    /// Makes the configuration of a session.
    config: C,
    /// The findings that were reported, by clip: several attempts find the same.
    reported: HashSet<PathBuf>,
}

/// What came of the attempts at a sequence: the best of them, and all together.
struct Attempts {
    best: Guided,
    summary: Summary,
}

impl Attempts {
    fn new(Attempt { guided, summary }: Attempt) -> Attempts {
        Attempts { best: guided, summary }
    }

    fn add(&mut self, Attempt { guided, summary }: Attempt) {
        if rank(&guided) > rank(&self.best) {
            self.best = guided;
        }
        let earlier = std::mem::replace(&mut self.summary, summary);
        self.summary.add_earlier(earlier);
    }

    /// No further attempt is to be made.
    fn is_over(&self) -> bool {
        self.best.verdict == Verdict::Real || self.summary.interrupted
    }
}

/// One session.
struct Attempt {
    guided: Guided,
    summary: Summary,
}

/// How far the runs of an attempt came: what is left counts, because a sequence may be longer by a store.
fn rank(guided: &Guided) -> (Verdict, Reverse<usize>) {
    (guided.verdict, Reverse(guided.waypoints.len() - guided.passed()))
}

impl<C: Fn(StrategyChoice) -> HuntConfig> Driver<'_, C> {
    /// Tries a sequence and reports what came of it; says the exit code after an interrupt.
    fn try_sequence(&mut self, guide: GuideConfig) -> Result<ControlFlow<u8, Verdict>, Problem> {
        let Attempts { best, summary } = self.attempts(guide)?;
        interrupt::report(&Event::Guided(&best)).map_err(crate::output::problem)?;
        interrupt::report(&Event::Finished(&summary)).map_err(crate::output::problem)?;
        Ok(match summary.interrupted {
            true if summary.findings > 0 => ControlFlow::Break(exit::FOUND),
            true => ControlFlow::Break(exit::INTERRUPTED),
            false => ControlFlow::Continue(best.verdict),
        })
    }

    /// Tries a sequence, first for a short time. If a branch is in the way that depends on what other threads store, tries
    /// again by way of each such store. Then tries for the rest of the budget what came furthest.
    fn attempts(&mut self, guide: GuideConfig) -> Result<Attempts, Problem> {
        let mut attempts = Attempts::new(self.attempt(&guide, (1, 8))?);
        let passed = attempts.best.passed() - guide.behind;
        let stores =
            attempts.best.obstacle.iter().flat_map(|obstacle| obstacle.stores.iter().take(MAX_STORES));
        let ways: Vec<GuideConfig> =
            stores.map(|&store| guide.by_way_of(store, passed, self.program)).collect();
        let mut best = guide;
        for way in &ways {
            if attempts.is_over() || attempts.best.verdict == Verdict::Reached {
                break;
            }
            attempts.add(self.attempt(way, (1, 2 * ways.len() as u32))?);
            if attempts.best.verdict != Verdict::NotShown {
                best = way.clone();
            }
        }
        if !attempts.is_over() {
            attempts.add(self.attempt(&best, if ways.is_empty() { (7, 8) } else { (3, 8) })?);
        }
        Ok(attempts)
    }

    /// Makes one session with a part of the budget.
    fn attempt(&mut self, guide: &GuideConfig, share: (u32, u32)) -> Result<Attempt, Problem> {
        let session = (self.config)(StrategyChoice::Guide(guide.clone()));
        let config = HuntConfig { budget: session.budget.share(share), ..session };
        let mut outcome: Option<Guided> = None;
        let reported = &mut self.reported;
        let mut emit = |event: Event<'_>| match event {
            Event::Guided(guided) => {
                outcome = Some(guided.clone());
                Ok(())
            }
            Event::Finished(_) => Ok(()),
            Event::Found(finding) if !finding.clip.iter().all(|clip| reported.insert(clip.clone())) => Ok(()),
            event => interrupt::report(&event),
        };
        let summary = run_session(self.subject, &config, &mut emit)?;
        let guided =
            outcome.unwrap_or_else(|| Guided::not_tried(String::new(), "no run was made".to_owned()));
        Ok(Attempt { guided, summary })
    }
}

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
    for reason in &resolved.left_out {
        threadbare_report::print_note(&format!("left out of the sequence: {reason}"));
    }
    let behind = behind::behind(program, start, &resolved.waypoints);
    let waypoints: Arc<[Waypoint]> = behind::left(&resolved.waypoints, behind);
    let preference = match options.by {
        _ if !options.prefer.is_empty() => Preference::Threads(options.prefer.clone()),
        GuideBy::Distance => Preference::Nearest(program.distances(&waypoints)),
        GuideBy::Sequence => Preference::None,
    };
    let guidance = Guidance { seed: 0, waypoints, preference, afterwards: Afterwards::RunOn };
    let guide = GuideConfig::new(guidance, resolved.watched, resolved.texts);
    Ok(GuideConfig { name: task.name.clone(), behind, max_backtrack: options.max_backtrack, ..guide })
}

/// The sequences that the options name, in their order.
pub fn tasks(options: &SequenceOptions) -> Result<Vec<Task>, Problem> {
    let mut tasks = Vec::new();
    for sequence in &options.through {
        let name = if options.through.len() > 1 { sequence.to_string() } else { String::new() };
        tasks.push(Task { name, sequence: sequence.clone(), expected: None, is_reported: false });
    }
    for path in &options.from {
        let warnings = warning::read(&read(path)?).map_err(|error| {
            Problem::file("read", path, error).help(
                "it is to be a stack trace, a report of ThreadSanitizer or Threadbare, SARIF, or what gcc writes with \
                 -fdiagnostics-format=json",
            )
        })?;
        tasks.extend(warnings.into_iter().map(|warning| Task {
            name: warning.id,
            sequence: warning.sequence,
            expected: None,
            is_reported: true,
        }));
    }
    for path in &options.sequences {
        let text = String::from_utf8(read(path)?)
            .map_err(|error| Problem::file("read", path, error.utf8_error()))?;
        let suite: Suite = text.parse().map_err(|error| Problem::file("read", path, error))?;
        tasks.extend(suite.entries.into_iter().map(|entry| Task {
            name: entry.name,
            sequence: entry.sequence,
            expected: Some(entry.expectation),
            is_reported: false,
        }));
    }
    match tasks.is_empty() {
        true => Err(Problem::new("there is no sequence to drive the program through")
            .help("name locations with --through FILE:LINE,FILE:LINE,…")),
        false => Ok(tasks),
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, Problem> {
    if path != Path::new("-") {
        return files::read(path, SEQUENCES_LIMIT);
    }
    bounded::read_stream(std::io::stdin().lock(), SEQUENCES_LIMIT)
        .map_err(|error| files::problem(Path::new("standard input"), error))
}
