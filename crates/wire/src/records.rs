//! What a run leaves behind, piece by piece: events, call stacks, threads, races.

use crate::{OperationPatience, RACES_BYTES};
use threadbare_trace::{EventKind, MemoryOrder, Outcome, StackIndex, ThreadIndex, Turns};

/// One event, as the runtime writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// An [`EventKind`].
    pub kind: u8,
    /// Memory order in the low half, outcome in the high half.
    pub detail: u8,
    /// In order of creation; the main thread is 0.
    pub thread: u16,
    /// Index into the stacks of this run, 0 for an empty one.
    pub stack: u32,
    /// Return address in the low 48 bits; above, the size, or `0xffff` when `value` holds it.
    pub pc_size: u64,
    /// An address, or for thread events the index of the other thread.
    pub object: u64,
    pub value: u64,
}

pub(crate) const PC_BITS: u32 = 48;
const LONG: u64 = 0xffff;

impl Record {
    pub const fn detail(order: MemoryOrder, outcome: Outcome) -> u8 {
        order as u8 | (outcome as u8) << 4
    }

    pub const fn pc_size(pc: u64, size: u64) -> u64 {
        pc & ((1 << PC_BITS) - 1) | (if size < LONG { size } else { LONG }) << PC_BITS
    }

    pub const fn pc(&self) -> u64 {
        self.pc_size & ((1 << PC_BITS) - 1)
    }

    pub const fn size(&self) -> u64 {
        match self.pc_size >> PC_BITS {
            LONG => self.value,
            size => size,
        }
    }

    pub fn event_kind(&self) -> Option<EventKind> {
        EventKind::from_byte(self.kind)
    }

    pub fn thread_index(&self) -> ThreadIndex {
        ThreadIndex::new(self.thread.into())
    }

    pub fn stack_index(&self) -> StackIndex {
        StackIndex::new(self.stack)
    }

    /// The other thread of a thread event, such as a fork or a join.
    pub fn other_thread(&self) -> ThreadIndex {
        ThreadIndex::new(self.object as u32)
    }

    pub fn order(&self) -> Option<MemoryOrder> {
        MemoryOrder::from_byte(self.detail & 0xf)
    }

    pub fn outcome(&self) -> Option<Outcome> {
        Outcome::from_byte(self.detail >> 4)
    }
}

/// A call stack: the call that returns to `pc`, made from the stack `parent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stack {
    pub pc: u64,
    pub parent: u32,
    pub unused: u32,
}

/// Where a thread's own stack lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StackSpan {
    pub low: u64,
    /// The canonical frame address of the thread's outermost function (`main`, or its routine), whose address
    /// is `routine`: stack variables are named by their distance from it.
    pub base: u64,
    pub high: u64,
    pub routine: u64,
}

/// A guided run has passed a waypoint, or a thread has arrived there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Pass {
    /// Records in the log by then.
    pub records: u64,
    pub thread: u64,
}

/// What a thread was about to do when the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PendingRecord {
    pub thread: u32,
    pub kind: u8,
    pub blocked: u8,
    /// Bytes it would access.
    pub size: u16,
    pub stack: u32,
    /// The thread that holds what it waits for, plus 1; 0 for none known.
    pub holder: u32,
    pub pc: u64,
    pub object: u64,
    /// The words of a [`Condition`](crate::Condition), where it is known.
    pub condition: [u64; 3],
    /// The bits of an [`OperationPatience`].
    pub patience: u64,
}

impl PendingRecord {
    /// How its operation may have to wait.
    pub fn operation_patience(&self) -> OperationPatience {
        OperationPatience::from_bits(self.patience)
    }

    pub fn event_kind(&self) -> Option<EventKind> {
        EventKind::from_byte(self.kind)
    }

    pub fn thread_index(&self) -> ThreadIndex {
        ThreadIndex::new(self.thread)
    }

    pub fn stack_index(&self) -> StackIndex {
        StackIndex::new(self.stack)
    }

    /// The thread that holds what it waits for, if that is known.
    pub fn holder_index(&self) -> Option<ThreadIndex> {
        self.holder.checked_sub(1).map(ThreadIndex::new)
    }
}

/// Two accesses that raced, though the run went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RaceRecord {
    /// The two addresses of code, in order.
    pub addresses: [u64; 2],
    /// Records in the log by then.
    pub at: u64,
    /// The thread that came last, and the one that already stood there.
    pub thread: ThreadIndex,
    pub other: ThreadIndex,
}

/// The most races that one run records.
pub const MAX_RACES: usize = 1024;
const _: () = assert!((MAX_RACES * size_of::<RaceRecord>()) as u64 <= RACES_BYTES);

/// From some turn of a run on, another thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Switch(u64);

impl Switch {
    pub fn new(turn: u64, thread: ThreadIndex) -> Switch {
        Switch(turn << 16 | u64::from(thread.number()))
    }

    fn turn(self) -> u64 {
        self.0 >> 16
    }

    fn thread(self) -> ThreadIndex {
        ThreadIndex::new(self.0 as u32 & 0xffff)
    }

    /// The first so many turns of a run, which begins with the main thread's.
    pub fn turns(switches: &[Switch], count: u64) -> Vec<Turns> {
        let starts = [Switch::new(0, ThreadIndex::MAIN)].into_iter().chain(switches.iter().copied());
        let ends = switches.iter().map(|switch| switch.turn()).chain([count]);
        starts
            .zip(ends)
            .map(|(start, end)| Turns { thread: start.thread(), count: (end - start.turn()) as u32 })
            .filter(|turns| turns.count > 0)
            .collect()
    }
}
