//! Random priorities, with few random points at which the running thread becomes the lowest.

use threadbare_trace::{Policy, Random};

use super::Sampler;
use crate::{Knowledge, Settings, StrategyEntry};

/// Change points: bugs of depth 3.
const CHANGES: u64 = 2;

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "pct",
    summary: "random priorities, few changes",
    make: |settings| Box::new(pct(settings)),
};

fn pct(settings: Settings) -> Sampler {
    Sampler::new("pct", settings, draw)
}

fn draw(knowledge: &Knowledge, random: &mut Random) -> Policy {
    let seed = random.next();
    let mut changes: Vec<u64> = (0..CHANGES).map(|_| random.below(knowledge.longest.max(1))).collect();
    changes.sort_unstable();
    Policy::Priorities { seed, changes }
}
