//! Runs a program under plans.
//!
//! A [`Worker`] is one running copy of the program, stopped before its first thread: a fork server. Each
//! [`Worker::run`] hands it a plan and gives back a [`Run`]: what the run left in shared memory, cheap to look
//! at, and turned into a full [`Trace`](threadbare_trace::Trace) only when asked ([`Run::trace`]). Workers
//! know nothing of each other, so any number of them work side by side, each on a thread of its own.
//!
//! A tested program never outlives its worker: it has a process group of its own, which is killed when the
//! worker is dropped, and the kernel kills it when the tool dies. Time and memory of a run are bounded by
//! [`Limits`].
//!
//! A [`PlainRun`] is one run without our scheduling. Statements about what a program does by itself need one.
//!
//! What to run next is not decided here.

mod cache;
mod ending;
mod input;
pub mod kernel;
mod learn;
mod library;
mod memory;
mod plain;
mod run;
mod snapshots;
mod symbolise;
mod worker;

pub use cache::{cache, is_cache_temporary, remove_temporary_cache};
pub use ending::RunEnd;
pub use input::Input;
pub use learn::{LEARNING_RUNS, learn, learning_plan};
pub use library::{InstallError, install};
pub use plain::{PlainEnd, PlainRun};
pub use run::{FailureKey, Run};
pub use snapshots::Keep;
pub use threadbare_wire::CodePlace;
pub use worker::{Limits, RunError, StartError, Target, Worker};
