//! Workers side by side.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use threadbare_executor::{FailureKey, Limits, Run, RunEnd, RunError, StartError, Target, Worker};
use threadbare_search::{Feedback, Schedule, Token, Tuple, run_schedule};
use threadbare_trace::{End, FailureKind, Plan};

/// A run to make, by its number.
struct Job {
    number: u64,
    schedule: Schedule,
    /// How long it may take.
    time: Duration,
}

/// What came of a run.
pub struct Outcome {
    pub number: u64,
    /// The schedule's name, the strategy that it comes from, and where it stands in a ranking.
    pub token: Token,
    pub method: &'static str,
    pub tuple: Option<Tuple>,
    /// What failed, each with a plan that forces the same schedule: the run itself, and data races that it had.
    pub failures: Vec<(FailureKey, Plan)>,
    /// The plan of a run that was stopped.
    pub stopped: Option<Plan>,
    /// What came of the same schedule with freed memory inaccessible, if it was run so and came to its end.
    pub guarded: Option<Guarded>,
    /// What the strategy is told.
    pub feedback: Feedback,
}

impl Outcome {
    pub fn ended(&self) -> &RunEnd {
        &self.feedback.ended
    }
}

/// What came of a schedule that was run again with freed memory inaccessible.
pub struct Guarded {
    /// What failed, with a plan that forces the same schedule.
    pub failure: Option<(FailureKey, Plan)>,
}

/// Why a run was not made.
pub enum NotMade {
    Start(StartError),
    Run(RunError),
}

/// Threads that make runs, each with a worker of its own.
pub struct Pool {
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<(u64, Result<Outcome, NotMade>)>,
    threads: Vec<JoinHandle<()>>,
}

/// What all runs are made with.
#[derive(Clone)]
pub struct PoolConfig {
    pub target: Target,
    pub limits: Limits,
}

impl Pool {
    pub fn new(count: u32, config: &PoolConfig) -> Pool {
        let (jobs, queue) = channel::<Job>();
        let (results, outcomes) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..count)
            .map(|_| {
                let (queue, results) = (Arc::clone(&queue), results.clone());
                let config = config.clone();
                thread::spawn(move || work(&queue, &results, &config))
            })
            .collect();
        Pool { jobs: Some(jobs), outcomes, threads }
    }

    /// Makes the runs of a round, numbered from `first`, and gives what came of them, in their order.
    /// A run may take `time`.
    pub fn run(&self, first: u64, round: Vec<Schedule>, time: Duration) -> Vec<Result<Outcome, NotMade>> {
        let jobs = self.jobs.as_ref().expect("the pool is open");
        let count = round.len();
        for (number, schedule) in (first..).zip(round) {
            jobs.send(Job { number, schedule, time }).expect("workers live as long as the pool");
        }
        let mut outcomes: Vec<_> = self.outcomes.iter().take(count).collect();
        outcomes.sort_by_key(|(number, _)| *number);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
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
    results: &Sender<(u64, Result<Outcome, NotMade>)>,
    config: &PoolConfig,
) {
    let mut worker = None;
    // Races that this worker has told of.
    let mut told = HashSet::new();
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let number = job.number;
        let outcome = make(&mut worker, config, &mut told, job);
        if results.send((number, outcome)).is_err() {
            return;
        }
    }
}

fn make(
    worker: &mut Option<Worker>,
    config: &PoolConfig,
    told: &mut HashSet<FailureKey>,
    job: Job,
) -> Result<Outcome, NotMade> {
    if config.limits.is_late() {
        return Err(NotMade::Run(RunError::Late));
    }
    let worker = match worker {
        Some(worker) => worker,
        None => worker.insert(Worker::start(&config.target, &config.limits).map_err(NotMade::Start)?),
    };
    let Job { number, schedule, time } = job;
    worker.set_time_limit(time);
    let run = run_schedule(worker, &schedule).map_err(NotMade::Run)?;
    let mut outcome = Outcome {
        number,
        token: schedule.token,
        method: schedule.method,
        tuple: schedule.tuple,
        failures: failures(&run, &schedule.plan, told),
        stopped: is_stopped(run.ended()).then(|| schedule.plan.clone()),
        feedback: Feedback::of(&run, &schedule),
        guarded: None,
    };
    if is_guarded(number) && is_worth_guarding(outcome.ended()) {
        outcome.guarded = guarded(worker, &schedule.plan)?;
    }
    worker.rest();
    Ok(outcome)
}

/// So many of the first schedules are also run guarded. A program without threads has no more than three runs.
const FIRST_GUARDED: u64 = 3;
/// One schedule in so many is also run guarded after that.
const GUARDED: u64 = 16;

/// Whether the schedule of the `number`-th run (from 0) is run again with freed memory inaccessible.
///
/// It is a second run, and the strategy is not told of it: addresses are others then, and so is the state of a program
/// that has an address in it. A search that goes on from states would be led astray.
fn is_guarded(number: u64) -> bool {
    number < FIRST_GUARDED || number.is_multiple_of(GUARDED)
}

/// A run that failed has shown something already, and one that took too long would do so again.
fn is_worth_guarding(ended: &RunEnd) -> bool {
    match ended {
        End::Finished | End::EventBound => true,
        ended => matches!(ended.failure_kind(), Some(FailureKind::ExitCode(_))),
    }
}

/// Runs `plan` once more, guarded; `None` if that run does not come to its end.
fn guarded(worker: &mut Worker, plan: &Plan) -> Result<Option<Guarded>, NotMade> {
    let plan = Plan { guarded: true, learn: false, decisions: false, races: false, ..plan.clone() };
    let run = match worker.run(&plan) {
        Err(RunError::Cancelled | RunError::Late) => return Ok(None),
        run => run.map_err(NotMade::Run)?,
    };
    let failure = run.failure().map(|key| (key, Plan { turns: Vec::new(), steps: run.steps(), ..plan }));
    let has_ended = failure.is_some() || *run.ended() == End::Finished;
    Ok(has_ended.then_some(Guarded { failure }))
}

fn is_stopped(ended: &RunEnd) -> bool {
    matches!(ended, End::EventBound | End::TimeLimit { .. })
}

/// What failed in the run of `plan`. A race is told of once.
fn failures(run: &Run<'_>, plan: &Plan, told: &mut HashSet<FailureKey>) -> Vec<(FailureKey, Plan)> {
    // The steps of the run force its whole schedule, so the turns are not needed.
    let forced = Plan { turns: Vec::new(), decisions: false, ..plan.clone() };
    let mut failures = run.races(&forced);
    failures.retain(|(key, _)| told.insert(key.clone()));
    failures.extend(run.failure().map(|key| {
        let mut plan = Plan { steps: run.steps(), ..forced };
        // A run that looks at all accesses has seen it. One that does not must track the memory.
        if key.kind == FailureKind::UseAfterReturn {
            plan.tracked.extend(run.learnt());
        }
        (key, plan)
    }));
    failures
}
