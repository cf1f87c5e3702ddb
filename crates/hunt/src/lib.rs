//! Hunts: whole searches, from the first run to the last finding.
//!
//! A [`Session`] asks a strategy for schedules, has them run by workers side by side, and tells the strategy what came of
//! them. What fails is minimised, run once more, and written down as a clip: only then is it a [`Finding`]. `hunt`,
//! `rank`, `guide` and `predict` are sessions that differ in their [strategy](StrategyChoice). [`suite`] makes a session for each
//! test of a project.
//!
//! Nothing here prints. A session sends [`Event`]s, as they happen, to whoever started it.
//!
//! | module | holds |
//! |---|---|
//! | [`config`](HuntConfig), [`budget`](Budget) | what a session is to do, and for how long |
//! | `session` | the loop: ask, run, tell |
//! | `pool` | the workers |
//! | `pace`, `length` | how long runs may be, so that there are enough of them |
//! | `pipeline`, [`methods`] | the strategies by name, and the one that combines several |
//! | `confirmation`, `shrink` | from a failing run to the smallest schedule that fails again |
//! | `unfinished` | whether a run that was stopped is a hang |
//! | `timing` | whether a failure depends on timing |
//! | [`finding`](Finding), [`summary`](Summary), [`event`](Event) | what a session says |
//! | [`clip`], [`replay`] | findings that outlive a build, and following them |
//! | `guided` | whether the program could be driven through a sequence of locations |
//! | [`from_trace`] | predictions from a trace alone |
//! | [`suite`] | many tests, each a session |
//! | [`ending`] | how a run ended, in words |
//! | [`user_code`] | which line of the user's own code an event belongs to |
//! | [`atomic_write`] | files that nobody sees half written |

pub mod atomic_write;
mod budget;
pub mod clip;
mod config;
mod confirmation;
pub mod ending;
mod error;
mod event;
mod finding;
pub mod from_trace;
mod guided;
mod length;
pub mod methods;
pub mod need;
mod pace;
mod pipeline;
mod pool;
pub mod replay;
mod session;
mod shrink;
pub mod suite;
mod summary;
mod timing;
mod unfinished;
pub mod user_code;

pub use budget::Budget;
pub use config::{HuntConfig, StrategyChoice, Subject};
pub use error::HuntError;
pub use event::{Emit, Event};
pub use finding::{Finding, FindingKind, SourceLine};
pub use guided::{GuideConfig, Guided, Passed};
pub use length::BEGINNING;
pub use methods::hunt;
pub use pipeline::Pipeline;
pub use session::{Session, run};
pub use shrink::shrink;
pub use summary::{FailureFigures, MethodFigures, PredictionFigures, Stopped, Summary};
pub use threadbare_guide::guided_test::NAME as GUIDE;
pub use threadbare_guide::{DecidingRead, Obstacle, Verdict};
pub use threadbare_program::Sources;
pub use threadbare_variants::REACHABILITY;
pub use timing::{Dependence, Timing};
pub use unfinished::Unfinished;
