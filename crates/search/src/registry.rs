//! Strategies by name.
//!
//! Each crate with strategies has a list of [`StrategyEntry`]; this one lists the general ones. A new strategy is one
//! file and one line in such a list.

use crate::general::{delay_bound, dfs, pct, pos, preemption_bound, random, surw};
use crate::{Settings, Strategy};

/// A strategy that users can name.
#[derive(Clone, Copy)]
pub struct StrategyEntry {
    pub name: &'static str,
    /// What it does, as `--help` says it.
    pub summary: &'static str,
    pub make: fn(Settings) -> Box<dyn Strategy>,
}

/// The strategies of this crate.
pub const GENERAL: &[StrategyEntry] = &[
    StrategyEntry { name: "dfs", summary: "every schedule, depth first", make: |s| Box::new(dfs(s)) },
    StrategyEntry { name: "random", summary: "any thread, at every step", make: |s| Box::new(random(s)) },
    StrategyEntry { name: "pct", summary: "random priorities, few changes", make: |s| Box::new(pct(s)) },
    StrategyEntry { name: "pos", summary: "partial-order sampling", make: |s| Box::new(pos(s)) },
    StrategyEntry {
        name: "preemption-bound",
        summary: "every schedule with few preemptions",
        make: |s| Box::new(preemption_bound(s)),
    },
    StrategyEntry {
        name: "delay-bound",
        summary: "every schedule with few delays",
        make: |s| Box::new(delay_bound(s)),
    },
    StrategyEntry { name: "surw", summary: "selectively uniform random walk", make: |s| Box::new(surw(s)) },
];
