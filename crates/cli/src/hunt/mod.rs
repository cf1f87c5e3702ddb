//! `threadbare hunt`: many schedules, and what they show.

mod plans;
mod pool;
mod summary;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use threadbare_executor::{Ended, FailureKey, Limits, RunError, Worker, clip, shrink};
use threadbare_trace::{FailureKind, Plan};

use crate::arguments::{Budget, HuntOptions};
use crate::exit;
use crate::finding::Finding;
use crate::output::{self, say};
use crate::problem::Problem;
use crate::screen;
use crate::target::{self, Ready};
use plans::Knowledge;
use pool::{Missed, Outcome, Pool};
use summary::Summary;

pub fn run(options: &HuntOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    if options.out.exists() && !options.out.is_dir() {
        return Err(Problem::new(format!(
            "{} is not a directory: clips cannot be written there",
            options.out.display()
        ))
        .help("name another with --out"));
    }
    let ready = target::prepare(&options.program, &options.out)?;
    let limits = target::limits(&options.program.limits, cancelled);
    let start = Instant::now();
    let deadline = match options.budget {
        Budget::Time(time) => Some(start + time),
        Budget::Runs(_) => None,
    };
    // The hunt's own worker looks closer at what the others find.
    let worker = Worker::start(&ready.target, &limits)?;
    let jobs =
        options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32));
    let pool = Pool::new(jobs, &ready.target, &limits, deadline);
    let mut hunt = Hunt {
        options,
        ready: &ready,
        limits: &limits,
        worker,
        pool,
        progress: progress(options),
        knowledge: Knowledge {
            races: options.races,
            spurious: options.program.spurious_wakeups,
            ..Knowledge::new(options.program.seed, options.program.limits.max_events)
        },
        known: HashSet::new(),
        summary: Summary::new(start),
    };
    let result = hunt.rounds(start);
    hunt.progress.finish_and_clear();
    result?;
    hunt.summary.print(options.json)?;
    if hunt.summary.nothing_ended() {
        return Err(Problem::new("no run came to its end, so nothing is known of the program")
            .help("raise the limit that stopped them, or give the program less to do"));
    }
    let cancelled = limits.cancelled.load(Ordering::Relaxed);
    Ok(match hunt.summary.findings {
        0 if cancelled => exit::INTERRUPTED,
        0 => exit::NOTHING_FOUND,
        _ => exit::FOUND,
    })
}

struct Hunt<'a> {
    options: &'a HuntOptions,
    ready: &'a Ready,
    limits: &'a Limits,
    worker: Worker,
    pool: Pool,
    progress: ProgressBar,
    knowledge: Knowledge,
    /// Failures already reported.
    known: HashSet<FailureKey>,
    summary: Summary,
}

/// A bar for a person; nothing where the output goes elsewhere.
fn progress(options: &HuntOptions) -> ProgressBar {
    let (length, unit) = match options.budget {
        Budget::Runs(runs) => (runs, "{pos}/{len} runs"),
        Budget::Time(_) => (0, "{pos} runs"),
    };
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let template = match options.budget {
        Budget::Runs(_) => format!("{{bar:30}} {unit}  {{per_sec}}  {{eta}} left  {{msg}}"),
        Budget::Time(time) => format!("{{elapsed}} of {}s  {unit}  {{per_sec}}  {{msg}}", time.as_secs()),
    };
    // The template is ours; a mistake in it only costs the style.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

impl Hunt<'_> {
    fn rounds(&mut self, start: Instant) -> Result<(), Problem> {
        while let Some(count) = self.next_round(start) {
            let first = self.summary.runs;
            let knowledge = self.knowledge.clone();
            let mut short = false;
            let round = (first..first + count).map(|number| (number, plans::plan(number, &knowledge)));
            for outcome in self.pool.run(round) {
                match outcome {
                    Ok(outcome) => {
                        short |= outcome.ended == Ended::EventBound;
                        self.take(outcome)?;
                    }
                    Err(Missed::Late | Missed::Run(RunError::Cancelled)) => {}
                    Err(Missed::Run(error)) => return Err(error.into()),
                    Err(Missed::Start(error)) => return Err(error.into()),
                }
            }
            if short && !self.knowledge.allow_more() {
                self.summary.bound_reached = true;
            }
            self.progress.set_position(self.summary.runs);
            self.progress.set_message(format!("{} found", self.summary.findings));
        }
        Ok(())
    }

    /// How many runs to make next; `None` when the hunt is over.
    fn next_round(&self, start: Instant) -> Option<u64> {
        let done = self.summary.runs;
        let left = match self.options.budget {
            Budget::Runs(runs) => runs.saturating_sub(done),
            Budget::Time(time) if start.elapsed() < time => u64::MAX,
            Budget::Time(_) => 0,
        };
        let satisfied = self.options.first && self.summary.findings > 0;
        // Nothing comes of going on with a program that never gets anywhere.
        const HOPELESS: u64 = 16;
        let hopeless = done >= HOPELESS && self.summary.nothing_ended();
        let over = left == 0 || satisfied || hopeless || self.limits.cancelled.load(Ordering::Relaxed);
        (!over).then(|| plans::round(done).min(left))
    }

    fn take(&mut self, outcome: Outcome) -> Result<(), Problem> {
        let method = plans::method(outcome.number);
        self.summary.count(&outcome, method);
        self.knowledge.longest = self.knowledge.longest.max(outcome.events);
        self.knowledge.tracked.extend(outcome.learnt);
        if let Ended::Unsupported { message, thread, pc } = &outcome.ended {
            let place = self.worker.program().location(*pc);
            return Err(Problem::new(format!("{message} (thread {thread}, {place})")));
        }
        if let Some(place) = screen::stopped_at(&outcome.ended, self.worker.program()) {
            self.summary.stuck_at = Some(place);
        }
        for (key, failing) in outcome.failures {
            self.take_failure(&key, &failing, outcome.number)?;
        }
        Ok(())
    }

    fn take_failure(&mut self, key: &FailureKey, failing: &Plan, number: u64) -> Result<(), Problem> {
        let satisfied = self.options.first && self.summary.findings > 0;
        if satisfied || !self.known.insert(key.clone()) {
            return Ok(());
        }
        let method = plans::method(number);
        match self.look_closer(failing, key, number, method) {
            // A race that the run had only on its way somewhere else is no loss.
            Ok(finding) if key.kind == FailureKind::DataRace && !finding.confirmed => Ok(()),
            Ok(finding) => {
                self.summary.found(method);
                self.report(&finding)
            }
            Err(RunError::Cancelled) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reduces a failing schedule, runs it again, and writes it down.
    fn look_closer(
        &mut self,
        failing: &Plan,
        key: &FailureKey,
        number: u64,
        method: &'static str,
    ) -> Result<Finding, RunError> {
        let failing = self.shorten(failing, key)?;
        let (plan, _) = shrink(&mut self.worker, &failing, key)?;
        let run = self.worker.run(&plan)?;
        let confirmed = run.failure().as_ref() == Some(key);
        let trace = run.trace();
        let clip = clip(self.worker.program(), &plan, &trace, &self.ready.origin);
        let mut finding = Finding::new(trace, number + 1, method, confirmed);
        if !confirmed {
            return Ok(finding);
        }
        if let Err(error) = finding.save(&clip, self.ready, &self.options.out) {
            self.progress.suspend(|| {
                Problem::file("write a clip to", &self.options.out, error).print();
            });
        }
        Ok(finding)
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

    fn report(&self, finding: &Finding) -> Result<(), Problem> {
        self.progress.suspend(|| {
            if self.options.json {
                return output::print_json(finding);
            }
            say!("{}", screen::view(&finding.trace))?;
            say!("found in run {} ({})", finding.run, finding.method)?;
            if !finding.confirmed {
                say!("it did not happen again when the same schedule was forced, so there is no clip\n")?;
            }
            match &finding.clip {
                Some(clip) => say!("replay it with: threadbare replay {}\n", clip.display()),
                None => Ok(()),
            }
        })
    }
}
