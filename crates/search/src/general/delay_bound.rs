//! Every schedule that a round-robin scheduler comes to when it passes over at most so many threads in all.

use threadbare_trace::ThreadIndex;

use super::Tree;
use crate::{Decision, Settings, StrategyEntry};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "delay-bound",
    summary: "every schedule with few delays",
    make: |settings| Box::new(delay_bound(settings)),
};

fn delay_bound(settings: Settings) -> Tree {
    let bound = settings.bound;
    Tree::new("delay-bound", settings, bound, delays)
}

/// How many that could go are passed over, from the one who would go to `alternative`.
fn delays(decision: &Decision, _: Option<ThreadIndex>, alternative: ThreadIndex) -> u32 {
    let place = |thread| decision.alternatives.iter().position(|&other| other == thread).unwrap_or(0);
    let (from, to, all) = (place(decision.picked), place(alternative), decision.alternatives.len());
    ((to + all - from) % all) as u32
}
