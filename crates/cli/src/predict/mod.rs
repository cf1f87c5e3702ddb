//! `threadbare predict`: what one run almost did, and a second run that does it.
//!
//! A run is recorded and anomalies are predicted from its trace. Each has a schedule, which is run once and has to be
//! followed event by event. What was then seen to happen is reported; the rest was false. A run that showed something went where no run was
//! before, so predictions are made from its trace next. With a trace alone there is nothing to run, and predictions
//! are labelled `witnessed` or `possible` instead.

mod confirmation;
mod report;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use threadbare_executor::{RunError, Worker, clip};
use threadbare_formats::import::{ImportError, Wrong};
use threadbare_formats::{import, trace_file};
use threadbare_predict::{History, Pattern, PredictError, Prediction, Predictor, pattern};
use threadbare_trace::{Extent, Plan, Policy, Step, Trace};

use crate::arguments::PredictOptions;
use crate::exit;
use crate::finding::write_clip;
use crate::output::say;
use crate::problem::Problem;
use crate::target::{self, Ready};
use crate::{record, screen};
use confirmation::{Confirmation, Outcome};
use report::{Anomaly, Summary};

pub fn run(options: &PredictOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let patterns = patterns(options)?;
    match (&options.trace, &options.target) {
        (Some(path), _) => from_trace(path, &patterns, options.json),
        (None, Some(target)) => {
            let ready = target::prepare(target, &options.launch, &options.out)?;
            let limits = target::limits(&options.launch.limits, cancelled);
            let worker = Worker::start(&ready.target, &limits)?;
            let mut predicting = Predicting {
                options,
                patterns,
                ready: &ready,
                worker,
                plan: Plan {
                    max_events: options.launch.limits.max_events,
                    seed: options.launch.seed,
                    ..Plan::default()
                },
                queue: VecDeque::new(),
                known: BTreeMap::new(),
                summary: Summary::new(Instant::now()),
            };
            predicting.run(cancelled)
        }
        (None, None) => Err(Problem::new("neither a program nor a trace to predict from")),
    }
}

/// The built-in patterns, and the user's.
fn patterns(options: &PredictOptions) -> Result<Vec<Pattern>, Problem> {
    let mut patterns = pattern::built_in();
    for path in &options.patterns {
        let text = std::fs::read_to_string(path).map_err(|error| Problem::file("read", path, error))?;
        let further = pattern::parse(&text).map_err(|error| Problem::file("read", path, error))?;
        patterns.extend(further);
    }
    Ok(patterns)
}

/// Predictions from a trace, with no program to confirm them.
fn from_trace(path: &Path, patterns: &[Pattern], json: bool) -> Result<u8, Problem> {
    let trace = read_trace(path)?;
    let mut summary = Summary::new(Instant::now());
    let cannot = |error: PredictError| Problem::file("predict from", path, error);
    let history = History::new(&trace).map_err(cannot)?;
    let predictions = Predictor::new(&history).predict(patterns);
    summary.events = trace.events.len() as u64;
    summary.infeasible = predictions.infeasible.len() as u64;
    for prediction in &predictions.list {
        Anomaly::new(&history, prediction).print(json)?;
    }
    summary.print_labelled(&predictions.list, json)?;
    Ok(if predictions.list.is_empty() { exit::NOTHING_FOUND } else { exit::FOUND })
}

/// A trace in any format, told by its first bytes and by its name.
fn read_trace(path: &Path) -> Result<Trace, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::file("read", path, error))?;
    if bytes.starts_with(trace_file::MAGIC) {
        return trace_file::read(&bytes).map_err(|error| Problem::file("read", path, error));
    }
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let trace = if is_csv { import::csv(&bytes) } else { import::std(&bytes) };
    trace.map_err(|error| {
        let problem = Problem::file("read", path, &error);
        match help(&error, if is_csv { "CSV" } else { "STD" }) {
            Some(help) => problem.help(help),
            None => problem,
        }
    })
}

/// What to do about a file that is not a trace in `format`, where the line that is wrong does not say it.
fn help(error: &ImportError, format: &str) -> Option<String> {
    match error.wrong {
        Wrong::UnknownOperation(_) => Some(format!("the operations are {}", import::OPERATIONS)),
        // Not even the first line is one of a trace.
        Wrong::NotUtf8 | Wrong::Form { .. } | Wrong::Truncated { .. } | Wrong::Cells(_)
            if error.line == 1 =>
        {
            Some(format!(
                "a trace is a file that `threadbare record` wrote, or one in RAPID's STD or (by the ending .csv) CSV \
                 format; this was read as {format}"
            ))
        }
        _ => None,
    }
}

/// Predictions for a program, each confirmed or found false.
struct Predicting<'a> {
    options: &'a PredictOptions,
    patterns: Vec<Pattern>,
    ready: &'a Ready,
    worker: Worker,
    /// What is known to be shared, and the limits.
    plan: Plan,
    /// Schedules that showed something, to be predicted from.
    queue: VecDeque<Vec<Step>>,
    /// Anomalies that were predicted, by kind, pattern and source lines, and whether they were confirmed.
    known: BTreeMap<String, bool>,
    summary: Summary,
}

impl Predicting<'_> {
    fn run(&mut self, cancelled: &AtomicBool) -> Result<u8, Problem> {
        record::learn(&mut self.worker, &mut self.plan)?;
        self.summary.runs += record::LEARNING_RUNS;
        for number in 0..self.options.runs {
            if cancelled.load(Ordering::Relaxed) {
                break;
            }
            match self.predict_from(number) {
                Err(Stopped::Run(RunError::Cancelled)) => break,
                Err(Stopped::Run(error)) => return Err(error.into()),
                Err(Stopped::Output(problem)) => return Err(problem),
                Err(Stopped::Trace(error)) => return Err(Problem::new(format!("cannot predict: {error}"))),
                Ok(()) => {}
            }
        }
        self.summary.print_confirmed(self.options.json)?;
        Ok(if self.summary.confirmed > 0 { exit::FOUND } else { exit::NOTHING_FOUND })
    }

    /// The plan of the `number`-th run to predict from: as the user says, then what showed something, then random.
    fn next_plan(&mut self, number: u64) -> Plan {
        let seed = self.options.launch.seed.wrapping_add(number);
        let policy = match number {
            0 => record::policy(self.options.schedule, seed),
            _ => Policy::Random { seed },
        };
        match self.queue.pop_front() {
            Some(steps) => Plan { steps, ..self.plan.clone() },
            None => Plan { policy, ..self.plan.clone() },
        }
    }

    fn predict_from(&mut self, number: u64) -> Result<(), Stopped> {
        let plan = self.next_plan(number);
        let trace = self.worker.run(&plan)?.trace();
        self.summary.runs += 1;
        self.summary.events += trace.events.len() as u64;
        let history = History::new(&trace)?;
        let predictor = Predictor::new(&history);
        let predictions = predictor.predict(&self.patterns);
        self.summary.infeasible += predictions.infeasible.len() as u64;
        let mut learnt = Vec::new();
        for prediction in &predictions.list {
            let anomaly = Anomaly::new(&history, prediction);
            let known = self.known.get(anomaly.identity()).copied();
            if known.is_none() {
                self.summary.count_predicted(prediction.kind);
            }
            // What was false from one run may be true from another, in which threads go other ways.
            if known != Some(true) {
                learnt.extend(self.look_at(&history, &predictor, prediction, anomaly)?);
            }
        }
        // Not before: what is tracked decides what the places in a schedule mean.
        self.plan.tracked.extend(learnt);
        Ok(())
    }

    /// Confirms a prediction, and reports it if it is true. Gives back what memory turned out to be shared.
    fn look_at(
        &mut self,
        history: &History<'_>,
        predictor: &Predictor<'_, '_>,
        prediction: &Prediction,
        mut anomaly: Anomaly,
    ) -> Result<Vec<Extent>, Stopped> {
        let (worker, plan) = (&mut self.worker, &self.plan);
        let mut confirmation = Confirmation { worker, history, predictor, plan, runs: 0, learnt: Vec::new() };
        let outcome = confirmation.confirm(prediction)?;
        let learnt = confirmation.learnt;
        self.summary.runs += confirmation.runs;
        let happened = matches!(outcome, Outcome::Happened { .. });
        self.known.insert(anomaly.identity().to_owned(), happened);
        let Outcome::Happened { trace, steps, harm } = outcome else { return Ok(learnt) };
        self.summary.count_confirmed(prediction.kind, harm);
        anomaly.confirm(&trace, harm, self.summary.runs);
        let forced = Plan { steps, strict: true, ..self.plan.clone() };
        let clip = clip(self.worker.program(), &forced, &trace, &self.ready.origin);
        let path = self.options.out.join(anomaly.clip_name(&self.ready.name()));
        match self.ready.save_input().and_then(|()| write_clip(&clip, &path)) {
            Ok(()) => anomaly.clip = Some(path),
            Err(error) => Problem::file("write", &path, error).print(),
        }
        if !self.options.json && harm.is_failure() {
            say!("{}", screen::view(&trace))?;
        }
        anomaly.print(self.options.json)?;
        self.queue.push_back(forced.steps);
        Ok(learnt)
    }
}

/// Why predicting could not go on.
enum Stopped {
    Run(RunError),
    Trace(PredictError),
    Output(Problem),
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Stopped {
        Stopped::Output(problem)
    }
}

impl From<RunError> for Stopped {
    fn from(error: RunError) -> Stopped {
        Stopped::Run(error)
    }
}

impl From<PredictError> for Stopped {
    fn from(error: PredictError) -> Stopped {
        Stopped::Trace(error)
    }
}
