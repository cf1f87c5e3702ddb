//! Predictions as schedules of a hunt.
//!
//! A run is recorded. Then the schedule of every anomaly that its trace predicts is run. When they all were, another run
//! is recorded, by another schedule, until that brings nothing new. A hunt looks for failures, so nobody asks whether
//! the anomaly came about.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use threadbare_search::reorder::plan;
use threadbare_search::{Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token};
use threadbare_trace::{Plan, Policy, Random, Trace, Turns};

use crate::{AnomalyKind, History, Pattern, Prediction, Predictor, pattern};

/// PECAN's predictions.
pub struct Forecast {
    knowledge: Knowledge,
    patterns: Vec<Pattern>,
    random: Random,
    /// Schedules to be run.
    predicted: VecDeque<Predicted>,
    /// Those that force more turns than this are for when there are no others.
    max_turns: u64,
    /// Anomalies that were predicted before.
    known: HashSet<String>,
    asked: Outstanding<Asked>,
    recordings: u64,
    /// Recordings in a row that brought nothing new.
    fruitless: u64,
}

/// A schedule that shows an anomaly.
struct Predicted {
    /// The recorded run's: what is tracked decides what a turn is.
    plan: Arc<Plan>,
    turns: Vec<Turns>,
    /// What is done once the anomaly has come about.
    policy: Policy,
}

enum Asked {
    Recording(Arc<Plan>),
    Prediction,
}

/// The first recordings go by this schedule: it has the fewest switches, and what it does not show is left to predict.
const RUN_TO_BLOCK_RECORDINGS: u64 = 2;
/// So many recordings without anything new are enough.
const FRUITLESS: u64 = 4;
/// Longer traces are not predicted from: it would take longer than the runs.
const MAX_EVENTS: usize = 200_000;

impl Forecast {
    pub fn new(settings: Settings) -> Forecast {
        Forecast {
            random: Random(settings.plan.seed),
            knowledge: Knowledge::new(settings.plan),
            patterns: pattern::built_in(),
            predicted: VecDeque::new(),
            max_turns: u64::MAX,
            known: HashSet::new(),
            asked: Outstanding::default(),
            recordings: 0,
            fruitless: 0,
        }
    }

    fn record(&mut self) -> Schedule {
        let policy = match self.recordings {
            ..RUN_TO_BLOCK_RECORDINGS => Policy::RunToBlock,
            _ => Policy::Random { seed: self.random.next() },
        };
        self.recordings += 1;
        let plan = Plan { policy, learn: true, ..self.knowledge.plan.clone() };
        let token = self.asked.issue(Asked::Recording(Arc::new(plan.clone())));
        Schedule { traced: true, ..Schedule::new(token, self.name(), plan) }
    }

    fn show(&mut self, Predicted { plan, turns, policy }: Predicted) -> Schedule {
        let token = self.asked.issue(Asked::Prediction);
        Schedule::new(token, self.name(), Plan { turns, policy, ..(*plan).clone() })
    }

    /// Predicts from a recorded run; says whether there was anything new.
    fn predict(&mut self, trace: &Arc<Trace>, plan: &Arc<Plan>) -> bool {
        // What cannot be predicted from is still a run.
        let Ok(history) = History::new(Arc::clone(trace)) else { return false };
        let predictor = Predictor::new(history);
        let mut predictions = predictor.predict(&self.patterns).list;
        let history = predictor.history();
        // A deadlock is a failure for certain.
        predictions.sort_by_key(|prediction| prediction.kind != AnomalyKind::Deadlock);
        predictions.retain(|prediction| self.known.insert(prediction.identity(history)));
        let predicted = |prediction: &Prediction, policy| {
            let turns = plan::turns(history, &prediction.schedule);
            Predicted { plan: Arc::clone(plan), turns, policy }
        };
        let last_goes_on = predictions.iter().map(|prediction| predicted(prediction, Policy::RunToBlock));
        let first_goes_on = predictions
            .iter()
            .map(|prediction| predicted(prediction, plan::first_goes_on(history, &prediction.target)));
        self.predicted.extend(last_goes_on.chain(first_goes_on));
        !predictions.is_empty()
    }
}

impl Strategy for Forecast {
    fn name(&self) -> &'static str {
        "predict"
    }

    fn ask(&mut self) -> Next {
        let is_wanted = |predicted: &Predicted| Turns::total(&predicted.turns) <= self.max_turns;
        let wanted = self.predicted.iter().position(is_wanted).unwrap_or(0);
        if let Some(predicted) = self.predicted.remove(wanted) {
            return Next::Run(self.show(predicted));
        }
        if self.asked.iter().any(|asked| matches!(asked, Asked::Recording(_))) {
            Next::Wait
        } else if self.fruitless < FRUITLESS {
            Next::Run(self.record())
        } else {
            Next::Exhausted
        }
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let asked = self.asked.answer(token);
        if let (Some(Asked::Recording(plan)), Some(recording)) = (asked, &feedback.recording) {
            let trace = &recording.trace;
            let fruitful = trace.events.len() <= MAX_EVENTS && self.predict(trace, &plan);
            self.fruitless = if fruitful { 0 } else { self.fruitless + 1 };
        }
        self.observe(feedback);
    }

    fn prefer_short(&mut self, max_turns: u64) {
        self.max_turns = max_turns;
    }

    fn observe(&mut self, feedback: &Feedback) {
        if self.knowledge.update(feedback) {
            self.fruitless = 0;
        }
    }
}
