//! One prediction, run by run: does it happen, and does it do harm?
//!
//! Its schedule is run once: it happens there or the prediction is false. If it happens and the run does not fail, it is
//! brought about in the other ways that there are, in case one of them makes the program fail. If none does, the final
//! values of its variables are compared with those after each serial order of its units of work.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use threadbare_executor::RunEnd;
use threadbare_search::reorder::plan::{first_goes_on, turns};
use threadbare_search::reorder::schedule::{Reordering, Target};
use threadbare_search::{Harm, Recording};
use threadbare_trace::{End, Plan, Policy};

use super::Analysis;
use crate::confirm::{Sighting, final_values, follows, serial_orders};
use crate::{AnomalyKind, History, Prediction};

/// A prediction on its way to a verdict.
pub struct Confirmation {
    analysis: Arc<Analysis>,
    prediction: Prediction,
    identity: String,
    /// The run to be made next.
    attempt: Attempt,
    stage: Stage,
}

/// What came of a prediction.
pub enum Verdict {
    Happened { recording: Box<Recording>, harm: Harm },
    False,
}

/// A schedule, and what it is to bring about.
#[derive(Clone)]
struct Attempt {
    target: Target,
    schedule: Reordering,
    next: GoesOn,
}

/// Which thread of an anomaly goes on first once it has happened. It may do harm only if the right one does.
#[derive(Clone, Copy)]
enum GoesOn {
    Last,
    First,
}

enum Stage {
    /// Does it happen?
    Happens,
    /// It happened in `seen`, which did not fail. Does another way fail?
    Fails { seen: Box<Recording>, others: VecDeque<Attempt> },
    /// None did. Are the final values those of a serial order?
    Values { seen: Box<Recording>, values: BTreeMap<String, u64>, orders: VecDeque<Target>, compared: u64 },
}

impl Confirmation {
    pub fn new(analysis: Arc<Analysis>, prediction: Prediction) -> Confirmation {
        let (target, schedule) = (prediction.target.clone(), prediction.schedule.clone());
        Confirmation {
            identity: prediction.identity(analysis.predictor.history()),
            analysis,
            prediction,
            attempt: Attempt { target, schedule, next: GoesOn::Last },
            stage: Stage::Happens,
        }
    }

    /// What makes it the same as one predicted from another run.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn kind(&self) -> AnomalyKind {
        self.prediction.kind
    }

    pub fn prediction(&self) -> &Prediction {
        &self.prediction
    }

    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    fn history(&self) -> &History {
        self.analysis.predictor.history()
    }

    /// The plan of the next run.
    pub fn plan(&self) -> Plan {
        let Attempt { target, schedule, next } = &self.attempt;
        let plan = &self.analysis.plan;
        Plan {
            turns: turns(self.history(), schedule),
            steps: Vec::new(),
            learn: true,
            policy: match next {
                GoesOn::Last => Policy::RunToBlock,
                GoesOn::First => first_goes_on(self.history(), target),
            },
            max_events: plan.max_events.min(self.enough_events()),
            ..plan.clone()
        }
    }

    /// A run of the same program has about as many events as the recorded one. One that has far more is in a loop.
    fn enough_events(&self) -> u64 {
        const MIN_EVENTS: u64 = 10_000;
        MIN_EVENTS + 4 * self.history().trace().events.len() as u64
    }

    /// Goes on by the run that was made by [`plan`](Confirmation::plan). `None` if another has to be made.
    pub fn advance(&mut self, ended: &RunEnd, recording: Option<&Recording>) -> Option<Verdict> {
        let seen = recording.filter(|recording| self.is_shown_by(ended, recording));
        match std::mem::replace(&mut self.stage, Stage::Happens) {
            Stage::Happens => {
                let Some(seen) = seen else { return Some(Verdict::False) };
                let seen = Box::new(seen.clone());
                if has_failed(&seen) {
                    return Some(Verdict::Happened { recording: seen, harm: Harm::Failure });
                }
                self.try_to_fail(seen)
            }
            Stage::Fails { seen: first, others } => match seen.filter(|seen| has_failed(seen)) {
                Some(worse) => {
                    Some(Verdict::Happened { recording: Box::new(worse.clone()), harm: Harm::Failure })
                }
                None => self.go_on_failing(first, others),
            },
            Stage::Values { seen: first, values, orders, compared } => {
                let Some(serial) = seen else {
                    return self.compare_values(first, values, orders, compared);
                };
                if final_values(self.history(), &self.prediction, &serial.trace) == values {
                    return Some(Verdict::Happened { recording: first, harm: Harm::Unseen });
                }
                self.compare_values(first, values, orders, compared + 1)
            }
        }
    }

    /// The run followed the schedule to the last event, and what it is for happened.
    fn is_shown_by(&self, ended: &RunEnd, recording: &Recording) -> bool {
        let Attempt { target, schedule, .. } = &self.attempt;
        !matches!(ended, End::Diverged { .. })
            && follows(self.history(), schedule, &recording.trace)
            && Sighting::of(self.history(), target).is_in(&recording.trace)
    }

    /// The other ways to bring the anomaly about: another of its threads goes on first, or the two events of a data race
    /// come in the other order.
    fn try_to_fail(&mut self, seen: Box<Recording>) -> Option<Verdict> {
        let Prediction { target, schedule, .. } = &self.prediction;
        let mut others = VecDeque::from([Attempt {
            target: target.clone(),
            schedule: schedule.clone(),
            next: GoesOn::First,
        }]);
        if self.prediction.kind == AnomalyKind::DataRace {
            let mut events = self.prediction.events.clone();
            events.reverse();
            let target = Target::race(&events);
            if let Some((schedule, _)) = self.analysis.predictor.schedule(&target) {
                let reversed = Attempt { target, schedule, next: GoesOn::Last };
                others.extend([reversed.clone(), Attempt { next: GoesOn::First, ..reversed }]);
            }
        }
        self.go_on_failing(seen, others)
    }

    fn go_on_failing(&mut self, seen: Box<Recording>, mut others: VecDeque<Attempt>) -> Option<Verdict> {
        if let Some(attempt) = others.pop_front() {
            self.attempt = attempt;
            self.stage = Stage::Fails { seen, others };
            return None;
        }
        if self.prediction.tier.is_none() {
            return Some(Verdict::Happened { recording: seen, harm: Harm::Unseen });
        }
        let values = final_values(self.history(), &self.prediction, &seen.trace);
        let orders = serial_orders(self.history(), &self.prediction).into();
        self.compare_values(seen, values, orders, 0)
    }

    /// Goes on to the next serial order that can be scheduled.
    fn compare_values(
        &mut self,
        seen: Box<Recording>,
        values: BTreeMap<String, u64>,
        mut orders: VecDeque<Target>,
        compared: u64,
    ) -> Option<Verdict> {
        while let Some(target) = orders.pop_front() {
            if let Some((schedule, _)) = self.analysis.predictor.schedule(&target) {
                self.attempt = Attempt { target, schedule, next: GoesOn::Last };
                self.stage = Stage::Values { seen, values, orders, compared };
                return None;
            }
        }
        let harm = if compared > 0 { Harm::Values } else { Harm::Unseen };
        Some(Verdict::Happened { recording: seen, harm })
    }
}

fn has_failed(recording: &Recording) -> bool {
    recording.trace.end.failure().is_some()
}
