//! The memory that the tool and the runtime share.
//!
//! One file in memory, mapped by the tool, by the fork server and by every run. It holds, at fixed offsets:
//! the [`Control`] block, the plan (written by the tool before a run), and what a run leaves behind: what each
//! thread was about to do, where its stack lies, the data races and the shared memory that were seen, the call
//! stacks, and the log of [`Record`]s. All of it is written as the run goes, so it is there whatever becomes of
//! the process. The file is sparse: regions are as large as they may ever get, and only touched pages exist.
//!
//! Tool and runtime are always of one build (the runtime travels inside the tool), so there is no
//! compatibility to keep here; [`VERSION`] only guards against a stale library left in a cache. Bump it when
//! any layout in this module changes.

mod decisions;
mod end;
mod plans;
mod records;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use std::sync::atomic::{AtomicU32, AtomicU64};

pub use decisions::{Condition, Decision, Decisions, GuidedStep, OperationPatience, Round, Update, members};
pub use end::{CodePlace, EndSlot, MESSAGE_BYTES};
pub use plans::{decode_extents, decode_plan, encode_extents, encode_plan};
pub use records::{MAX_RACES, Pass, PendingRecord, RaceRecord, Record, Stack, StackSpan, Switch};
pub use tables::{Tables, encode_tables};
pub use words::Garbled;

/// Changes with every change of layout.
pub const VERSION: u32 = 14;
/// Environment variable that makes the runtime active; its value is `VERSION`.
pub const ENVIRONMENT: &str = "THREADBARE_RUN";
/// Environment variable with the user's own `LD_PRELOAD`, which the runtime puts back for the program to see.
pub const PRELOAD: &str = "THREADBARE_PRELOAD";
/// Where a tested program finds the shared file and the socket to the tool.
pub const MEMORY_FD: i32 = 198;
pub const SOCKET_FD: i32 = 199;

/// Regions of the shared file, as offsets from its start.
pub const PLAN_OFFSET: u64 = 0x1000;
pub const PLAN_BYTES: u64 = 64 << 20;
pub const PENDING_OFFSET: u64 = PLAN_OFFSET + PLAN_BYTES;
pub const PENDING_BYTES: u64 = 16 << 20;
pub const SPANS_OFFSET: u64 = PENDING_OFFSET + PENDING_BYTES;
pub const SPANS_BYTES: u64 = 16 << 20;
pub const RACES_OFFSET: u64 = SPANS_OFFSET + SPANS_BYTES;
pub const RACES_BYTES: u64 = 1 << 20;
pub const STACKS_OFFSET: u64 = RACES_OFFSET + RACES_BYTES;
pub const STACKS_BYTES: u64 = 256 << 20;
pub const LEARNT_OFFSET: u64 = STACKS_OFFSET + STACKS_BYTES;
pub const LEARNT_BYTES: u64 = 64 << 20;
pub const DECISIONS_OFFSET: u64 = LEARNT_OFFSET + LEARNT_BYTES;
pub const DECISIONS_BYTES: u64 = 4 << 30;
pub const SWITCHES_OFFSET: u64 = DECISIONS_OFFSET + DECISIONS_BYTES;
pub const SWITCHES_BYTES: u64 = 2 << 30;
pub const CODE_OFFSET: u64 = SWITCHES_OFFSET + SWITCHES_BYTES;
pub const CODE_BYTES: u64 = 64 << 20;
pub const TABLES_OFFSET: u64 = CODE_OFFSET + CODE_BYTES;
pub const TABLES_BYTES: u64 = 1 << 30;
pub const PASSES_OFFSET: u64 = TABLES_OFFSET + TABLES_BYTES;
pub const PASSES_BYTES: u64 = 1 << 20;
pub const LOG_OFFSET: u64 = PASSES_OFFSET + PASSES_BYTES;
pub const LOG_BYTES: u64 = 16 << 30;
pub const FILE_BYTES: u64 = LOG_OFFSET + LOG_BYTES;

/// The most events a plan may ask for.
pub const MAX_EVENTS: u64 = LOG_BYTES / size_of::<Record>() as u64 - 1;
/// The most threads a run may have: their indices are 16 bits in a [`Record`].
pub const MAX_THREADS: usize = 60_000;

/// Asks a run to say where it is and to end (`SIGXCPU`).
pub const STOP_SIGNAL: i32 = 24;

/// The object of a signal that was sent to the process, and so to no thread in particular.
pub const PROCESS: u64 = u64::MAX;

/// What the tool and the runtime say to each other through the socket.
pub mod message {
    /// Runtime to tool: stands before its first thread, or before `main`, ready for plans.
    pub const READY: u8 = b'R';
    /// Tool to runtime: the plan is in place, run it.
    pub const RUN: u8 = b'P';
    /// Tool to runtime: the plan is in place, let the snapshot in this slot (1 byte) go on by it.
    pub const RESUME: u8 = b'S';
    /// Runtime to tool: that snapshot is no more.
    pub const LOST: u8 = b'L';
    /// Runtime to tool: the run is over, followed by its wait status (4 bytes, native order).
    pub const DONE: u8 = b'D';
}

/// What the tool wants of a snapshot, in [`Snapshot::command`].
pub mod snapshot {
    /// The most snapshots there can be at a time.
    pub const SLOTS: usize = 16;
    /// The most that are taken in one run.
    pub const MAX_WANTED: usize = 8;

    pub const STAY: u32 = 0;
    /// Make a copy that goes on by the plan in place.
    pub const GO_ON: u32 = 1;
    /// End.
    pub const LEAVE: u32 = 2;
}

/// A run that is kept as it was at some decision, and how much it had left in the shared file by then.
#[repr(C)]
pub struct Snapshot {
    /// 0 when there is none.
    pub pid: AtomicU32,
    /// A futex, on which it waits.
    pub command: AtomicU32,
    pub events: AtomicU64,
    pub learnt_words: AtomicU64,
    pub decision_words: AtomicU64,
    pub turns: AtomicU64,
    pub switches: AtomicU64,
    /// Bytes of output.
    pub output: AtomicU64,
    /// Nanoseconds that the run has lost by its being taken.
    pub cost: AtomicU64,
    pub stacks: AtomicU32,
    pub threads: AtomicU32,
    pub races: AtomicU32,
}

/// A snapshot that a run is to take.
#[repr(C)]
pub struct Wanted {
    /// After so many turns; 0 for none.
    pub turns: AtomicU64,
    pub slot: AtomicU32,
}

/// First page of the shared file.
#[repr(C)]
pub struct Control {
    pub version: AtomicU32,
    /// The process that serves runs.
    pub server_pid: AtomicU32,
    /// The process of the run under way, 0 between runs.
    pub run_pid: AtomicU32,
    /// The number of records in the log so far.
    pub events: AtomicU64,
    /// Records at the start of the log that describe the state at the first thread's creation (live heap
    /// blocks); the run's own events follow.
    pub prologue: AtomicU64,
    pub plan_words: AtomicU64,
    /// Words of the tables of distances, see [`Tables`].
    pub table_words: AtomicU64,
    pub pending: AtomicU32,
    pub stacks: AtomicU32,
    pub learnt_words: AtomicU64,
    /// Words of the decisions recorded so far, see [`Decisions`].
    pub decision_words: AtomicU64,
    /// Waypoints that a guided run has passed, each a [`Pass`].
    pub passes: AtomicU64,
    /// Turns taken so far.
    pub turns: AtomicU64,
    /// How often another thread had the turn than the one before, each time a [`Switch`].
    pub switches: AtomicU64,
    /// The shortest sleep that lasted while others could run, because the plan does not let it be outlasted: its
    /// nanoseconds and one; 0 if there was none.
    pub held_sleep: AtomicU64,
    /// In the order in which the run comes to them.
    pub snapshots_wanted: [Wanted; snapshot::MAX_WANTED],
    pub snapshots_taken: AtomicU32,
    pub snapshots: [Snapshot; snapshot::SLOTS],
    /// Contexts the server should have ready; raised by the tool as it learns how many threads there are.
    pub contexts: AtomicU32,
    /// Written by the tool: 1 if the server is to stand before `main`, for a program that starts no thread.
    pub from_main: AtomicU32,
    /// Written by the tool: tells the program's process id from those of others that run at the same time.
    pub pid_offset: AtomicU32,
    /// How the run ended, as far as it said so itself.
    pub end: EndSlot,
    /// Races recorded.
    pub races: AtomicU32,
    /// Entries of the table of [`Code`], which the tool fills before the program starts.
    pub code: AtomicU64,
    /// What the run was seen to depend on, a bit for each [`Influence`](threadbare_trace::Influence).
    pub influences: AtomicU32,
}

/// Code of a standard library that is compiled into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Code {
    /// Addresses as linked; entries are in their order and do not overlap.
    pub start: u64,
    pub end: u64,
    /// A [`CodeClass`](threadbare_trace::CodeClass).
    pub class: u64,
}

const _: () = assert!(size_of::<Control>() <= PLAN_OFFSET as usize);
