//! Workers side by side.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use threadbare_executor::{Ended, FailureKey, Limits, RunError, StartError, Target, Worker};
use threadbare_trace::{Extent, Plan};

/// A run to make, by its number.
struct Job {
    number: u64,
    plan: Plan,
}

/// What came of a run.
pub struct Outcome {
    pub number: u64,
    pub ended: Ended,
    pub events: u64,
    pub threads: u32,
    pub learnt: Vec<Extent>,
    /// What failed, each with a plan that forces the same schedule: the run itself, and data races that it had.
    pub failures: Vec<(FailureKey, Plan)>,
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

impl Pool {
    pub fn new(count: u32, target: &Target, limits: &Limits, deadline: Option<Instant>) -> Pool {
        let (jobs, queue) = channel::<Job>();
        let (results, outcomes) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..count)
            .map(|_| {
                let (queue, results) = (Arc::clone(&queue), results.clone());
                let (target, limits) = (target.clone(), limits.clone());
                thread::spawn(move || work(&queue, &results, &target, &limits, deadline))
            })
            .collect();
        Pool { jobs: Some(jobs), outcomes, threads }
    }

    /// Makes the runs of a round and gives what came of them, in the order of their numbers.
    pub fn run(&self, plans: impl Iterator<Item = (u64, Plan)>) -> Vec<Result<Outcome, Missed>> {
        let jobs = self.jobs.as_ref().expect("the pool is open");
        let mut count = 0;
        for (number, plan) in plans {
            count += 1;
            jobs.send(Job { number, plan }).expect("workers live as long as the pool");
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
fn work(
    queue: &Mutex<Receiver<Job>>,
    results: &Sender<Result<Outcome, Missed>>,
    target: &Target,
    limits: &Limits,
    deadline: Option<Instant>,
) {
    let mut worker = None;
    // Races that this thread has told of.
    let mut seen = HashSet::new();
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let outcome = if late {
            Err(Missed::Late)
        } else {
            make(&mut worker, target, limits, deadline, &mut seen, job)
        };
        if results.send(outcome).is_err() {
            return;
        }
    }
}

fn make(
    worker: &mut Option<Worker>,
    target: &Target,
    limits: &Limits,
    deadline: Option<Instant>,
    seen: &mut HashSet<FailureKey>,
    job: Job,
) -> Result<Outcome, Missed> {
    let worker = match worker {
        Some(worker) => worker,
        None => worker.insert(Worker::start(target, limits).map_err(Missed::Start)?),
    };
    // The last runs of a hunt have no more time than the hunt.
    let left = deadline.map_or(limits.time, |deadline| deadline.saturating_duration_since(Instant::now()));
    worker.set_time_limit(limits.time.min(left));
    let run = worker.run(&job.plan).map_err(Missed::Run)?;
    let mut failures = run.races(&job.plan);
    failures.retain(|(key, _)| seen.insert(key.clone()));
    failures.extend(run.failure().map(|key| (key, Plan { steps: run.steps(), ..job.plan.clone() })));
    let outcome = Outcome {
        number: job.number,
        ended: run.ended().clone(),
        events: run.events(),
        threads: run.threads(),
        learnt: run.learnt(),
        failures,
    };
    worker.rest();
    Ok(outcome)
}
