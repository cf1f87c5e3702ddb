//! Every schedule, depth first, except from states that were seen before.

use threadbare_trace::ThreadIndex;

use super::Tree;
use crate::{Decision, Settings, StrategyEntry};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "dfs",
    summary: "every schedule, depth first",
    make: |settings| Box::new(dfs(settings)),
};

fn dfs(settings: Settings) -> Tree {
    Tree::new("dfs", settings, 0, nothing).without_repeats()
}

/// Every deviation costs 0.
fn nothing(_: &Decision, _: Option<ThreadIndex>, _: ThreadIndex) -> u32 {
    0
}
