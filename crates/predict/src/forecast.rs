//! Predictions as schedules of a hunt.
//!
//! A run is recorded. Then the schedule of every anomaly that its trace predicts is run. When they all were, another run
//! is recorded, by another schedule, until that brings nothing new. A hunt looks for failures, so nobody asks whether
//! the anomaly came about.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use threadbare_search::reorder::plan;
use threadbare_search::{
    Conclusion, Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token,
};
use threadbare_trace::{Demand, EventIndex, Plan, Policy, Random, Trace, Turns, Waypoint, WhichThread};

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
    /// Predictions whose schedules were not all run yet.
    open: BTreeMap<u64, Open>,
    /// Predictions so far.
    predictions: u64,
    conclusions: Vec<Conclusion>,
    recordings: u64,
    /// Recordings in a row that brought nothing new.
    fruitless: u64,
}

/// A prediction, as far as its schedules were run.
struct Open {
    /// What happens if the anomaly comes about.
    waypoints: Vec<Waypoint>,
    /// Schedules that were not answered yet.
    left: u32,
    was_shown: bool,
}

/// A schedule that shows an anomaly.
struct Predicted {
    /// The number of the prediction.
    number: u64,
    /// The recorded run's: what is tracked decides what a turn is.
    plan: Arc<Plan>,
    turns: Vec<Turns>,
    /// What is done once the anomaly has come about.
    policy: Policy,
}

enum Asked {
    Recording(Arc<Plan>),
    /// A schedule of the prediction with this number.
    Prediction(u64),
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
            open: BTreeMap::new(),
            predictions: 0,
            conclusions: Vec::new(),
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

    fn show(&mut self, Predicted { number, plan, turns, policy }: Predicted) -> Schedule {
        let token = self.asked.issue(Asked::Prediction(number));
        // What each thread did is needed to see whether it was the anomaly.
        Schedule::new(token, self.name(), Plan { turns, policy, decisions: true, ..(*plan).clone() })
    }

    /// A schedule of a prediction was run. After the last one it is known whether any has shown it.
    fn note_shown(&mut self, number: u64, feedback: &Feedback) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.was_shown |= feedback.ended.failure().is_some() || has_passed(feedback, &open.waypoints);
        open.left -= 1;
        if open.left == 0
            && let Some(Open { waypoints, was_shown: false, .. }) = self.open.remove(&number)
        {
            self.conclusions.push(Conclusion::NotShown { waypoints });
        }
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
        let numbered = || (self.predictions..).zip(&predictions);
        let predicted = |number: u64, prediction: &Prediction, policy| {
            let turns = plan::turns(history, &prediction.schedule);
            Predicted { number, plan: Arc::clone(plan), turns, policy }
        };
        let last_goes_on =
            numbered().map(|(number, prediction)| predicted(number, prediction, Policy::RunToBlock));
        let first_goes_on = numbered().map(|(number, prediction)| {
            predicted(number, prediction, plan::first_goes_on(history, &prediction.target))
        });
        self.predicted.extend(last_goes_on.chain(first_goes_on));
        self.open.extend(numbered().map(|(number, prediction)| {
            (number, Open { waypoints: waypoints(history, prediction), left: 2, was_shown: false })
        }));
        self.predictions += predictions.len() as u64;
        !predictions.is_empty()
    }
}

/// What happens in a run that shows the anomaly: threads pass places one after another, or stand there together.
fn waypoints(history: &History, prediction: &Prediction) -> Vec<Waypoint> {
    let trace = history.trace();
    let is_together = matches!(prediction.kind, AnomalyKind::DataRace | AnomalyKind::Deadlock);
    let waypoint = |&event: &EventIndex| {
        let event = history.event(event);
        let points = vec![trace.location(event.location).address];
        let thread = WhichThread::Id(trace.thread(event.thread).clone());
        Waypoint::new(points, thread, if is_together { Demand::Arrive(0) } else { Demand::Pass })
    };
    prediction.events.iter().map(waypoint).collect()
}

/// A run has done what is at these places, in their order.
fn has_passed(feedback: &Feedback, waypoints: &[Waypoint]) -> bool {
    let mut left = waypoints.iter().peekable();
    for decision in &feedback.decisions {
        let (Some(waypoint), Some(operation)) = (left.peek(), decision.operation) else { continue };
        let thread = feedback.threads.get(decision.picked.index());
        let is_meant = thread.is_some_and(|id| waypoint.thread == WhichThread::Id(id.clone()));
        if is_meant && waypoint.points.contains(&operation.point.pc) {
            left.next();
        }
    }
    left.peek().is_none()
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
        match (self.asked.answer(token), &feedback.recording) {
            (Some(Asked::Recording(plan)), Some(recording)) => {
                let trace = &recording.trace;
                let fruitful = trace.events.len() <= MAX_EVENTS && self.predict(trace, &plan);
                self.fruitless = if fruitful { 0 } else { self.fruitless + 1 };
            }
            (Some(Asked::Prediction(number)), _) => self.note_shown(number, feedback),
            _ => {}
        }
        self.observe(feedback);
    }

    fn prefer_short(&mut self, max_turns: u64) {
        self.max_turns = max_turns;
    }

    fn conclusions(&mut self) -> Vec<Conclusion> {
        std::mem::take(&mut self.conclusions)
    }

    fn observe(&mut self, feedback: &Feedback) {
        if self.knowledge.update(feedback) {
            self.fruitless = 0;
        }
    }
}
