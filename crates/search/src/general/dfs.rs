//! Every schedule, depth first, except from states that were seen before.

use threadbare_trace::ThreadIndex;

use super::Tree;
use crate::{Decision, Settings};

pub fn dfs(settings: Settings) -> Tree {
    Tree::new("dfs", settings, 0, nothing).without_repeats()
}

/// All schedules are alike.
fn nothing(_: &Decision, _: Option<ThreadIndex>, _: ThreadIndex) -> u32 {
    0
}
