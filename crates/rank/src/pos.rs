//! Partial-order sampling: operations have random scores, and those that conflict draw again.

use threadbare_trace::{Plan, Policy, Random};

use crate::ground::Ground;
use crate::{Feedback, Next, Schedule, Settings, Strategy};

#[derive(Debug)]
pub struct Pos {
    ground: Ground,
    random: Random,
    number: u64,
}

impl Pos {
    pub fn new(settings: Settings) -> Pos {
        let random = Random(settings.plan.seed);
        Pos { ground: Ground::new(settings.plan), random, number: 0 }
    }
}

impl Strategy for Pos {
    fn name(&self) -> &'static str {
        "pos"
    }

    fn next(&mut self) -> Next {
        let plan = self.ground.sample(self.number);
        self.number += 1;
        let seed = self.random.next();
        Next::Run(Schedule::new(self.name(), Plan { policy: Policy::PartialOrder { seed }, ..plan }))
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
