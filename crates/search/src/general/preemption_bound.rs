//! Every schedule with at most so many preemptions, those with fewer first (CHESS).

use threadbare_trace::ThreadIndex;

use super::Tree;
use crate::{Decision, Settings, StrategyEntry};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "preemption-bound",
    summary: "every schedule with few preemptions",
    make: |settings| Box::new(preemption_bound(settings)),
};

fn preemption_bound(settings: Settings) -> Tree {
    let bound = settings.bound;
    Tree::new("preemption-bound", settings, bound, preemptions)
}

/// A switch away from a thread that could have gone on, and that the policy would have let go on: it did not ask to
/// give way.
fn preemptions(decision: &Decision, before: Option<ThreadIndex>, alternative: ThreadIndex) -> u32 {
    u32::from(before == Some(decision.picked) && alternative != decision.picked)
}
