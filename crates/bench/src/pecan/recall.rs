//! Recall: how many of the real anomalies are confirmed by the first run of their schedule.
//!
//! A prediction that its schedule did not confirm is looked for in many other runs. It is real if one of them shows it
//! and is, up to there, a reordering of the trace that it was predicted from: a schedule should have led there. A run in
//! which a thread takes another path may have the same accesses in the same order. That is another anomaly, to be
//! predicted from a trace with that path.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use threadbare_executor::{Limits, RunError, Target as Program, Worker, learn};
use threadbare_predict::confirm::{Sighting, follows};
use threadbare_predict::{History, Predictor, Verdict, pattern};
use threadbare_search::reorder::plan::turns;
use threadbare_search::reorder::schedule::Target;
use threadbare_trace::{Event, EventKind, Plan, Policy, Random, ThreadId, ThreadIndex, Trace};

use super::Result;
use crate::build::{self, INSTRUMENTED};

/// Runs that are predicted from.
const RECORDINGS: u64 = 4;

/// An event without what differs from run to run: its kind and its place in the code.
type What = (EventKind, u64);

/// A prediction whose schedule did not show it.
struct Open {
    sighting: Sighting,
    /// The number of events of each of its threads up to the anomaly.
    lengths: BTreeMap<ThreadId, usize>,
}

#[derive(Default)]
struct Figures {
    predicted: u64,
    witnessed: u64,
    confirmed: u64,
    /// Real and not confirmed.
    missed: u64,
}

/// Predicts from a few runs of each subject, and looks in `runs` others for what was not confirmed. Good if nothing is
/// there.
pub fn run(runs: u64, names: &[String]) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!(
        "{:<18} {:>9} {:>9} {:>9} {:>6} {:>6}",
        "subject", "predicted", "witnessed", "confirmed", "missed", "recall"
    );
    let mut all_found = true;
    for (source, subject) in super::wanted(names)? {
        let program = directory.path().join(&subject.name);
        build::compile(&source, &program, &[INSTRUMENTED, &["-O0"]].concat())?;
        let Figures { predicted, witnessed, confirmed, missed } = examine(&program, runs)?;
        let recall = match confirmed + missed {
            0 => "-".to_owned(),
            real => format!("{:.2}", confirmed as f64 / real as f64),
        };
        println!("{:<18} {predicted:>9} {witnessed:>9} {confirmed:>9} {missed:>6} {recall:>6}", subject.name);
        all_found &= missed == 0;
    }
    Ok(all_found)
}

fn examine(program: &Path, runs: u64) -> Result<Figures> {
    let target = Program { program: program.to_owned(), ..Program::default() };
    let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
    let mut worker = Worker::start(&target, &limits)?;
    let mut plan = Plan { max_events: 100_000, ..Plan::default() };
    learn(&mut worker, &mut plan)?;
    let mut figures = Figures::default();
    for seed in 0..RECORDINGS {
        let policy = if seed == 0 { Policy::RunToBlock } else { Policy::Random { seed } };
        let trace = worker.run(&Plan { policy, ..plan.clone() })?.trace();
        predict_from(&trace, &mut worker, &plan, runs, &mut figures)?;
    }
    Ok(figures)
}

fn predict_from(
    trace: &Trace,
    worker: &mut Worker,
    plan: &Plan,
    runs: u64,
    figures: &mut Figures,
) -> Result<()> {
    let predictor = Predictor::new(History::new(trace.clone())?);
    let history = predictor.history();
    let mut open = Vec::new();
    for prediction in predictor.predict(&pattern::built_in()).list {
        figures.predicted += 1;
        figures.witnessed += u64::from(prediction.verdict == Verdict::Witnessed);
        let sighting = Sighting::of(history, &prediction.target);
        let forced = Plan { turns: turns(history, &prediction.schedule), ..plan.clone() };
        let run = worker.run(&forced)?.trace();
        if follows(history, &prediction.schedule, &run) && sighting.is_in(&run) {
            figures.confirmed += 1;
        } else {
            open.push(Open { sighting, lengths: lengths(history, &prediction.target) });
        }
    }
    figures.missed += look_for(open, &ways(history), worker, plan, runs)?;
    Ok(())
}

/// How many of the predictions are in one of the runs.
fn look_for(
    mut open: Vec<Open>,
    ways: &BTreeMap<ThreadId, Vec<What>>,
    worker: &mut Worker,
    plan: &Plan,
    runs: u64,
) -> std::result::Result<u64, RunError> {
    let all = open.len();
    let mut random = Random(0);
    for number in 0..runs {
        if open.is_empty() {
            break;
        }
        let run = worker.run(&Plan { policy: policy(number, &mut random), ..plan.clone() })?.trace();
        open.retain(|open| !open.is_in(&run, ways));
    }
    Ok((all - open.len()) as u64)
}

/// Policies of different kinds, so that what one rarely shows another shows.
fn policy(number: u64, random: &mut Random) -> Policy {
    match number % 3 {
        0 => Policy::Random { seed: number },
        1 => Policy::PartialOrder { seed: number },
        _ => {
            let mut changes: Vec<u64> = (0..3).map(|_| random.below(100)).collect();
            changes.sort_unstable();
            Policy::Priorities { seed: number, changes }
        }
    }
}

impl Open {
    /// It is in the run, and until it has happened every thread goes its way.
    fn is_in(&self, run: &Trace, ways: &BTreeMap<ThreadId, Vec<What>>) -> bool {
        let mut done: BTreeMap<&ThreadId, usize> = BTreeMap::new();
        let happened = |done: &BTreeMap<&ThreadId, usize>| {
            self.lengths.iter().all(|(thread, length)| done.get(thread).copied().unwrap_or(0) >= *length)
        };
        for event in &run.events {
            if happened(&done) {
                break;
            }
            let Some(what) = what(run, event) else { continue };
            let thread = run.thread(event.thread);
            let done = done.entry(thread).or_default();
            if ways.get(thread).and_then(|way| way.get(*done)) != Some(&what) {
                return false;
            }
            *done += 1;
        }
        happened(&done) && self.sighting.is_in(run)
    }
}

/// What each thread did in the trace.
fn ways(history: &History) -> BTreeMap<ThreadId, Vec<What>> {
    let trace = history.trace();
    let way = |thread: ThreadIndex| {
        let events = history.events_of(thread).iter();
        events.filter_map(|&event| what(trace, history.event(event))).collect()
    };
    let threads = ThreadIndex::first(trace.threads.len());
    threads.map(|thread| (trace.thread(thread).clone(), way(thread))).collect()
}

fn lengths(history: &History, target: &Target) -> BTreeMap<ThreadId, usize> {
    let mut lengths: BTreeMap<ThreadId, usize> = BTreeMap::new();
    for &event in target.stand.iter().chain(&target.sequence) {
        let thread = history.thread(event);
        // Who stands before an event need not have done it.
        let done = history.local(event).index() + usize::from(target.sequence.contains(&event));
        let events = history.events_of(thread)[..done].iter();
        let length = events.filter(|&&event| what(history.trace(), history.event(event)).is_some()).count();
        let known = lengths.entry(history.trace().thread(thread).clone()).or_default();
        *known = length.max(*known);
    }
    lengths
}

fn what(trace: &Trace, event: &Event) -> Option<What> {
    (!event.kind.is_silent()).then(|| (event.kind, trace.location(event.location).address))
}
