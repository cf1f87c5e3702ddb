//! Explores the classes of equivalent interleavings of a program.
//!
//! | module | step |
//! |---|---|
//! | `step` | the steps of a run, and what they touch |
//! | `execution` | which steps happen before which, and the races of a run |
//! | `blocking` | whether a step that may have to wait could be taken earlier |
//! | `content` | what memory holds after some of the steps |
//! | `rounds` | loops that wait for a change |
//! | `tree` | what is still to be explored |
//! | `class` | a number for the class of a run |
//! | `brute_force` | every class by trying every thread everywhere, to compare with |
//! | `reachability` | every class exactly once |
//!
//! Race-equivalent exploration (Setiadi, Ohsuga and Maekawa, "Efficient Execution Path Exploration for Detecting Races in
//! Concurrent Programs", 2013) takes all interleavings together that lead no thread down another path:
//!
//! | module | step | section |
//! |---|---|---|
//! | [`operation`] | a trace in the terms of the paper | III |
//! | [`variant_graph`] | every other read-write sequence of a small run | Algorithm 1, IV.C |
//! | [`access_manner`] | how a thread uses locks around its accesses | IV.A |
//! | [`use_define`], [`branch_affect`] | the operations that affect a branch | Algorithm 2 |
//! | [`affect_groups`] | executions that give a branch the same outcome | Algorithm 3 |
//! | [`branch_condition_table`], [`race_equivalent`] | which executions are run | Algorithm 4 |
//! | `lockset` | is the locking of a run consistent? | IV.A |
//! | `deciding` | which reads of a run decide where its threads go | IV.B, on compiled code |
//! | `behaviour` | what threads observed, and with which history | IV.B, on long traces |
//! | `ordering` | other orders of notifications, tries and the like | IV.C |
//! | `explorer` | the loop: make a run, look at its trace, plan variants | Algorithm 4 |
//! | `prefix` | which schedules lead to the same state | – |
//! | `race_exploration` | the strategy `race-equivalent` | IV.B, Algorithm 4 |
//! | `pairs` | the strategy `tpair`, for comparison | V |

pub mod access_manner;
pub mod affect_groups;
mod behaviour;
mod blocking;
pub mod branch_affect;
pub mod branch_condition_table;
pub mod brute_force;
mod class;
mod content;
mod deciding;
#[cfg(test)]
mod examples;
mod execution;
mod explorer;
mod lockset;
pub mod operation;
mod ordering;
mod pairs;
mod prefix;
pub mod race_equivalent;
mod race_exploration;
mod reachability;
mod rounds;
#[cfg(test)]
mod simulated;
mod step;
#[cfg(test)]
mod tests;
mod tree;
pub mod use_define;
pub mod variant_graph;

use threadbare_search::StrategyEntry;

pub use class::classes;
pub use lockset::{Race, races};
pub use pairs::ThreadPairs;
pub use race_exploration::RaceEquivalent;
pub use reachability::{NAME as REACHABILITY, Reachability};

/// The methods as strategies that users can name.
pub const STRATEGIES: &[StrategyEntry] = &[
    StrategyEntry {
        name: reachability::NAME,
        summary: "every class of equivalent interleavings, each exactly once",
        make: |settings| Box::new(Reachability::new(settings)),
    },
    StrategyEntry {
        name: race_exploration::NAME,
        summary: "interleavings that can lead a thread down another path",
        make: |settings| Box::new(RaceEquivalent::new(settings)),
    },
    StrategyEntry {
        name: pairs::NAME,
        summary: "every order of the conflicting accesses of every two threads",
        make: |settings| Box::new(ThreadPairs::new(settings)),
    },
];
