//! Every schedule, depth first, except from states that were seen before.

use crate::tree::Tree;
use crate::{Decision, Feedback, Next, Settings, Strategy};

#[derive(Debug)]
pub struct Dfs(Tree);

impl Dfs {
    pub fn new(settings: Settings) -> Dfs {
        Dfs(Tree::new(settings, 0, nothing).without_repeats())
    }
}

/// All schedules are alike.
fn nothing(_: &Decision, _: Option<u32>, _: u32) -> u32 {
    0
}

impl Strategy for Dfs {
    fn name(&self) -> &'static str {
        "dfs"
    }

    fn next(&mut self) -> Next {
        self.0.next()
    }

    fn take(&mut self, feedback: &Feedback) {
        self.0.take(feedback);
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}
