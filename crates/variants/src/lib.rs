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

mod blocking;
pub mod brute_force;
mod class;
mod content;
mod execution;
mod reachability;
mod rounds;
#[cfg(test)]
mod simulated;
mod step;
#[cfg(test)]
mod tests;
mod tree;

use threadbare_search::StrategyEntry;

pub use class::classes;
pub use reachability::Reachability;

/// The methods as strategies that users can name.
pub const STRATEGIES: &[StrategyEntry] = &[StrategyEntry {
    name: reachability::NAME,
    summary: "every class of equivalent interleavings, each exactly once",
    make: |settings| Box::new(Reachability::new(settings)),
}];
