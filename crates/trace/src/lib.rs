//! The vocabulary of Threadbare: what a run *is* and how one is *asked for*.
//!
//! A [`Plan`] says how a run is to be scheduled. The runtime, which lives inside the tested program, follows
//! it and leaves a sequence of [`wire::Record`]s in shared memory. The executor turns those into a [`Trace`]:
//! the same events with threads, objects and locations under names that are the same in every run and, as far
//! as the source allows, in every build. A [`Clip`] is a plan that showed something, written down as text.
//!
//! This crate has no dependency and starts no thread, opens no file and runs no program: it is data, and the
//! formats of that data.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | kinds of events, memory orders, outcomes, [`Event`] itself |
//! | [`thread`] | [`ThreadId`], the path of creation |
//! | [`location`] | source locations with inlined frames, and [`Site`], which survives a rebuild |
//! | [`object`] | stable names for variables and sync objects |
//! | [`plan`] | [`Plan`], its forced steps, its policies, and which memory it tracks |
//! | [`trace`] | [`Trace`]: events and the tables they point into, and how the run ended |
//! | [`mod@format`] | the binary trace file |
//! | [`export`] | STD, CSV and JSON for other tools |
//! | [`import`] | STD and CSV from other tools |
//! | [`clip`] | [`Clip`] and its text form |
//! | [`hash`] | a fast hash for maps and states |
//! | [`wire`] | the memory that tool and runtime share; nobody else needs it |

#[cfg(test)]
mod arbitrary;
pub mod clip;
pub mod event;
pub mod export;
pub mod format;
pub mod hash;
pub mod import;
pub mod location;
pub mod object;
pub mod plan;
mod random;
pub mod thread;
pub mod trace;
pub mod wire;

pub use clip::Clip;
pub use event::{Event, EventKind, MemoryOrder, Outcome};
pub use location::{Frame, Location, Site};
pub use object::{Object, ObjectName};
pub use plan::{Extent, Order, Others, Plan, Policy, Step, Tracked, Turns, Until, Weights};
pub use random::Random;
pub use thread::ThreadId;
pub use trace::{End, FailureKind, Pending, StackNode, Trace};
