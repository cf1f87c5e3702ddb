//! Random priorities, with few random points at which the running thread becomes the lowest.

use threadbare_trace::{Plan, Policy, Random};

use crate::ground::Ground;
use crate::{Feedback, Next, Schedule, Settings, Strategy};

/// Change points: bugs of depth 3.
const CHANGES: u64 = 2;

#[derive(Debug)]
pub struct Pct {
    ground: Ground,
    random: Random,
    number: u64,
}

impl Pct {
    pub fn new(settings: Settings) -> Pct {
        let random = Random(settings.plan.seed);
        Pct { ground: Ground::new(settings.plan), random, number: 0 }
    }
}

impl Strategy for Pct {
    fn name(&self) -> &'static str {
        "pct"
    }

    fn next(&mut self) -> Next {
        let plan = self.ground.sample(self.number);
        self.number += 1;
        let seed = self.random.next();
        let mut changes: Vec<u64> =
            (0..CHANGES).map(|_| self.random.below(self.ground.longest.max(1))).collect();
        changes.sort_unstable();
        Next::Run(Schedule::new(self.name(), Plan { policy: Policy::Priorities { seed, changes }, ..plan }))
    }

    fn take(&mut self, feedback: &Feedback) {
        self.ground.take(feedback);
    }

    fn overhear(&mut self, feedback: &Feedback) {
        self.ground.take(feedback);
    }

    fn draws(&self) -> bool {
        true
    }
}
