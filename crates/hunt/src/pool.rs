//! Workers side by side.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use threadbare_executor::{Ended, FailureKey, Keep, Limits, Run, RunError, StartError, Target, Worker};
use threadbare_rank::{Feedback, Schedule, Tuple};
use threadbare_trace::Plan;

/// A run to make, by its number.
struct Job {
    number: u64,
    schedule: Schedule,
}

/// What came of a run.
pub struct Outcome {
    pub number: u64,
    /// The strategy that it comes from, and where it stands in a ranking.
    pub method: &'static str,
    pub tuple: Option<Tuple>,
    /// What failed, each with a plan that forces the same schedule: the run itself, and data races that it had.
    pub failures: Vec<(FailureKey, Plan)>,
    /// What the strategy is told.
    pub feedback: Feedback,
}

impl Outcome {
    pub fn ended(&self) -> &Ended {
        &self.feedback.ended
    }
}

/// Why a worker has nothing to tell of a run.
pub enum Missed {
    Start(StartError),
    Run(RunError),
    /// The time for it was up.
    Late,
}

/// Threads, each with a worker of its own, that make runs.
pub struct Pool {
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<Result<Outcome, Missed>>,
    threads: Vec<JoinHandle<()>>,
}

/// What all runs are made with.
#[derive(Clone)]
pub struct Setting {
    pub target: Target,
    pub limits: Limits,
    /// When the time for all of them is up.
    pub deadline: Option<Instant>,
}

impl Pool {
    pub fn new(count: u32, setting: &Setting) -> Pool {
        let (jobs, queue) = channel::<Job>();
        let (results, outcomes) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..count)
            .map(|_| {
                let (queue, results) = (Arc::clone(&queue), results.clone());
                let setting = setting.clone();
                thread::spawn(move || work(&queue, &results, &setting))
            })
            .collect();
        Pool { jobs: Some(jobs), outcomes, threads }
    }

    /// Makes the runs of a round, numbered from `first`, and gives what came of them, in their order.
    pub fn run(&self, first: u64, round: Vec<Schedule>) -> Vec<Result<Outcome, Missed>> {
        let jobs = self.jobs.as_ref().expect("the pool is open");
        let count = round.len();
        for (number, schedule) in (first..).zip(round) {
            jobs.send(Job { number, schedule }).expect("workers live as long as the pool");
        }
        let mut outcomes: Vec<_> = self.outcomes.iter().take(count).collect();
        outcomes.sort_by_key(|outcome| outcome.as_ref().map_or(u64::MAX, |outcome| outcome.number));
        outcomes
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic there was printed there.
            let _ = thread.join();
        }
    }
}

/// One thread's life: starts its worker with the first job, and makes runs until the pool closes.
fn work(queue: &Mutex<Receiver<Job>>, results: &Sender<Result<Outcome, Missed>>, setting: &Setting) {
    let mut worker = None;
    // Races that this thread has told of.
    let mut seen = HashSet::new();
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let late = setting.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let outcome = if late { Err(Missed::Late) } else { make(&mut worker, setting, &mut seen, job) };
        if results.send(outcome).is_err() {
            return;
        }
    }
}

fn make(
    worker: &mut Option<Worker>,
    setting: &Setting,
    seen: &mut HashSet<FailureKey>,
    job: Job,
) -> Result<Outcome, Missed> {
    let worker = match worker {
        Some(worker) => worker,
        None => worker.insert(Worker::start(&setting.target, &setting.limits).map_err(Missed::Start)?),
    };
    // The last runs of a hunt have no more time than the hunt.
    let limit = setting.limits.time;
    let left = setting.deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()));
    worker.set_time_limit(limit.min(left));
    // Who asks for decisions means to go on from them.
    worker.keep_snapshots(job.schedule.plan.decisions.then(Keep::default));
    let run = worker.run(&job.schedule.plan).map_err(Missed::Run)?;
    let outcome = Outcome {
        number: job.number,
        method: job.schedule.method,
        tuple: job.schedule.tuple,
        failures: failures(&run, &job.schedule.plan, seen),
        feedback: Feedback::of(&run, &job.schedule),
    };
    worker.rest();
    Ok(outcome)
}

/// What failed in the run of `plan`. Races are told of once.
fn failures(run: &Run<'_>, plan: &Plan, seen: &mut HashSet<FailureKey>) -> Vec<(FailureKey, Plan)> {
    // Steps say it all, from the beginning.
    let forced = Plan { turns: Vec::new(), decisions: false, ..plan.clone() };
    let mut failures = run.races(&forced);
    failures.retain(|(key, _)| seen.insert(key.clone()));
    failures.extend(run.failure().map(|key| (key, Plan { steps: run.steps(), ..forced })));
    failures
}
