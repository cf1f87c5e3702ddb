//! Guided test: takes a program through a sequence of locations, after Rungta and Mercer, "Guided test for detecting
//! concurrency errors".
//!
//! A warning of another tool names a few places in the source and an order. Whether a run can pass them in that order is
//! what guided test finds out.
//!
//! | module | holds | section of the paper |
//! |---|---|---|
//! | [`sequence`] | the locations and their order, and the readers that make them out of texts and reports | 3.1 |
//! | [`resolve`](mod@resolve) | where in the compiled program the locations are | 3.1 |
//! | [`guided_test`] | the search: greedy, and from backtrack states | 3.2, 3.3 |
//! | [`obstacle`](mod@obstacle) | the branch that kept a run from a location | 3.1 |
//! | [`remedy`](mod@remedy) | what may be done about it: stores and reads that are added to the sequence, or put off | 3.1 |
//! | [`follow_up`] | guided tests of what a prediction could not show | |
//! | [`behind`] | the locations that were passed before the first thread | |
//! | `backtrack` | the states that can be gone on from | 3.3 |
//! | `bindings` | the threads that variables of a sequence stand for | |
//!
//! The choice at each event is made inside of the program, by [`Guidance`](threadbare_trace::Guidance). The distances that
//! it goes by come from the crate `program`.

mod backtrack;
pub mod behind;
mod bindings;
pub mod follow_up;
pub mod guided_test;
pub mod obstacle;
pub mod remedy;
pub mod resolve;
pub mod sequence;

pub use follow_up::FollowUp;
pub use guided_test::{Backtracking, Figures, GuidedTest, MAX_BACKTRACK};
pub use obstacle::{DecidingRead, Diagnosis, Journey, Obstacle, diagnose};
pub use remedy::{PutOff, Remedy};
pub use resolve::{ResolveError, Resolved, lines_of, resolve, resolve_report};
pub use sequence::{Sequence, Verdict};
