//! The same failure with fewer switches.

use std::time::{Duration, Instant};

use threadbare_executor::{FailureKey, Run, RunError, Worker};
use threadbare_trace::{End, Outcome, Plan, Policy, Step};

// The most that is spent on one failure. It is counted in what the runs do, so that the same failure has the same clip on
// a slow machine. Together it is about ten seconds.
const MAX_RUNS: u64 = 600;
const MAX_EVENTS: u64 = 4_000_000;
/// A run that hangs is stopped only at the time limit.
const MAX_HANGING_RUNS: u64 = 1;

/// A failing schedule being reduced.
struct Shrinking<'w> {
    worker: &'w mut Worker,
    /// The plan whose steps are varied.
    plan: Plan,
    failure: FailureKey,
    /// Waypoints that a guided run is to pass.
    waypoints: usize,
    best: Vec<Step>,
    /// How many waits and sleeps end early in it; `None` if that is not known.
    early_ends: Option<usize>,
    runs: u64,
    events: u64,
    hanging_runs: u64,
    longest_run: Duration,
}

/// A plan that forces every switch, has as few of them as could be found, and ends in `failure`. Also says how
/// many runs that took. `failing` is the plan of a run that failed so, with the steps of that run. When the time of
/// the worker is over, it is the best plan so far. A guided run passes as many `waypoints` as before.
pub fn shrink(
    worker: &mut Worker,
    failing: &Plan,
    failure: &FailureKey,
    waypoints: usize,
) -> Result<(Plan, u64), RunError> {
    // Only a guided run knows which waypoints it passes.
    let policy = if waypoints > 0 { failing.policy.clone() } else { Policy::RunToBlock };
    let plan = Plan { policy, strict: false, learn: false, decisions: false, ..failing.clone() };
    let best = plan.steps.clone();
    let mut shrinking = Shrinking {
        worker,
        plan,
        failure: failure.clone(),
        waypoints,
        best,
        early_ends: None,
        runs: 0,
        events: 0,
        hanging_runs: 0,
        longest_run: Duration::ZERO,
    };
    shrinking.hold_sleeps()?;
    // Without any step at all, then with ever smaller pieces left out.
    shrinking.attempt(Vec::new())?;
    shrinking.leave_out()?;
    while shrinking.merge()? {}
    let Shrinking { mut plan, best, runs, .. } = shrinking;
    plan.steps = best;
    plan.strict = true;
    plan.policy = Policy::RunToBlock;
    Ok((plan, runs))
}

/// How many waits and sleeps ended though others could run.
fn early_ends(run: &Run<'_>) -> usize {
    run.records().iter().filter(|record| record.outcome() == Some(Outcome::Early)).count()
}

impl Shrinking<'_> {
    fn is_spent(&self) -> bool {
        let limits = self.worker.limits();
        // The best schedule is run once more, to confirm it.
        let is_late = limits.left().is_some_and(|left| left < self.longest_run * 2);
        limits.is_over()
            || is_late
            || self.runs >= MAX_RUNS
            || self.events >= MAX_EVENTS
            || self.hanging_runs >= MAX_HANGING_RUNS
    }

    /// Runs with these steps, loosely; if that fails the same way with fewer switches, the schedule that came
    /// of it is the new best.
    fn attempt(&mut self, steps: Vec<Step>) -> Result<bool, RunError> {
        if self.is_spent() {
            return Ok(false);
        }
        self.runs += 1;
        self.plan.steps = steps;
        let start = Instant::now();
        let run = match self.worker.run(&self.plan) {
            // What is known by now is a failing schedule all the same.
            Err(RunError::Cancelled | RunError::Late) => return Ok(false),
            run => run?,
        };
        self.longest_run = self.longest_run.max(start.elapsed());
        self.events += run.events();
        self.hanging_runs += u64::from(matches!(run.ended(), End::TimeLimit { .. }));
        if run.failure().as_ref() != Some(&self.failure) || run.passes().len() < self.waypoints {
            return Ok(false);
        }
        let (steps, early_ends) = (run.steps(), early_ends(&run));
        let (shorter, as_short) = (steps.len() < self.best.len(), steps.len() == self.best.len());
        let better = match self.early_ends {
            Some(best) => early_ends < best && (shorter || as_short) || early_ends == best && shorter,
            None => shorter,
        };
        if better {
            (self.best, self.early_ends) = (steps, Some(early_ends));
        }
        Ok(better)
    }

    /// Lets fewer sleeps be outlasted, if it fails then too.
    fn hold_sleeps(&mut self) -> Result<(), RunError> {
        let most = self.plan.outlasting.sleeps;
        for sleeps in 0..most {
            self.plan.outlasting.sleeps = sleeps;
            self.plan.steps = self.best.clone();
            self.runs += 1;
            let run = self.worker.run(&self.plan)?;
            if run.failure().as_ref() == Some(&self.failure) && run.passes().len() >= self.waypoints {
                (self.best, self.early_ends) = (run.steps(), Some(early_ends(&run)));
                return Ok(());
            }
        }
        self.plan.outlasting.sleeps = most;
        Ok(())
    }

    /// Leaves out runs of steps, from halves down to single ones.
    fn leave_out(&mut self) -> Result<(), RunError> {
        let mut piece = self.best.len().div_ceil(2);
        while piece > 0 && !self.is_spent() {
            let mut at = 0;
            while at < self.best.len() && !self.is_spent() {
                let mut steps = self.best.clone();
                steps.drain(at..(at + piece).min(steps.len()));
                if !self.attempt(steps)? {
                    at += piece;
                }
            }
            piece = if piece == 1 { 0 } else { piece.div_ceil(2).min(piece - 1) };
        }
        Ok(())
    }

    /// Joins two steps of one thread into one, at the place of the first.
    fn merge(&mut self) -> Result<bool, RunError> {
        for i in 0..self.best.len() {
            if self.is_spent() {
                break;
            }
            let step = &self.best[i];
            let Some(j) = (i + 1..self.best.len()).find(|&j| self.best[j].thread == step.thread) else {
                continue;
            };
            let mut steps = self.best.clone();
            steps[i].until = steps.remove(j).until;
            if self.attempt(steps)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
