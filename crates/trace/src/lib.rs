//! The vocabulary of Threadbare: what a run *is* and how one is *asked for*.
//!
//! A [`Plan`] says how a run is to be scheduled. The runtime, which lives inside the tested program, follows it and
//! leaves records in shared memory. The executor turns those into a [`Trace`]: the same events with threads, objects
//! and locations under names that are the same in every run and, as far as the source allows, in every build.
//!
//! This crate has no dependency. It starts no thread, opens no file and runs no program: it is data.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | kinds of events, memory orders, outcomes, [`Event`] itself |
//! | [`index`] | a type for the index of each kind of thing in a trace |
//! | [`thread`] | [`ThreadId`], the path of creation |
//! | [`location`] | source locations with inlined frames, and [`Site`], which survives a rebuild |
//! | [`object`] | stable names for variables and sync objects |
//! | [`plan`] | [`Plan`], its forced steps, its policies, and which memory it tracks |
//! | [`touch`] | [`Touch`]: what an event touches, and which events cannot change places |
//! | [`trace`] | [`Trace`]: events and the tables they point into |
//! | [`watched`] | [`Watched`]: a place in the code at which a run stops |
//! | [`guidance`] | [`Guidance`]: a sequence of places that a run is to pass |
//! | [`end`] | [`End`]: how a run ended |
//! | [`failure`] | [`FailureKind`]: the table of all kinds of failures |
//! | [`Influence`] | what a run may depend on besides its plan |
//! | [`hash`] | a fast hash for maps and states |

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
mod code_class;
pub mod end;
mod end_text;
pub mod event;
pub mod failure;
pub mod guidance;
pub mod hash;
pub mod index;
mod influence;
pub mod location;
pub mod object;
pub mod plan;
mod random;
mod span;
pub mod thread;
pub mod touch;
pub mod trace;
pub mod watched;

pub use code_class::CodeClass;
pub use end::{End, EndKind, Failure, Related, Role, TracePlace};
pub use event::{Event, EventKind, LockEffect, MemoryOrder, Outcome};
pub use failure::FailureKind;
pub use guidance::{
    Afterwards, Demand, Distance, DistanceTable, Guidance, KeptBack, Preference, Waypoint, WhichThread,
};
pub use index::{EventIndex, LocationIndex, ObjectIndex, StackIndex, ThreadIndex};
pub use influence::Influence;
pub use location::{Frame, Location, Site};
pub use object::{Object, ObjectName};
pub use plan::{
    Extent, Order, Others, Outlasting, Plan, Policy, Sleeper, Step, Tracked, Turns, Until, Weights,
};
pub use random::Random;
pub use span::Span;
pub use thread::ThreadId;
pub use touch::{Deed, Effect, Space, Touch, touches};
pub use trace::{Pending, StackNode, Trace};
pub use watched::{MovedCode, Relative, Watched};
