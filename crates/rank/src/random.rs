//! Any thread that can run, at every step.

use threadbare_trace::{Plan, Policy, Random};

use crate::ground::Ground;
use crate::{Feedback, Next, Schedule, Settings, Strategy};

#[derive(Debug)]
pub struct RandomWalk {
    ground: Ground,
    random: Random,
    number: u64,
}

impl RandomWalk {
    pub fn new(settings: Settings) -> RandomWalk {
        let random = Random(settings.plan.seed);
        RandomWalk { ground: Ground::new(settings.plan), random, number: 0 }
    }
}

impl Strategy for RandomWalk {
    fn name(&self) -> &'static str {
        "random"
    }

    fn next(&mut self) -> Next {
        let plan = self.ground.sample(self.number);
        self.number += 1;
        let seed = self.random.next();
        Next::Run(Schedule::new(self.name(), Plan { policy: Policy::Random { seed }, ..plan }))
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
