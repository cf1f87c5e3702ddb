//! Workers side by side.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use threadbare_executor::{Ended, FailureKey, Keep, Limits, RunError, StartError, Target, Worker};
use threadbare_rank::Feedback;
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
    /// What a strategy is told, if there is one.
    pub feedback: Option<Feedback>,
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
    /// A strategy wants to know what came of them.
    pub feedback: bool,
    /// Their plans share beginnings.
    pub snapshots: bool,
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
        None => worker.insert(start(setting).map_err(Missed::Start)?),
    };
    // The last runs of a hunt have no more time than the hunt.
    let limit = setting.limits.time;
    let left = setting.deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()));
    worker.set_time_limit(limit.min(left));
    let run = worker.run(&job.plan).map_err(Missed::Run)?;
    // Steps say it all, from the beginning.
    let plan = Plan { turns: Vec::new(), decisions: false, ..job.plan };
    let mut failures = run.races(&plan);
    failures.retain(|(key, _)| seen.insert(key.clone()));
    failures.extend(run.failure().map(|key| (key, Plan { steps: run.steps(), ..plan })));
    let outcome = Outcome {
        number: job.number,
        ended: run.ended().clone(),
        events: run.events(),
        threads: run.threads(),
        learnt: run.learnt(),
        failures,
        feedback: setting.feedback.then(|| Feedback::of(&run)),
    };
    worker.rest();
    Ok(outcome)
}

fn start(setting: &Setting) -> Result<Worker, StartError> {
    let mut worker = Worker::start(&setting.target, &setting.limits)?;
    if setting.snapshots {
        worker.keep_snapshots(Keep::default());
    }
    Ok(worker)
}
