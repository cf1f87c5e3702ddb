//! Partial-order sampling: operations have random scores, and those that conflict draw again.

use threadbare_trace::Policy;

use super::Sampler;
use crate::{Settings, StrategyEntry};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "pos",
    summary: "partial-order sampling",
    make: |settings| Box::new(pos(settings)),
};

fn pos(settings: Settings) -> Sampler {
    Sampler::new("pos", settings, |_, random| Policy::PartialOrder { seed: random.next() })
}
