//! A plan that showed something, in a form that a person can read and that survives a rebuild.

use crate::{EventKind, Site, ThreadId};

/// What `threadbare replay` follows: the program, the schedule that showed the finding, and every event that
/// is to be seen on the way. Code is named by [`Site`]s, memory by symbols, never by addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// The program as it was given: an executable, or a C or C++ file.
    pub target: String,
    /// Further compiler arguments, when the target is a source file.
    pub compiler_arguments: Vec<String>,
    pub arguments: Vec<String>,
    /// The kind of finding, such as `assertion`.
    pub finding: String,
    /// The failure's own words.
    pub message: String,
    pub seed: u64,
    pub max_events: u64,
    /// The places that the rest refers to by index.
    pub sites: Vec<Site>,
    pub tracked: Vec<ClipExtent>,
    pub steps: Vec<ClipStep>,
    pub events: Vec<ClipEvent>,
}

/// Memory whose accesses are events, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipExtent {
    Global { symbol: String, offset: u64, len: u64 },
    /// In every block allocated at these calls, innermost first (indices of sites).
    Heap { calls: Vec<u32>, start: u64, len: u64 },
    Stack { thread: ThreadId, start: i64, len: u64 },
    Memory { start: u64, len: u64 },
}

/// Run a thread up to a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipStep {
    pub thread: ThreadId,
    pub until: ClipUntil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClipUntil {
    /// Before the thread's `occurrence`-th operation of this kind at this place; `site` is `None` for
    /// operations that have none, such as the end of a thread.
    Before { kind: EventKind, site: Option<u32>, occurrence: u32 },
    End,
}

/// An event to be seen. Values are not part of it: they may be addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipEvent {
    pub thread: ThreadId,
    pub kind: EventKind,
    pub site: Option<u32>,
    /// What a person calls the object; empty for none.
    pub object: String,
}
