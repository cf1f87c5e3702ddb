//! Random priorities that never change: of the threads that can run, the one with the highest goes.

use threadbare_trace::Policy;

use super::Sampler;
use crate::{Settings, StrategyEntry};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "priorities",
    summary: "random priorities, no changes",
    make: |settings| Box::new(priorities(settings)),
};

fn priorities(settings: Settings) -> Sampler {
    Sampler::new("priorities", settings, |_, random| Policy::Priorities {
        seed: random.next(),
        changes: Vec::new(),
    })
}
