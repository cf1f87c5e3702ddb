//! A prediction is run: does it happen, and does it do harm?

use threadbare_executor::{Ended, RunError, Worker};
use threadbare_predict::confirm::{Sighting, final_values, serial_orders};
use threadbare_predict::plan::steps;
use threadbare_predict::schedule::{Schedule, Target};
use threadbare_predict::{History, Kind, Prediction, Predictor};
use threadbare_trace::{Extent, FailureKind, Plan, Policy, Step, Trace};

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

impl Confirmation<'_, '_> {
    /// Runs the prediction's schedule. The two events of a data race may come in either order, and only one may do
    /// harm; so if the first does none, the other is run too.
    pub fn confirm(&mut self, prediction: &Prediction) -> Result<Outcome, RunError> {
        let first = self.run(&prediction.target, &prediction.schedule)?;
        let first = self.judged(prediction, first)?;
        let harmful = matches!(&first, Outcome::Happened { harm, .. } if *harm != Harm::None);
        if harmful || prediction.kind != Kind::DataRace {
            return Ok(first);
        }
        let mut events = prediction.events.clone();
        events.reverse();
        let target = Target::race(&events);
        let Some((schedule, _)) = self.predictor.schedule(&target) else { return Ok(first) };
        let second = self.run(&target, &schedule)?;
        let second = self.judged(prediction, second)?;
        Ok(match (&first, &second) {
            (Outcome::False, _) | (_, Outcome::Happened { harm: Harm::Failure, .. }) => second,
            _ => first,
        })
    }

    /// Runs a schedule, strictly; the trace and the steps of the run, if what it is for happened.
    ///
    /// A thread that sees what the anomaly made of a variable may go another way than recorded, and then never comes to
    /// where its step stops. Such a schedule is run once more without being strict: what counts is that the anomaly is
    /// seen.
    fn run(&mut self, target: &Target, schedule: &Schedule) -> Result<Option<Seen>, RunError> {
        let sighting = Sighting::of(self.history, target);
        let strict = Plan {
            steps: steps(self.history, schedule),
            strict: true,
            learn: true,
            policy: Policy::RunToBlock,
            max_events: self.plan.max_events.min(self.enough_events()),
            ..self.plan.clone()
        };
        let (diverged, seen) = self.follow(&strict)?;
        let seen = if diverged { self.follow(&Plan { strict: false, ..strict })?.1 } else { seen };
        Ok(seen.filter(|seen| sighting.is_in(&seen.trace)))
    }

    /// Runs a plan. Says whether it could not be followed, and gives what was seen, unless that says nothing of the
    /// program: threads that the steps hold back may be waited for in vain.
    fn follow(&mut self, plan: &Plan) -> Result<(bool, Option<Seen>), RunError> {
        self.runs += 1;
        let run = self.worker.run(plan)?;
        self.learnt.extend(run.learnt());
        let diverged = matches!(run.ended(), Ended::Diverged { .. });
        let stuck = matches!(run.ended(), Ended::Failed { kind: FailureKind::Livelock, .. });
        let seen = (!stuck).then(|| Seen { trace: Box::new(run.trace()), steps: run.steps() });
        Ok((diverged, seen))
    }

    /// A run of the same program has about as many events as the recorded one. One that has far more waits in a loop
    /// for a thread that its steps hold back.
    fn enough_events(&self) -> u64 {
        const LEAST: u64 = 10_000;
        LEAST + 4 * self.history.trace().events.len() as u64
    }

    fn judged(&mut self, prediction: &Prediction, seen: Option<Seen>) -> Result<Outcome, RunError> {
        let Some(Seen { trace, steps }) = seen else { return Ok(Outcome::False) };
        let harm = if matches!(trace.end, threadbare_trace::End::Failed { .. }) {
            Harm::Failure
        } else if self.ends_like_no_serial_order(prediction, &trace)? {
            Harm::Values
        } else {
            Harm::None
        };
        Ok(Outcome::Happened { trace, steps, harm })
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
            let Some(serial) = self.run(&target, &schedule)? else { continue };
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
