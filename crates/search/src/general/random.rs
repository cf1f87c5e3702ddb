//! Any thread that can run, at every step.

use threadbare_trace::Policy;

use super::Sampler;
use crate::{Settings, StrategyEntry};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "random",
    summary: "any thread, at every step",
    make: |settings| Box::new(random(settings)),
};

fn random(settings: Settings) -> Sampler {
    Sampler::new("random", settings, |_, random| Policy::Random { seed: random.next() })
}
