//! Every schedule that a round-robin scheduler comes to when it passes over at most so many threads in all.

use crate::tree::Tree;
use crate::{Decision, Feedback, Next, Settings, Strategy};

#[derive(Debug)]
pub struct DelayBound(Tree);

impl DelayBound {
    pub fn new(settings: Settings) -> DelayBound {
        let bound = settings.bound;
        DelayBound(Tree::new(settings, bound, delays))
    }
}

/// How many that could go are passed over, from the one who would go to `alternative`.
fn delays(decision: &Decision, _: Option<u32>, alternative: u32) -> u32 {
    let place = |thread| decision.alternatives.iter().position(|&other| other == thread).unwrap_or(0);
    let (from, to, all) = (place(decision.picked), place(alternative), decision.alternatives.len());
    ((to + all - from) % all) as u32
}

impl Strategy for DelayBound {
    fn name(&self) -> &'static str {
        "delay-bound"
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
