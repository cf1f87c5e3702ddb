//! General strategies that belong to no single method.
//!
//! `rank` and the hunt are measured by them, and they are there for those who know them. A strategy that draws a policy
//! for each run is a [`Sampler`]; one that goes through the tree of decisions is a [`Tree`]. A new strategy is one file
//! with its `STRATEGY`, and its name in [`STRATEGIES`].

mod delay_bound;
mod dfs;
mod pct;
mod pos;
mod preemption_bound;
mod random;
mod sampler;
mod surw;
mod tree;

pub use sampler::Sampler;
pub use tree::{Cost, Tree};

use crate::StrategyEntry;

/// The strategies of this crate, as `--help` lists them.
pub const STRATEGIES: &[StrategyEntry] = &[
    dfs::STRATEGY,
    random::STRATEGY,
    pct::STRATEGY,
    pos::STRATEGY,
    preemption_bound::STRATEGY,
    delay_bound::STRATEGY,
    surw::STRATEGY,
];
