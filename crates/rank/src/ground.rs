//! What all plans of a search have in common, and what becomes known as it goes.

use std::collections::HashSet;

use threadbare_executor::Ended;
use threadbare_trace::{Plan, ThreadId};

use crate::Feedback;

/// What a run may have of events at first; more when that turns out to be too little. A livelock shows within few.
const FIRST_BOUND: u64 = 20_000;
const BOUND_GROWTH: u64 = 10;
/// Runs that learn what is shared, at the start of a search that samples.
const FIRST_LEARNING: u64 = 6;
/// One run in so many learns after that.
const LEARNING: u64 = 7;

#[derive(Clone, Debug)]
pub struct Ground {
    /// What a plan begins as.
    pub plan: Plan,
    /// The most events that a run has had.
    pub longest: u64,
    /// All threads that there have been, in the order in which they turned up.
    pub threads: Vec<ThreadId>,
    /// The same, to be looked up.
    known: HashSet<ThreadId>,
    /// The most events that the user allows.
    most: u64,
}

impl Ground {
    pub fn new(plan: Plan) -> Ground {
        let most = plan.max_events;
        let plan = Plan { max_events: most.min(FIRST_BOUND), ..plan };
        Ground { plan, longest: 0, threads: Vec::new(), known: HashSet::new(), most }
    }

    /// What came of a run. Says whether shared memory turned up that was not known: other plans than before then
    /// make other runs.
    pub fn take(&mut self, feedback: &Feedback) -> bool {
        self.longest = self.longest.max(feedback.events);
        for thread in &feedback.threads {
            if self.known.insert(thread.clone()) {
                self.threads.push(thread.clone());
            }
        }
        if feedback.ended == Ended::EventBound && feedback.bound >= self.plan.max_events {
            self.plan.max_events = self.most.min(self.plan.max_events * BOUND_GROWTH);
        }
        self.plan.tracked.extend(feedback.learnt.iter().cloned())
    }

    /// The beginning of the `number`-th plan (from 0) of a search that samples: it learns often enough.
    pub fn sample(&self, number: u64) -> Plan {
        let learn = number < FIRST_LEARNING || number.is_multiple_of(LEARNING);
        Plan { learn, ..self.plan.clone() }
    }
}
