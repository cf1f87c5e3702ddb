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

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::{
    EventKind, Extent, MemoryOrder, Order, Others, Outcome, Plan, Policy, Step, ThreadId, Tracked, Turns,
    Until, Weights,
};

/// Changes with every change of layout.
pub const VERSION: u32 = 3;
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
pub const PICKS_OFFSET: u64 = DECISIONS_OFFSET + DECISIONS_BYTES;
pub const PICKS_BYTES: u64 = 1 << 30;
pub const CODE_OFFSET: u64 = PICKS_OFFSET + PICKS_BYTES;
pub const CODE_BYTES: u64 = 64 << 20;
pub const LOG_OFFSET: u64 = CODE_OFFSET + CODE_BYTES;
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
    /// Runtime to tool: stands before its first thread, ready for plans.
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
    pub const MOST_WANTED: usize = 8;

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
    pub picks: AtomicU64,
    /// Bytes of output.
    pub output: AtomicU64,
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
    /// The process of the run under way, 0 between runs.
    pub run_pid: AtomicU32,
    /// The number of records in the log so far.
    pub events: AtomicU64,
    /// Records at the start of the log that describe the state at the first thread's creation (live heap
    /// blocks); the run's own events follow.
    pub prologue: AtomicU64,
    pub plan_words: AtomicU64,
    pub pending: AtomicU32,
    pub stacks: AtomicU32,
    pub learnt_words: AtomicU64,
    /// Words of the decisions recorded so far, see [`Decisions`].
    pub decision_words: AtomicU64,
    /// Turns taken so far; who took them is in a region of its own, 2 bytes each.
    pub picks: AtomicU64,
    /// In the order in which the run comes to them.
    pub snapshots_wanted: [Wanted; snapshot::MOST_WANTED],
    pub snapshots_taken: AtomicU32,
    pub snapshots: [Snapshot; snapshot::SLOTS],
    /// Contexts the server should have ready; raised by the tool as it learns how many threads there are.
    pub contexts: AtomicU32,
    /// How the run ended, as an [`Ending`]; 0 when it said nothing.
    pub ending: AtomicU32,
    /// Signal number, exit code or step, by `ending`.
    pub ending_detail: AtomicU32,
    pub ending_thread: AtomicU32,
    pub ending_pc: AtomicU64,
    pub ending_stack: AtomicU32,
    /// The heap block a heap oracle speaks of: who allocated it and, if it was, who freed it.
    pub allocated: Origin,
    pub freed: Origin,
    /// The other side of the data race that ended the run.
    pub other: Origin,
    /// Races recorded.
    pub races: AtomicU32,
    /// Entries of the table of [`Code`], which the tool fills before the program starts.
    pub code: AtomicU64,
    pub message_bytes: AtomicU32,
    pub message: [u8; MESSAGE_BYTES],
}

/// A function of a standard library that is compiled into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Code {
    /// Addresses as linked; entries are in their order and do not overlap.
    pub start: u64,
    pub end: u64,
    /// A [`CodeClass`].
    pub class: u64,
}

/// Whose affair it is what a function of a standard library does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum CodeClass {
    /// Its caller's.
    Passing = 1,
    /// Its own: nothing for the schedule.
    Quiet = 2,
}

impl CodeClass {
    pub fn from_number(number: u64) -> Option<CodeClass> {
        use CodeClass::*;
        [Passing, Quiet].into_iter().find(|class| *class as u64 == number)
    }
}

/// Who did something, and where.
#[repr(C)]
pub struct Origin {
    /// 1 + the thread's index; 0 for nobody.
    pub thread: AtomicU32,
    pub stack: AtomicU32,
    pub pc: AtomicU64,
}

/// The longest message a run can leave.
pub const MESSAGE_BYTES: usize = 1024;

const _: () = assert!(size_of::<Control>() <= PLAN_OFFSET as usize);

/// What a run says of its end, in [`Control::ending`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ending {
    /// Nothing: the wait status tells.
    Silent = 0,
    Assertion = 1,
    Abort = 2,
    Signal = 3,
    Exception = 4,
    Deadlock = 5,
    EventBound = 6,
    Diverged = 7,
    Unsupported = 8,
    UseAfterFree = 9,
    DoubleFree = 10,
    InvalidFree = 11,
    HeapOverflow = 12,
    Livelock = 13,
    /// The tool sent [`STOP_SIGNAL`].
    TimeLimit = 14,
    DataRace = 15,
    Panic = 16,
}

impl Ending {
    pub fn from_number(number: u32) -> Option<Ending> {
        use Ending::*;
        [
            Silent,
            Assertion,
            Abort,
            Signal,
            Exception,
            Deadlock,
            EventBound,
            Diverged,
            Unsupported,
            UseAfterFree,
            DoubleFree,
            InvalidFree,
            HeapOverflow,
            Livelock,
            TimeLimit,
            DataRace,
            Panic,
        ]
        .into_iter()
        .find(|ending| *ending as u32 == number)
    }
}

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

const PC_BITS: u32 = 48;
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
}

/// Two accesses that raced, though the run went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RaceRecord {
    /// Where in the code, in order.
    pub places: [u64; 2],
    /// Records in the log by then.
    pub at: u64,
    /// The thread that came last, and the one that already stood there.
    pub thread: u32,
    pub other: u32,
}

/// The decisions of a run, one after the other, each some words: the records in the log by then, the state of
/// the program, the index of the thread that was picked, and as a set of bits who could have been.
#[derive(Clone, Debug)]
pub struct Decisions<'a>(Words<'a>);

/// Before so many records were written, somebody had to be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    pub records: u64,
    /// Two decisions with the same number were made in the same state of the program.
    pub state: u64,
    pub picked: u32,
    alternatives: &'a [u64],
}

impl<'a> Decisions<'a> {
    pub fn new(words: &'a [u64]) -> Decisions<'a> {
        Decisions(Words(words))
    }

    /// Words that come before the set of alternatives.
    pub const HEAD: usize = 3;

    /// Those words; the set that follows takes `set` words.
    pub fn head(records: u64, state: u64, picked: u32, set: usize) -> [u64; Decisions::HEAD] {
        [records, state, u64::from(picked) | (set as u64) << 32]
    }
}

impl<'a> Iterator for Decisions<'a> {
    type Item = Decision<'a>;

    fn next(&mut self) -> Option<Decision<'a>> {
        let words = &mut self.0;
        let (records, state, last) = (words.next().ok()?, words.next().ok()?, words.next().ok()?);
        let (alternatives, rest) = words.0.split_at_checked((last >> 32) as usize)?;
        words.0 = rest;
        Some(Decision { records, state, picked: last as u32, alternatives })
    }
}

impl Decision<'_> {
    /// The indices of all threads that could have been picked, in order, with the one that was.
    pub fn alternatives(&self) -> impl Iterator<Item = u32> {
        let bit = |index: &u32| self.alternatives[*index as usize / 64] >> (index % 64) & 1 == 1;
        (0..self.alternatives.len() as u32 * 64).filter(bit)
    }
}

/// The most races that one run records.
pub const MAX_RACES: usize = 1024;
const _: () = assert!((MAX_RACES * size_of::<RaceRecord>()) as u64 <= RACES_BYTES);

/// Words did not decode: tool and runtime disagree, which is a fault of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled;

/// Reads the words of a plan, an extent or a decision one after the other.
#[derive(Clone, Debug)]
struct Words<'a>(&'a [u64]);

impl Words<'_> {
    fn next(&mut self) -> Result<u64, Garbled> {
        let (&first, rest) = self.0.split_first().ok_or(Garbled)?;
        self.0 = rest;
        Ok(first)
    }

    /// A count of items that take at least one word each.
    fn count(&mut self) -> Result<usize, Garbled> {
        let count = self.next()? as usize;
        if count > self.0.len() { Err(Garbled) } else { Ok(count) }
    }

    fn thread(&mut self) -> Result<ThreadId, Garbled> {
        let path: Vec<u32> = (0..self.count()?)
            .map(|_| u32::try_from(self.next()?).map_err(|_| Garbled))
            .collect::<Result<_, _>>()?;
        ThreadId::from_path(&path).ok_or(Garbled)
    }

    fn policy(&mut self) -> Result<Policy, Garbled> {
        Ok(match self.next()? {
            0 => Policy::RunToBlock,
            1 => Policy::Random { seed: self.next()? },
            2 => Policy::Priorities {
                seed: self.next()?,
                changes: (0..self.count()?).map(|_| self.next()).collect::<Result<_, _>>()?,
            },
            3 => {
                let others = if self.next()? == 0 { Others::ParentsFirst } else { Others::ChildrenFirst };
                let last = if self.next()? == 0 { None } else { Some(self.thread()?) };
                let first = (0..self.count()?).map(|_| self.thread()).collect::<Result<_, _>>()?;
                Policy::Ordered(Order { first, others, last })
            }
            4 => Policy::PartialOrder { seed: self.next()? },
            5 => Policy::Weighted(Weights {
                seed: self.next()?,
                interesting: [self.next()?, self.next()?],
                counts: (0..self.count()?)
                    .map(|_| Ok((self.thread()?, self.next()?)))
                    .collect::<Result<_, _>>()?,
            }),
            _ => return Err(Garbled),
        })
    }
}

fn push_thread(words: &mut Vec<u64>, thread: &ThreadId) {
    words.push(thread.path().len() as u64);
    words.extend(thread.path().iter().map(|&part| u64::from(part)));
}

const FLAG_STRICT: u64 = 1;
const FLAG_LEARN: u64 = 2;
const FLAG_FUNCTIONS: u64 = 4;
const FLAG_RACE: u64 = 8;
const FLAG_RACES: u64 = 16;
const FLAG_DECISIONS: u64 = 32;

/// A plan as words, for the shared file.
pub fn encode_plan(plan: &Plan) -> Vec<u64> {
    let mut words = vec![
        (u64::from(plan.strict) * FLAG_STRICT)
            | (u64::from(plan.learn) * FLAG_LEARN)
            | (u64::from(plan.functions) * FLAG_FUNCTIONS)
            | (u64::from(plan.race.is_some()) * FLAG_RACE)
            | (u64::from(plan.races) * FLAG_RACES)
            | (u64::from(plan.decisions) * FLAG_DECISIONS),
        plan.max_events,
        plan.seed,
        u64::from(plan.spurious),
    ];
    words.extend(plan.race.into_iter().flatten());
    push_policy(&mut words, &plan.policy);
    words.push(plan.turns.len() as u64);
    words.extend(plan.turns.iter().map(|turns| u64::from(turns.thread) << 32 | u64::from(turns.count)));
    words.push(plan.steps.len() as u64);
    for step in &plan.steps {
        push_thread(&mut words, &step.thread);
        match step.until {
            Until::End => words.push(0),
            Until::Before { kind, address, occurrence } => {
                words.extend([u64::from(kind as u8), address, u64::from(occurrence)]);
            }
        }
    }
    words.extend(encode_extents(plan.tracked.extents()));
    words
}

fn push_policy(words: &mut Vec<u64>, policy: &Policy) {
    match policy {
        Policy::RunToBlock => words.push(0),
        Policy::Random { seed } => words.extend([1, *seed]),
        Policy::Priorities { seed, changes } => {
            words.extend([2, *seed, changes.len() as u64]);
            words.extend(changes);
        }
        Policy::Ordered(Order { first, others, last }) => {
            words.extend([3, u64::from(*others == Others::ChildrenFirst), u64::from(last.is_some())]);
            last.iter().for_each(|thread| push_thread(words, thread));
            words.push(first.len() as u64);
            first.iter().for_each(|thread| push_thread(words, thread));
        }
        Policy::PartialOrder { seed } => words.extend([4, *seed]),
        Policy::Weighted(Weights { seed, interesting: [start, len], counts }) => {
            words.extend([5, *seed, *start, *len, counts.len() as u64]);
            for (thread, count) in counts {
                push_thread(words, thread);
                words.push(*count);
            }
        }
    }
}

/// The plan that was encoded.
pub fn decode_plan(words: &[u64]) -> Result<Plan, Garbled> {
    let mut words = Words(words);
    let (flags, max_events, seed) = (words.next()?, words.next()?, words.next()?);
    let spurious = u32::try_from(words.next()?).map_err(|_| Garbled)?;
    let race = if flags & FLAG_RACE != 0 { Some([words.next()?, words.next()?]) } else { None };
    let policy = words.policy()?;
    let turns = (0..words.count()?)
        .map(|_| words.next().map(|word| Turns { thread: (word >> 32) as u32, count: word as u32 }))
        .collect::<Result<_, _>>()?;
    let steps = (0..words.count()?)
        .map(|_| {
            let thread = words.thread()?;
            let until = match words.next()? {
                0 => Until::End,
                kind => Until::Before {
                    kind: u8::try_from(kind).ok().and_then(EventKind::from_byte).ok_or(Garbled)?,
                    address: words.next()?,
                    occurrence: u32::try_from(words.next()?).map_err(|_| Garbled)?,
                },
            };
            Ok(Step { thread, until })
        })
        .collect::<Result<_, _>>()?;
    let tracked: Tracked = decode_extents(words.0)?.into_iter().collect();
    Ok(Plan {
        turns,
        steps,
        strict: flags & FLAG_STRICT != 0,
        policy,
        tracked,
        learn: flags & FLAG_LEARN != 0,
        races: flags & FLAG_RACES != 0,
        race,
        functions: flags & FLAG_FUNCTIONS != 0,
        decisions: flags & FLAG_DECISIONS != 0,
        spurious,
        max_events,
        seed,
    })
}

/// Extents as words: how the runtime reports what it learnt, and the last part of a plan.
pub fn encode_extents(extents: &[Extent]) -> Vec<u64> {
    let mut words = vec![extents.len() as u64];
    for extent in extents {
        match extent {
            Extent::Fixed { start, len } => words.extend([0, *start, *len]),
            Extent::Heap { site, start, len } => words.extend([1, site[0], site[1], site[2], *start, *len]),
            Extent::Stack { thread, start, len } => {
                words.push(2);
                push_thread(&mut words, thread);
                words.extend([*start as u64, *len]);
            }
        }
    }
    words
}

/// The extents that were encoded.
pub fn decode_extents(words: &[u64]) -> Result<Vec<Extent>, Garbled> {
    let mut words = Words(words);
    (0..words.count()?)
        .map(|_| {
            Ok(match words.next()? {
                0 => Extent::Fixed { start: words.next()?, len: words.next()? },
                1 => Extent::Heap {
                    site: [words.next()?, words.next()?, words.next()?],
                    start: words.next()?,
                    len: words.next()?,
                },
                2 => {
                    Extent::Stack { thread: words.thread()?, start: words.next()? as i64, len: words.next()? }
                }
                _ => return Err(Garbled),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary::{kind, number, thread};

    fn extent() -> impl Strategy<Value = Extent> {
        prop_oneof![
            (number(), number()).prop_map(|(start, len)| Extent::Fixed { start, len }),
            (any::<[bool; 3]>(), number(), number()).prop_map(|(site, start, len)| Extent::Heap {
                site: site.map(u64::from),
                start,
                len
            }),
            (thread(), any::<i64>(), number()).prop_map(|(thread, start, len)| Extent::Stack {
                thread,
                start,
                len
            }),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        let until = prop_oneof![
            Just(Until::End),
            (kind(), any::<u64>(), any::<u32>()).prop_map(|(kind, address, occurrence)| Until::Before {
                kind,
                address,
                occurrence
            }),
        ];
        (thread(), until).prop_map(|(thread, until)| Step { thread, until })
    }

    fn policy() -> impl Strategy<Value = Policy> {
        let others = prop_oneof![Just(Others::ParentsFirst), Just(Others::ChildrenFirst)];
        prop_oneof![
            Just(Policy::RunToBlock),
            any::<u64>().prop_map(|seed| Policy::Random { seed }),
            (any::<u64>(), vec(any::<u64>(), 0..4))
                .prop_map(|(seed, changes)| Policy::Priorities { seed, changes }),
            (vec(thread(), 0..4), others, proptest::option::of(thread()))
                .prop_map(|(first, others, last)| Policy::Ordered(Order { first, others, last })),
            any::<u64>().prop_map(|seed| Policy::PartialOrder { seed }),
            (any::<u64>(), any::<[u64; 2]>(), vec((thread(), any::<u64>()), 0..4)).prop_map(
                |(seed, interesting, counts)| Policy::Weighted(Weights { seed, interesting, counts })
            ),
        ]
    }

    fn plan() -> impl Strategy<Value = Plan> {
        let turns = any::<[u32; 2]>().prop_map(|[thread, count]| Turns { thread, count });
        let steps = (vec(turns, 0..6), vec(step(), 0..6));
        (steps, policy(), vec(extent(), 0..6), any::<[bool; 3]>(), any::<[u64; 2]>()).prop_map(
            |((turns, steps), policy, extents, [strict, learn, functions], [max_events, seed])| Plan {
                turns,
                decisions: functions,
                spurious: seed as u32,
                races: learn,
                race: strict.then_some([max_events, seed]),
                steps,
                strict,
                policy,
                tracked: extents.into_iter().collect(),
                learn,
                functions,
                max_events,
                seed,
            },
        )
    }

    /// Words as a broken encoder might leave them: mostly small, so that they pass for tags and counts.
    fn words() -> impl Strategy<Value = Vec<u64>> {
        vec(prop_oneof![4 => 0..4u64, 1 => any::<u64>()], 0..40)
    }

    proptest! {
        #[test]
        fn a_plan_survives_the_wire(plan in plan()) {
            prop_assert_eq!(decode_plan(&encode_plan(&plan)), Ok(plan));
        }

        #[test]
        fn extents_survive_the_wire(extents in vec(extent(), 0..8)) {
            prop_assert_eq!(decode_extents(&encode_extents(&extents)), Ok(extents));
        }

        #[test]
        fn any_words_are_decoded_or_garbled(words in words()) {
            let _ = decode_plan(&words);
            let _ = decode_extents(&words);
        }

        #[test]
        fn a_plan_that_was_cut_short_is_garbled(plan in plan()) {
            let words = encode_plan(&plan);
            for len in 0..words.len() {
                prop_assert_eq!(decode_plan(&words[..len]), Err(Garbled));
            }
        }

        #[test]
        fn a_damaged_word_never_panics(plan in plan(), damage in words()) {
            let mut words = encode_plan(&plan);
            for at in 0..words.len() {
                for &word in &damage {
                    let good = std::mem::replace(&mut words[at], word);
                    let _ = decode_plan(&words);
                    words[at] = good;
                }
            }
        }

        #[test]
        fn a_record_gives_back_what_was_packed(
            pc in 0..1u64 << PC_BITS,
            size in number(),
            order in prop::sample::select(MemoryOrder::ALL),
            outcome in prop::sample::select(Outcome::ALL),
        ) {
            let record = Record {
                kind: EventKind::Allocate as u8,
                detail: Record::detail(order, outcome),
                thread: 0,
                stack: 0,
                pc_size: Record::pc_size(pc, size),
                object: 0,
                value: size,
            };
            prop_assert_eq!((record.pc(), record.size()), (pc, size));
            prop_assert_eq!((record.order(), record.outcome()), (Some(order), Some(outcome)));
        }
    }
}
