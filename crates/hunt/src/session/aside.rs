//! The failures of a guided search: those that went through its sequence, and those that have nothing to do with it.

use std::sync::Arc;
use std::time::Duration;

use threadbare_executor::{FailureKey, Limits, RunError};
use threadbare_trace::Plan;

use super::{Held, Session};
use crate::confirmation::{Confirmed, confirm};
use crate::pool::Outcome;
use crate::{Finding, HuntError};

/// A failure that is not looked at yet, because it can wait.
pub(super) struct Aside {
    failure: FailureKey,
    failing: Plan,
    /// The number of the run, and the method that it came from.
    run: u64,
    method: &'static str,
}

/// A guided search is made of short sessions. What fails in one is reduced for so much longer, if need be.
const TIME_TO_REDUCE: Duration = Duration::from_secs(2);

impl Session<'_> {
    /// Keeps a failure that came before the run had passed the sequence.
    pub(super) fn put_aside(&mut self, failure: &FailureKey, failing: &Plan, outcome: &Outcome) {
        let is_known = self.known.contains(failure)
            || self.aside.iter().any(|aside| aside.failure == *failure)
            || self.course.as_ref().is_some_and(|course| course.is_known_aside(failure));
        if !is_known {
            let (failure, failing) = (failure.clone(), failing.clone());
            let Outcome { number: run, method, .. } = *outcome;
            self.aside.push(Aside { failure, failing, run, method });
        }
    }

    /// Looks at the failures that were kept.
    pub(super) fn look_aside(&mut self) -> Result<(), HuntError> {
        for Aside { failure, failing, run, method } in std::mem::take(&mut self.aside) {
            if !self.known.insert(failure.clone()) {
                continue;
            }
            match self.confirm(&failing, &failure, 0) {
                Ok(Some(Confirmed { plan, trace })) => {
                    self.course.iter_mut().for_each(|course| course.failed_aside(failure.clone()));
                    let finding = Finding::failure(failure.kind, Arc::new(trace), run + 1, method);
                    self.held.push(Held { key: failure, finding, plan });
                }
                Ok(None) => self.summary.unconfirmed += 1,
                Err(RunError::Cancelled | RunError::Late) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reduces a failing schedule and runs it again; `None` if it does not fail again.
    pub(super) fn confirm(
        &mut self,
        failing: &Plan,
        failure: &FailureKey,
        waypoints: usize,
    ) -> Result<Option<Confirmed>, RunError> {
        let limits = self.worker.limits().clone();
        if self.course.is_some() {
            let deadline = limits.deadline.map(|deadline| deadline + TIME_TO_REDUCE);
            self.worker.set_limits(Limits { deadline, ..limits.clone() });
        }
        let confirmed = confirm(&mut self.worker, failing, failure, waypoints);
        self.worker.set_limits(limits);
        confirmed
    }
}
