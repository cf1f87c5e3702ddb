//! A failing run is reduced and run again: only what happens again is a finding.

use threadbare_executor::{FailureKey, RunError, Worker};
use threadbare_trace::{FailureKind, Plan, Trace};

use crate::shrink;

/// A failure that happened again.
pub struct Confirmed {
    /// The plan with the fewest switches that could be found.
    pub plan: Plan,
    pub trace: Trace,
}

/// Reduces a failing schedule and runs it again; `None` if it does not fail again.
pub fn confirm(
    worker: &mut Worker,
    failing: &Plan,
    failure: &FailureKey,
) -> Result<Option<Confirmed>, RunError> {
    let failing = shorten(worker, failing, failure)?;
    let (plan, _) = shrink(worker, &failing, failure)?;
    let run = worker.run(&plan)?;
    if run.failure().as_ref() != Some(failure) {
        return Ok(None);
    }
    let trace = run.trace();
    Ok(Some(Confirmed { plan, trace }))
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
