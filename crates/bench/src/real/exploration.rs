//! Runs one program under many schedules and collects the results.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use threadbare_executor::{FailureKey, Limits, RunEnd, Target, Worker, learn};
use threadbare_trace::{End, Plan, Policy};

/// The most events of a run. Threads that pass blocks of data make many.
const MAX_EVENTS: u64 = 20_000_000;
const MAX_TIME: Duration = Duration::from_secs(60);

/// What was seen.
#[derive(Default)]
pub struct Exploration {
    pub runs: u64,
    pub events: u64,
    /// The most threads of a run, the main thread included.
    pub threads: u32,
    /// The runs that gave each result, and whether it is right.
    pub results: HashMap<Vec<u8>, (u64, bool)>,
    /// A plan for each failure that there was, and for each wrong result.
    pub failures: HashMap<FailureKey, Plan>,
    pub wrong: Vec<Plan>,
    /// How runs ended that did not end by themselves.
    pub stopped: Vec<RunEnd>,
}

impl Exploration {
    /// Runs that ended with the right result.
    pub fn right(&self) -> u64 {
        self.results.values().filter(|(_, right)| *right).map(|(runs, _)| runs).sum()
    }
}

pub fn start(target: &Target) -> Result<Worker, Box<dyn Error>> {
    Ok(Worker::start(target, &Limits { time: MAX_TIME, ..Limits::default() })?)
}

/// Runs `schedules` plans. `is_right` judges each different result once.
pub fn explore(
    worker: &mut Worker,
    schedules: u64,
    is_right: impl Fn(&[u8]) -> Result<bool, Box<dyn Error>>,
) -> Result<Exploration, Box<dyn Error>> {
    let mut seen = Exploration::default();
    let mut plan = Plan { max_events: MAX_EVENTS, ..Plan::default() };
    learn(worker, &mut plan)?;
    for number in 0..schedules {
        plan.policy = policy(number, seen.events / seen.runs.max(1));
        let run = worker.run(&plan)?;
        seen.runs += 1;
        seen.events += run.events();
        seen.threads = seen.threads.max(run.threads());
        match run.ended() {
            End::Finished => {
                let output = run.output_bytes();
                let right = match seen.results.get(&output) {
                    Some((_, right)) => *right,
                    None => is_right(&output)?,
                };
                let result = seen.results.entry(output).or_insert((0, right));
                result.0 += 1;
                if !right && result.0 == 1 {
                    seen.wrong.push(plan.clone());
                }
            }
            End::Failed { .. } => {
                let steps = run.steps();
                let key = run.failure().expect("the run failed");
                seen.failures.entry(key).or_insert_with(|| Plan { steps, ..plan.clone() });
            }
            ended => seen.stopped.push(ended.clone()),
        }
    }
    Ok(seen)
}

/// Random schedules and priority schedules in turn, the latter with changes all over a run of `events`.
fn policy(seed: u64, events: u64) -> Policy {
    if seed.is_multiple_of(2) {
        return Policy::Random { seed };
    }
    let mut changes: Vec<u64> = [7919, 104_729].map(|prime| seed * prime % events.max(1)).to_vec();
    changes.sort_unstable();
    Policy::Priorities { seed, changes }
}
