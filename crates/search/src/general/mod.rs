//! The strategies that need no method of their own.
//!
//! `rank` and the hunt are measured by them, and they are there for those who know them. A strategy that draws a policy
//! for each run is a [`Sampler`]; one that goes through the tree of decisions is a [`Tree`].

mod delay_bound;
mod dfs;
mod pct;
mod pos;
mod preemption_bound;
mod random;
mod sampler;
mod surw;
mod tree;

pub use delay_bound::delay_bound;
pub use dfs::dfs;
pub use pct::pct;
pub use pos::pos;
pub use preemption_bound::preemption_bound;
pub use random::random;
pub use sampler::Sampler;
pub use surw::{Surw, surw};
pub use tree::{Cost, Tree};
