//! `threadbare hunt`: many schedules, and what they show.

mod length;
mod pace;
mod pool;
mod summary;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use threadbare_executor::{Ended, FailureKey, Limits, RunError, Worker, clip, shrink};
use threadbare_rank::{Next, Schedule, Settings, Strategy, Tuple, by_name};
use threadbare_trace::{FailureKind, Plan};

use crate::arguments::{Budget, HuntOptions, ProgramOptions, SearchOptions};
use crate::exit;
use crate::finding::Finding;
use crate::output::{self, say};
use crate::problem::Problem;
use crate::screen;
use crate::target::{self, Ready};
use length::Length;
use pace::Pace;
use pool::{Missed, Outcome, Pool, Setting};
use summary::Obstacle;
pub use summary::Summary;

/// Of one program, unless the user says otherwise.
pub const BUDGET: Budget = Budget::runs(2000);

pub fn run(options: &HuntOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let ready = target::prepare(&options.program.target, &options.program.launch, &options.search.out)?;
    let terms = terms(&options.program, &options.search, &ready, cancelled);
    aloud(&ready, &terms, options.search.json, "threadbare replay")
}

/// What the user asks for.
pub fn terms(
    program: &ProgramOptions,
    search: &SearchOptions,
    ready: &Ready,
    cancelled: &Arc<AtomicBool>,
) -> Terms {
    Terms {
        seed: program.launch.seed,
        max_events: program.launch.limits.max_events,
        spurious: program.spurious_wakeups,
        limits: target::limits(&program.launch.limits, cancelled),
        name: ready.name(),
        ..Terms::new(search, BUDGET)
    }
}

/// Hunts in one program, and prints what is found as it is found, and the figures at the end.
pub fn aloud(ready: &Ready, terms: &Terms, json: bool, replay: &str) -> Result<u8, Problem> {
    check_directory(&terms.out)?;
    let progress = progress(terms.budget);
    let report = |finding: Finding| progress.suspend(|| print(&finding, json, replay));
    let worker = Worker::start(&ready.target, &terms.limits);
    let result =
        worker.map_err(Problem::from).and_then(|worker| search(worker, ready, terms, &progress, &report));
    progress.finish_and_clear();
    let mut summary = result?;
    summary.print(json)?;
    if summary.is_nothing_known() {
        return Err(nothing_known(&summary, terms));
    }
    let cancelled = terms.limits.cancelled.load(Ordering::Relaxed);
    Ok(match summary.findings {
        0 if cancelled => exit::INTERRUPTED,
        0 => exit::NOTHING_FOUND,
        _ => exit::FOUND,
    })
}

/// Every run was stopped, at the limit that is named.
pub fn nothing_known(summary: &Summary, terms: &Terms) -> Problem {
    let (limit, flag) = match summary.obstacle() {
        Obstacle::Events => (format!("{} events", terms.max_events), "--max-events"),
        // No run may go on when the time of the whole hunt is over.
        Obstacle::Time => match terms.budget.time.filter(|&budget| budget < terms.limits.time) {
            Some(budget) => (format!("{} s", budget.as_secs()), "--budget"),
            None => (format!("{} s", terms.limits.time.as_secs()), "--time-limit"),
        },
        Obstacle::Memory => (format!("{} MiB", terms.limits.memory >> 20), "--memory-limit"),
    };
    Problem::new(format!(
        "no run came to its end within {limit} ({flag}), so nothing is known of the program"
    ))
    .help("raise that limit, or give the program less to do")
}

/// Clips can be written to `out`, as far as can be told beforehand.
pub fn check_directory(out: &Path) -> Result<(), Problem> {
    if out.exists() && !out.is_dir() {
        let what = format!("{} is not a directory: clips cannot be written there", out.display());
        return Err(Problem::new(what).help("name another with --out"));
    }
    Ok(())
}

/// What a hunt is to do, and with what.
pub struct Terms {
    pub budget: Budget,
    /// Stop at the first finding.
    pub first: bool,
    pub races: bool,
    /// Waits that may end without a notification, in each run.
    pub spurious: u32,
    pub jobs: u32,
    pub seed: u64,
    pub max_events: u64,
    pub limits: Limits,
    /// Where clips go, and how their names begin.
    pub out: PathBuf,
    pub name: String,
    /// A program with no more threads than this has nothing to schedule, and is not run on and on.
    pub lonely: u32,
    /// The strategy that schedules come from, if it is not to be all of them.
    pub strategy: Option<Chosen>,
}

/// The strategy that the user wants.
pub struct Chosen {
    pub name: &'static str,
    pub bound: u32,
    pub tuples: Option<Vec<Tuple>>,
    /// In bytes.
    pub memory: u64,
}

impl Terms {
    /// For a program that has no name yet, under the usual limits.
    pub fn new(options: &SearchOptions, budget: Budget) -> Terms {
        let processors = || std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        Terms {
            budget: options.budget.unwrap_or(budget),
            first: options.first,
            races: options.races,
            spurious: 0,
            jobs: options.jobs.unwrap_or_else(processors),
            seed: 0,
            max_events: u64::MAX,
            limits: Limits::default(),
            out: options.out.clone(),
            name: String::new(),
            lonely: 0,
            strategy: None,
        }
    }

    fn strategy(&self) -> Box<dyn Strategy> {
        let settings = Settings::new(Plan {
            races: self.races,
            spurious: self.spurious,
            max_events: self.max_events,
            seed: self.seed,
            ..Plan::default()
        });
        let chosen = self.strategy.as_ref().and_then(|chosen| {
            let (bound, tuples, memory) = (chosen.bound, chosen.tuples.clone(), chosen.memory);
            by_name(chosen.name, Settings { bound, tuples, memory, ..settings.clone() })
        });
        chosen.unwrap_or_else(|| Box::new(threadbare_hunt::hunt(&settings)))
    }
}

/// Hunts in one program. Its own worker looks closer at what others find.
pub fn search(
    worker: Worker,
    ready: &Ready,
    terms: &Terms,
    progress: &ProgressBar,
    report: &dyn Fn(Finding) -> Result<(), Problem>,
) -> Result<Summary, Problem> {
    let start = Instant::now();
    let deadline = terms.budget.time.map(|time| start + time);
    let setting = Setting { target: ready.target.clone(), limits: terms.limits.clone(), deadline };
    let mut hunt = Hunt {
        terms,
        ready,
        worker,
        pool: Pool::new(terms.jobs, &setting),
        progress,
        report,
        strategy: terms.strategy(),
        known: HashSet::new(),
        unconfirmed: HashMap::new(),
        pace: Pace::new(terms.budget, start),
        summary: Summary::new(start),
    };
    hunt.rounds()?;
    Ok(hunt.summary)
}

struct Hunt<'a> {
    terms: &'a Terms,
    ready: &'a Ready,
    worker: Worker,
    pool: Pool,
    progress: &'a ProgressBar,
    report: &'a dyn Fn(Finding) -> Result<(), Problem>,
    strategy: Box<dyn Strategy>,
    /// Failures already reported.
    known: HashSet<FailureKey>,
    /// How often each failure was looked at and did not happen again.
    unconfirmed: HashMap<FailureKey, u32>,
    pace: Pace,
    summary: Summary,
}

/// A bar for a person; nothing where the output goes elsewhere.
fn progress(budget: Budget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(budget.runs, ProgressDrawTarget::stderr());
    let time = budget.time.map_or_else(String::new, |time| format!("{{elapsed}} of {}s  ", time.as_secs()));
    let template = match budget.runs {
        Some(_) => format!("{time}{{bar:30}} {{pos}}/{{len}} runs  {{per_sec}}  {{eta}} left  {{msg}}"),
        None => format!("{time}{{pos}} runs  {{per_sec}}  {{msg}}"),
    };
    // The template is ours; a mistake in it only costs the style.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

impl Hunt<'_> {
    fn rounds(&mut self) -> Result<(), Problem> {
        while let Some((count, length)) = self.next_round() {
            let (first, begun) = (self.summary.runs, Instant::now());
            let round = self.schedules(count, length);
            if round.is_empty() {
                self.summary.exhausted = self.strategy.dropped() == 0 && self.summary.beginnings == 0;
                break;
            }
            for outcome in self.pool.run(first, round) {
                match outcome {
                    Ok(outcome) => self.take(outcome, length)?,
                    Err(Missed::Late | Missed::Run(RunError::Cancelled)) => {}
                    Err(Missed::Run(error)) => return Err(error.into()),
                    Err(Missed::Start(error)) => return Err(error.into()),
                }
            }
            self.summary.dropped = self.strategy.dropped();
            self.pace.made(length, begun);
            self.summary.endless |= self.pace.is_endless(&self.summary);
            self.progress.set_position(self.summary.runs);
            self.progress.set_message(format!("{} found", self.summary.findings));
        }
        Ok(())
    }

    /// How many runs to make next, and how long they may be; `None` when the hunt is over.
    fn next_round(&self) -> Option<(u64, Length)> {
        let done = self.summary.runs;
        let left = self.terms.budget.runs.map_or(u64::MAX, |runs| runs.saturating_sub(done));
        let satisfied = self.terms.first && self.summary.findings > 0;
        // One run may have gone another way than most.
        const LONELY: u64 = 3;
        let lonely = done >= LONELY && self.summary.threads <= self.terms.lonely;
        let cancelled = self.terms.limits.cancelled.load(Ordering::Relaxed);
        let hopeless = self.summary.is_hopeless();
        let over = left == 0 || self.pace.is_late() || satisfied || lonely || hopeless || cancelled;
        /// While little is known, the strategy is told of each run before it is asked for the next.
        const ALONE: u64 = 16;
        const TOGETHER: u64 = 16;
        let length = self.pace.next_length(&self.summary);
        // Where there is hardly time for whole runs, no more than can be made at once.
        let is_rare = length == Length::Whole && self.pace.is_behind(&self.summary);
        let most = if is_rare { TOGETHER.min(self.terms.jobs.into()) } else { TOGETHER };
        (!over).then(|| (if done < ALONE { 1 } else { most.min(left) }, length))
    }

    /// The next runs, `count` or fewer; none when there is nothing left to try.
    fn schedules(&mut self, count: u64, length: Length) -> Vec<Schedule> {
        self.strategy.prefer(length.most_turns());
        let next = || match self.strategy.next() {
            Next::Run(mut schedule) => {
                length.limit(&mut schedule.plan);
                Some(schedule)
            }
            Next::Wait | Next::Exhausted => None,
        };
        std::iter::from_fn(next).take(count as usize).collect()
    }

    fn take(&mut self, outcome: Outcome, length: Length) -> Result<(), Problem> {
        self.summary.count(&outcome, length);
        self.strategy.take(&outcome.feedback);
        let most = self.terms.max_events;
        self.summary.bound_reached |= *outcome.ended() == Ended::EventBound && outcome.feedback.bound >= most;
        if let Ended::Unsupported { message, thread, pc } = outcome.ended() {
            let place = self.worker.program().location(*pc);
            return Err(Problem::new(format!("{message} (thread {thread}, {place})")));
        }
        if let Some(place) = screen::stopped_at(outcome.ended(), self.worker.program()) {
            self.summary.stuck_at = Some(place);
        }
        for (key, failing) in &outcome.failures {
            self.take_failure(key, failing, &outcome)?;
        }
        Ok(())
    }

    fn take_failure(&mut self, key: &FailureKey, failing: &Plan, outcome: &Outcome) -> Result<(), Problem> {
        let satisfied = self.terms.first && self.summary.findings > 0;
        if satisfied || !self.known.insert(key.clone()) {
            return Ok(());
        }
        match self.look_closer(failing, key, outcome) {
            Ok(Some(finding)) => {
                self.summary.found(outcome.method);
                (self.report)(finding)
            }
            // A race that the run had only on its way somewhere else is no loss.
            Ok(None) if key.kind == FailureKind::DataRace => Ok(()),
            Ok(None) => {
                self.take_unconfirmed(key, outcome.ended());
                Ok(())
            }
            Err(RunError::Cancelled) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What cannot be shown again is no finding: something outside may have been to blame. A run that fails so later is
    /// looked at again, a few times.
    fn take_unconfirmed(&mut self, key: &FailureKey, ended: &Ended) {
        const OFTEN: u32 = 5;
        self.summary.unconfirmed += 1;
        let times = self.unconfirmed.entry(key.clone()).or_default();
        *times += 1;
        if *times < OFTEN {
            self.known.remove(key);
        }
        if let Ended::Failed { kind, message, pc, .. } = ended {
            let message = if message.is_empty() { String::new() } else { format!(": {message}") };
            let place = self.worker.program().location(*pc);
            self.summary.failed_once = Some(format!("{kind}{message} at {place}"));
        }
    }

    /// Reduces a failing schedule, runs it again, and writes it down; `None` if it does not fail again.
    fn look_closer(
        &mut self,
        failing: &Plan,
        key: &FailureKey,
        outcome: &Outcome,
    ) -> Result<Option<Finding>, RunError> {
        let failing = self.shorten(failing, key)?;
        let (plan, _) = shrink(&mut self.worker, &failing, key)?;
        let run = self.worker.run(&plan)?;
        if run.failure().as_ref() != Some(key) {
            return Ok(None);
        }
        let trace = run.trace();
        let clip = clip(self.worker.program(), &plan, &trace, &self.ready.origin);
        let mut finding = Finding::new(trace, outcome.number + 1, outcome.method);
        finding.tuple = outcome.tuple;
        if let Err(error) = finding.save(&clip, self.ready, &self.terms.name, &self.terms.out) {
            self.progress.suspend(|| {
                Problem::file("write a clip to", &self.terms.out, error).print();
            });
        }
        Ok(Some(finding))
    }

    /// A livelock goes on for as long as it is let: a short piece of it shows as much.
    fn shorten(&mut self, failing: &Plan, key: &FailureKey) -> Result<Plan, RunError> {
        const ENOUGH: u64 = 4000;
        if key.kind != FailureKind::Livelock || failing.max_events <= ENOUGH {
            return Ok(failing.clone());
        }
        let short = Plan { max_events: ENOUGH, steps: Vec::new(), ..failing.clone() };
        let run = self.worker.run(&short)?;
        let same = run.failure().is_some_and(|failure| failure.kind == FailureKind::Livelock);
        Ok(if same { Plan { steps: run.steps(), ..short } } else { failing.clone() })
    }
}

/// Shows a finding; `replay` is the command that takes its clip.
pub fn print(finding: &Finding, json: bool, replay: &str) -> Result<(), Problem> {
    if json {
        return output::print_json(finding);
    }
    say!("{}", screen::view(&finding.trace))?;
    match finding.tuple {
        Some(tuple) => say!("found in run {} ({} at {tuple})", finding.run, finding.method)?,
        None => say!("found in run {} ({})", finding.run, finding.method)?,
    }
    match &finding.clip {
        Some(clip) => say!("replay it with: {replay} {}\n", clip.display()),
        None => Ok(()),
    }
}
