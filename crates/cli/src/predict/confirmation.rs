//! A prediction is run: does it happen, and does it do harm?

use threadbare_executor::{Ended, RunError, Worker};
use threadbare_predict::confirm::{Sighting, final_values, follows, serial_orders};
use threadbare_predict::plan::{first_goes_on, turns};
use threadbare_predict::schedule::Target;
use threadbare_predict::{History, Kind, Prediction, Predictor};
use threadbare_trace::{End, Extent, Plan, Policy, Step, Trace};

/// What an anomaly did to the run that showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The run failed.
    Failure,
    /// Variables ended with values that they have after no serial order of the units of work.
    Values,
    /// Nothing that was seen. It may still matter, hence the question mark in reports.
    None,
}

impl Harm {
    pub const fn name(self) -> &'static str {
        match self {
            Harm::Failure => "failure",
            Harm::Values => "values",
            Harm::None => "benign?",
        }
    }

    pub fn is_failure(self) -> bool {
        self == Harm::Failure
    }
}

/// What came of a prediction's schedule.
pub enum Outcome {
    Happened { trace: Box<Trace>, steps: Vec<Step>, harm: Harm },
    False,
}

/// What is needed to confirm predictions from one trace.
pub struct Confirmation<'a, 't> {
    pub worker: &'a mut Worker,
    pub history: &'a History<'t>,
    pub predictor: &'a Predictor<'a, 't>,
    /// What the recorded run tracked, and its limits.
    pub plan: &'a Plan,
    /// Runs made.
    pub runs: u64,
    /// Shared memory that they found out about.
    pub learnt: Vec<Extent>,
}

/// Which thread of an anomaly goes on first once it has happened. It may do harm only if the right one does.
#[derive(Clone, Copy)]
enum Next {
    Last,
    First,
}

impl Confirmation<'_, '_> {
    /// Runs the prediction's schedule, once: it happens there or the prediction is false. If it happens and the run
    /// does not fail, it is brought about in the other ways that there are, in case one of them makes the program fail.
    pub fn confirm(&mut self, prediction: &Prediction) -> Result<Outcome, RunError> {
        let seen = self.run(&prediction.target, &prediction.schedule, Next::Last)?;
        let Some(seen) = seen else { return Ok(Outcome::False) };
        let worse = if seen.failed() { None } else { self.failing(prediction)? };
        let harm = match &worse {
            None if !seen.failed() => self.harm_to_values(prediction, &seen.trace)?,
            _ => Harm::Failure,
        };
        let Seen { trace, steps } = worse.unwrap_or(seen);
        Ok(Outcome::Happened { trace, steps, harm })
    }

    /// A run that fails with the anomaly: another of its threads goes on first, or the two events of a data race come in
    /// the other order.
    fn failing(&mut self, prediction: &Prediction) -> Result<Option<Seen>, RunError> {
        let mut ways = vec![(prediction.target.clone(), prediction.schedule.clone(), Next::First)];
        if prediction.kind == Kind::DataRace {
            let mut events = prediction.events.clone();
            events.reverse();
            let target = Target::race(&events);
            if let Some((schedule, _)) = self.predictor.schedule(&target) {
                ways.push((target.clone(), schedule.clone(), Next::Last));
                ways.push((target, schedule, Next::First));
            }
        }
        for (target, schedule, next) in ways {
            let seen = self.run(&target, &schedule, next)?;
            if let Some(seen) = seen.filter(Seen::failed) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    /// Runs a schedule. What came of it, if it was followed to the last event and what it is for happened.
    fn run(&mut self, target: &Target, schedule: &[u32], next: Next) -> Result<Option<Seen>, RunError> {
        let plan = Plan {
            turns: turns(self.history, schedule),
            learn: true,
            policy: self.policy(target, next),
            max_events: self.plan.max_events.min(self.enough_events()),
            ..self.plan.clone()
        };
        self.runs += 1;
        let run = self.worker.run(&plan)?;
        self.learnt.extend(run.learnt());
        if matches!(run.ended(), Ended::Diverged { .. }) {
            return Ok(None);
        }
        let (trace, steps) = (Box::new(run.trace()), run.steps());
        let happened =
            follows(self.history, schedule, &trace) && Sighting::of(self.history, target).is_in(&trace);
        Ok(happened.then_some(Seen { trace, steps }))
    }

    fn policy(&self, target: &Target, next: Next) -> Policy {
        match next {
            Next::Last => Policy::RunToBlock,
            Next::First => first_goes_on(self.history, target),
        }
    }

    /// A run of the same program has about as many events as the recorded one. One that has far more is in a loop.
    fn enough_events(&self) -> u64 {
        const LEAST: u64 = 10_000;
        LEAST + 4 * self.history.trace().events.len() as u64
    }

    fn harm_to_values(&mut self, prediction: &Prediction, run: &Trace) -> Result<Harm, RunError> {
        let harmful = self.ends_like_no_serial_order(prediction, run)?;
        Ok(if harmful { Harm::Values } else { Harm::None })
    }

    /// The variables of the anomaly have final values that no serial order of its units of work gives them.
    fn ends_like_no_serial_order(&mut self, prediction: &Prediction, run: &Trace) -> Result<bool, RunError> {
        if prediction.tier.is_none() {
            return Ok(false);
        }
        let values = final_values(self.history, prediction, run);
        let mut orders = 0;
        for target in serial_orders(self.history, prediction) {
            let Some((schedule, _)) = self.predictor.schedule(&target) else { continue };
            let Some(serial) = self.run(&target, &schedule, Next::Last)? else { continue };
            orders += 1;
            if final_values(self.history, prediction, &serial.trace) == values {
                return Ok(false);
            }
        }
        Ok(orders > 0)
    }
}

/// A run that showed what it was for.
struct Seen {
    trace: Box<Trace>,
    steps: Vec<Step>,
}

impl Seen {
    fn failed(&self) -> bool {
        matches!(self.trace.end, End::Failed { .. })
    }
}
