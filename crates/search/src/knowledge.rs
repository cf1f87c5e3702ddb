//! What becomes known of the program as a search goes.
//!
//! This is also the one place that says which runs of a search look for shared memory. A run that looks is slower, so
//! not every one does.

use std::collections::HashSet;

use threadbare_executor::{LEARNING_RUNS, learning_plan};
use threadbare_trace::{End, Plan, ThreadId};

use crate::Feedback;

/// The most events of a run at first. The bound grows when a run reaches it. A livelock shows within few events.
const FIRST_BOUND: u64 = 20_000;
const BOUND_GROWTH: u64 = 10;
/// Runs that learn what is shared, at the start of a search that samples.
const FIRST_LEARNING: u64 = 6;
/// One run in so many learns after that.
const LEARNING: u64 = 7;
/// One run in so many learns in a search that goes on from earlier runs. A run that learns cannot begin with a snapshot.
const LEARNING_WITH_SNAPSHOTS: u64 = 8;

/// What a strategy knows of the program, and so what every plan of its search begins with.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The beginning of every plan.
    pub plan: Plan,
    /// The most events that a run has had.
    pub longest: u64,
    /// All threads that runs have had, in the order in which they were first seen.
    pub threads: Vec<ThreadId>,
    /// The same threads as a set.
    known: HashSet<ThreadId>,
    /// The most events that the user allows.
    max_events: u64,
}

impl Knowledge {
    pub fn new(plan: Plan) -> Knowledge {
        let max_events = plan.max_events;
        let plan = Plan { max_events: max_events.min(FIRST_BOUND), ..plan };
        Knowledge { plan, longest: 0, threads: Vec::new(), known: HashSet::new(), max_events }
    }

    /// The same, but every run may have all the events that the user allows, from the first one on.
    pub fn at_full_length(plan: Plan) -> Knowledge {
        let max_events = plan.max_events;
        let mut knowledge = Knowledge::new(plan);
        knowledge.plan.max_events = max_events;
        knowledge
    }

    /// Takes in what came of a run, and returns whether the run found new shared memory. If it did, the same turns make
    /// another run from now on.
    pub fn update(&mut self, feedback: &Feedback) -> bool {
        self.longest = self.longest.max(feedback.events);
        for thread in &feedback.threads {
            if self.known.insert(thread.clone()) {
                self.threads.push(thread.clone());
            }
        }
        if feedback.ended == End::EventBound && feedback.bound >= self.plan.max_events {
            self.plan.max_events = self.max_events.min(self.plan.max_events * BOUND_GROWTH);
        }
        self.plan.tracked.extend(feedback.learnt.iter().cloned())
    }

    /// The plan of the `number`-th run (from 0) of those that only learn, before a search begins; `None` after the last.
    pub fn learning_plan(&self, number: u64) -> Option<Plan> {
        (number < LEARNING_RUNS).then(|| learning_plan(&self.plan, number))
    }

    /// Whether the `number`-th run (from 0) learns in a search that goes on from earlier runs by their snapshots. A run
    /// from the beginning of the program needs no snapshot and always learns.
    pub fn learns_from_snapshot(number: u64) -> bool {
        number.is_multiple_of(LEARNING_WITH_SNAPSHOTS)
    }

    /// The beginning of the `number`-th plan (from 0) of a search that samples: it learns often enough.
    pub fn sample(&self, number: u64) -> Plan {
        let learn = number < FIRST_LEARNING || number.is_multiple_of(LEARNING);
        Plan { learn, ..self.plan.clone() }
    }
}
