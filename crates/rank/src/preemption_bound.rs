//! Every schedule with at most so many preemptions, those with fewer first (CHESS).

use crate::tree::Tree;
use crate::{Decision, Feedback, Next, Settings, Strategy};

#[derive(Debug)]
pub struct PreemptionBound(Tree);

impl PreemptionBound {
    pub fn new(settings: Settings) -> PreemptionBound {
        let bound = settings.bound;
        PreemptionBound(Tree::new(settings, bound, preemptions))
    }
}

/// A switch away from a thread that could have gone on, and that the policy would have let go on: it did not ask to
/// give way.
fn preemptions(decision: &Decision, before: Option<u32>, alternative: u32) -> u32 {
    u32::from(before == Some(decision.picked) && alternative != decision.picked)
}

impl Strategy for PreemptionBound {
    fn name(&self) -> &'static str {
        "preemption-bound"
    }

    fn next(&mut self) -> Next {
        self.0.next()
    }

    fn take(&mut self, feedback: &Feedback) {
        self.0.take(feedback);
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}
