//! Predictions, each followed to a verdict.
//!
//! A few runs learn which memory is shared. Then a run is recorded, and anomalies are predicted from its trace. The
//! schedule of each is run once and has to be followed event by event. What was then seen to happen is confirmed; the
//! rest was false. A run that showed something went where no run was before, so predictions are made from its trace
//! next.

mod confirmation;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use threadbare_search::{
    Conclusion, Evidence, Feedback, Knowledge, Next, Outstanding, Recording, Schedule, Strategy, Token,
};
use threadbare_trace::{Plan, Policy, Step};

use crate::{History, Pattern, Predictor, anomaly};
use confirmation::{Confirmation, Verdict};

/// What to predict, and from which runs.
#[derive(Clone, Debug)]
pub struct ConfirmConfig {
    pub patterns: Vec<Pattern>,
    /// Runs to predict from.
    pub recordings: u64,
    /// How the first of them is scheduled.
    pub policy: Policy,
}

/// The strategy of the command `predict`.
pub struct Confirming {
    config: ConfirmConfig,
    knowledge: Knowledge,
    learning_runs: u64,
    recordings: u64,
    /// Schedules that showed something, to be predicted from.
    shown: VecDeque<Vec<Step>>,
    /// Anomalies that were predicted, by identity, and whether they were confirmed.
    known: BTreeMap<String, bool>,
    /// Predictions of the last recording that wait for a run.
    open: VecDeque<Confirmation>,
    asked: Outstanding<Asked>,
    conclusions: Vec<Conclusion>,
}

/// A run that was asked for.
enum Asked {
    Learning,
    Recording(Box<Plan>),
    Confirmation(Box<Confirmation>),
}

/// A trace that was predicted from.
pub(crate) struct Analysis {
    pub predictor: Predictor,
    /// The plan of the recorded run: what is tracked decides what a turn is.
    pub plan: Plan,
}

impl Confirming {
    /// `plan` says what all runs have in common.
    pub fn new(plan: Plan, config: ConfirmConfig) -> Confirming {
        Confirming {
            config,
            knowledge: Knowledge::at_full_length(plan),
            learning_runs: 0,
            recordings: 0,
            shown: VecDeque::new(),
            known: BTreeMap::new(),
            open: VecDeque::new(),
            asked: Outstanding::default(),
            conclusions: Vec::new(),
        }
    }

    fn schedule(&mut self, plan: Plan, traced: bool, asked: Asked) -> Next {
        let token = self.asked.issue(asked);
        Next::Run(Schedule { traced, ..Schedule::new(token, self.name(), plan) })
    }

    /// The next run to predict from: as the user says, then what showed something, then random.
    fn record(&mut self) -> Next {
        // Confirmations go by the plan of their own recording: what is tracked decides what a turn is.
        let plan = self.knowledge.plan.clone();
        let policy = match self.recordings {
            0 => self.config.policy.clone(),
            number => Policy::Random { seed: plan.seed.wrapping_add(number) },
        };
        self.recordings += 1;
        let plan = match self.shown.pop_front() {
            Some(steps) => Plan { steps, ..plan },
            None => Plan { policy, ..plan },
        };
        self.schedule(plan.clone(), true, Asked::Recording(Box::new(plan)))
    }

    /// The next prediction that is not confirmed yet.
    fn next_open(&mut self) -> Option<Confirmation> {
        let known = &self.known;
        let is_open = |open: &Confirmation| known.get(open.identity()) != Some(&true);
        let at = self.open.iter().position(is_open)?;
        self.open.drain(..at);
        self.open.pop_front()
    }

    /// Predicts from a recorded run.
    fn predict(&mut self, recording: &Recording, plan: Plan) {
        let history = match History::new(Arc::clone(&recording.trace)) {
            Ok(history) => history,
            Err(error) => {
                return self.conclusions.push(Conclusion::NotAnalysed { reason: error.to_string() });
            }
        };
        let predictor = Predictor::new(history);
        let predictions = predictor.predict(&self.config.patterns);
        let events = recording.trace.events.len() as u64;
        let infeasible = predictions.infeasible.len() as u64;
        self.conclusions.push(Conclusion::Analysed { events, infeasible });
        let analysis = Arc::new(Analysis { predictor, plan });
        for prediction in predictions.list {
            let confirmation = Confirmation::new(Arc::clone(&analysis), prediction);
            if !self.known.contains_key(confirmation.identity()) {
                self.known.insert(confirmation.identity().to_owned(), false);
                self.conclusions.push(Conclusion::Predicted { kind: confirmation.kind() });
            }
            // What was false from one run may be true from another, in which threads go other ways.
            self.open.push_back(confirmation);
        }
    }

    fn record_verdict(&mut self, confirmation: &Confirmation, verdict: Verdict) {
        let Verdict::Happened { recording, harm } = verdict else { return };
        let was_known = self.known.insert(confirmation.identity().to_owned(), true);
        if was_known == Some(true) {
            return;
        }
        let Recording { trace, steps } = *recording;
        self.shown.push_back(steps.clone());
        let plan = Plan { steps, strict: true, ..confirmation.analysis().plan.clone() };
        let anomaly = anomaly(confirmation.analysis().predictor.history(), confirmation.prediction());
        let evidence = Evidence { plan, trace, harm };
        let (anomaly, evidence) = (Box::new(anomaly), Box::new(evidence));
        self.conclusions.push(Conclusion::Confirmed { anomaly, evidence });
    }
}

impl Strategy for Confirming {
    fn name(&self) -> &'static str {
        "predict"
    }

    fn ask(&mut self) -> Next {
        let is_waiting = self.asked.iter().next().is_some();
        if let Some(plan) = self.knowledge.learning_plan(self.learning_runs) {
            if is_waiting {
                return Next::Wait;
            }
            self.learning_runs += 1;
            return self.schedule(plan, false, Asked::Learning);
        }
        if let Some(open) = self.next_open() {
            let plan = open.plan();
            return self.schedule(plan, true, Asked::Confirmation(Box::new(open)));
        }
        if is_waiting {
            Next::Wait
        } else if self.recordings < self.config.recordings {
            self.record()
        } else {
            Next::Exhausted
        }
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some(asked) = self.asked.answer(token) else { return };
        self.observe(feedback);
        match (asked, &feedback.recording) {
            (Asked::Recording(plan), Some(recording)) => self.predict(recording, *plan),
            (Asked::Confirmation(mut confirmation), recording) => {
                match confirmation.advance(&feedback.ended, recording.as_deref()) {
                    // Its next run comes before other predictions have their first.
                    None => self.open.push_front(*confirmation),
                    Some(verdict) => self.record_verdict(&confirmation, verdict),
                }
            }
            (Asked::Learning, _) | (Asked::Recording(_), None) => {}
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.knowledge.update(feedback);
    }

    fn conclusions(&mut self) -> Vec<Conclusion> {
        std::mem::take(&mut self.conclusions)
    }
}
