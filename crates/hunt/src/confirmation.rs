//! A failing run is reduced and run again: only what happens again is a finding.

use std::time::Duration;

use threadbare_executor::{FailureKey, RunError, Worker};
use threadbare_trace::{FailureKind, Plan, Trace};

use crate::shrink;

/// When the hunt is over, what failed last is still confirmed, though not reduced any further. So much time is for all
/// such failures together if the budget is used up, or for each if the user waits for the end.
const AFTER_DEADLINE: Duration = Duration::from_secs(1);
const AFTER_INTERRUPT: Duration = Duration::from_millis(300);

/// A failure that happened again.
pub struct Confirmed {
    /// The plan with the fewest switches that could be found.
    pub plan: Plan,
    pub trace: Trace,
}

/// Reduces a failing schedule and runs it again; `None` if it does not fail again. In a guided run, so many waypoints are
/// to be passed all the same.
pub fn confirm(
    worker: &mut Worker,
    failing: &Plan,
    failure: &FailureKey,
    waypoints: usize,
) -> Result<Option<Confirmed>, RunError> {
    let failing = match shorten(worker, failing, failure) {
        Err(RunError::Cancelled | RunError::Late) => failing.clone(),
        shorter => shorter?,
    };
    let (plan, _) = shrink(worker, &failing, failure, waypoints)?;
    let limits = worker.limits().clone();
    if limits.is_over() {
        let time = if limits.is_cancelled() { AFTER_INTERRUPT } else { AFTER_DEADLINE };
        worker.set_limits(limits.beyond(time));
    }
    let confirmed = run_again(worker, plan, failure);
    worker.set_limits(limits);
    confirmed
}

fn run_again(worker: &mut Worker, plan: Plan, failure: &FailureKey) -> Result<Option<Confirmed>, RunError> {
    let run = worker.run(&plan)?;
    let is_same = run.failure().as_ref() == Some(failure);
    let trace = is_same.then(|| run.trace());
    Ok(trace.map(|trace| Confirmed { plan, trace }))
}

/// A livelock goes on for as long as it is let: a short piece of it shows as much.
fn shorten(worker: &mut Worker, failing: &Plan, failure: &FailureKey) -> Result<Plan, RunError> {
    const ENOUGH: u64 = 4000;
    if failure.kind != FailureKind::Livelock || failing.max_events <= ENOUGH {
        return Ok(failing.clone());
    }
    let short = Plan { max_events: ENOUGH, steps: Vec::new(), ..failing.clone() };
    let run = worker.run(&short)?;
    let is_same = run.failure().is_some_and(|failure| failure.kind == FailureKind::Livelock);
    Ok(if is_same { Plan { steps: run.steps(), ..short } } else { failing.clone() })
}
