//! A strategy that draws each schedule independently.

use threadbare_trace::{Plan, Policy, Random};

use crate::{Feedback, Knowledge, Next, Schedule, Settings, Strategy, Token};

/// Draws the policy of one run.
pub type Draw = fn(&Knowledge, &mut Random) -> Policy;

/// A strategy that draws a policy for each run and learns nothing else from it.
#[derive(Debug)]
pub struct Sampler {
    name: &'static str,
    knowledge: Knowledge,
    random: Random,
    asked: u64,
    draw: Draw,
}

impl Sampler {
    /// The strategy called `name`, which draws each policy by `draw`.
    pub fn new(name: &'static str, settings: Settings, draw: Draw) -> Sampler {
        let random = Random(settings.plan.seed);
        Sampler { name, knowledge: Knowledge::new(settings.plan), random, asked: 0, draw }
    }
}

impl Strategy for Sampler {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ask(&mut self) -> Next {
        let token = Token(self.asked);
        let plan = self.knowledge.sample(self.asked);
        self.asked += 1;
        let policy = (self.draw)(&self.knowledge, &mut self.random);
        Next::Run(Schedule::new(token, self.name, Plan { policy, ..plan }))
    }

    fn tell(&mut self, _: Token, feedback: &Feedback) {
        self.observe(feedback);
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.knowledge.update(feedback);
    }

    fn is_random(&self) -> bool {
        true
    }
}
