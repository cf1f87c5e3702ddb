//! Runs a program under plans.
//!
//! A [`Worker`] is one running copy of the program, stopped before its first thread: a fork server. Each
//! [`Worker::run`] hands it a plan and gives back a [`Run`]: what the run left in shared memory, cheap to look
//! at, and turned into a full [`Trace`](threadbare_trace::Trace) only when asked ([`Run::trace`]). Workers
//! know nothing of each other, so any number of them work side by side, each on a thread of its own.
//!
//! A tested program never outlives its worker, nor does anything that it starts: a keeper ([`keep`]) ends
//! them all when the worker is dropped or the tool dies. Time and memory of a run are bounded by [`Limits`].
//!
//! A [`PlainRun`] is one run without our scheduling. Statements about what a program does by itself need one.
//!
//! What to run next is not decided here.

mod cache;
mod ending;
mod input;
mod keeper;
pub mod kernel;
mod learn;
mod library;
mod limits;
mod memory;
mod plain;
mod processes;
mod run;
pub mod scratch;
mod server;
mod snapshots;
mod symbolise;
mod worker;

pub use cache::{cache, is_cache_temporary};
pub use ending::RunEnd;
pub use input::Input;
pub use keeper::keep;
pub use learn::{LEARNING_RUNS, learn, learning_plan};
pub use library::{InstallError, install};
pub use limits::Limits;
pub use plain::{PlainEnd, PlainRun};
pub use run::{FailureKey, Run};
pub use snapshots::Keep;
pub use threadbare_wire::CodePlace;
pub use worker::{RunError, StartError, Target, Worker};
