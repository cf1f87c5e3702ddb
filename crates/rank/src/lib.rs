//! Orders schedules when nothing is known about the program.
//!
//! [`Rank`] is the method of RankChecker: schedules are ranked by how many preemptions, variables, threads and loop repeats
//! they take, and tried in that order. The files follow the paper's steps:
//!
//! | module | step |
//! |---|---|
//! | `ranking` | the order of tuples (c, v, t, l) (section 3.1) |
//! | `covering`, `orders` | priority orders for `t` threads (`threadPrios`) |
//! | `rank` | iterative context bounding for t-thread bugs (Algorithm 1) |
//! | `contested` | beyond the paper: which preemptions are worth trying first |

mod contested;
mod covering;
mod orders;
mod rank;
mod ranking;

use threadbare_search::StrategyEntry;

pub use covering::{Sequence, covering_array};
pub use rank::Rank;

/// The method as a strategy that users can name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "rank",
    summary: "by preemptions, variables, threads and loop repeats",
    make: |settings| Box::new(Rank::new(settings)),
};
