//! How a run is asked for.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::{EventKind, Guidance, ThreadId, ThreadIndex, Touch, Watched};

/// A schedule for one run: forced turns and steps, then a policy for the rest, and the memory whose accesses
/// count.
///
/// The same plan gives the same run. Addresses in a plan are those of one build under fixed layout; what
/// outlives a build is a clip (crate `formats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The threads that run first, turn by turn. A turn that cannot be taken ends the run as diverged.
    pub turns: Vec<Turns>,
    /// The steps that are forced after the turns.
    pub steps: Vec<Step>,
    /// What happens when a step cannot be taken: a strict plan ends the run there as diverged, a loose one
    /// passes the step over.
    pub strict: bool,
    /// Decides once the steps are used up.
    pub policy: Policy,
    /// Memory whose plain accesses are events and schedule points.
    pub tracked: Tracked,
    /// Places in the code that are schedule points, whatever is done there.
    pub watched: Vec<Watched>,
    /// Also find out which other memory is shared, for later plans. Does not change the schedule.
    pub learn: bool,
    /// Make freed heap memory inaccessible, so that code which is not instrumented is seen to use it. Blocks lie at other
    /// addresses then.
    pub guarded: bool,
    /// Record data races. In a data race two threads stand before accesses to the same memory, and one of them writes.
    pub races: bool,
    /// End the run at a data race between these two addresses of code. The smaller address comes first.
    pub race: Option<[u64; 2]>,
    /// Record function entry and exit.
    pub functions: bool,
    /// Record every decision: the threads that were enabled, and the state of the program.
    pub decisions: bool,
    /// How many waits for a condition or a futex may end in a run without a notification.
    pub spurious: u32,
    /// Which sleeps may end though other threads can run.
    pub outlasting: Outlasting,
    /// The run is ended after this many events; a livelock if nothing moved by then.
    pub max_events: u64,
    /// Seeds what the program sees as random.
    pub seed: u64,
}

impl Default for Plan {
    /// One thread after the other, each until it blocks.
    fn default() -> Plan {
        Plan {
            turns: Vec::new(),
            steps: Vec::new(),
            strict: false,
            policy: Policy::RunToBlock,
            tracked: Tracked::default(),
            watched: Vec::new(),
            learn: false,
            guarded: false,
            races: false,
            race: None,
            functions: false,
            decisions: false,
            spurious: 0,
            outlasting: Outlasting::NONE,
            max_events: 1_000_000,
            seed: 0,
        }
    }
}

/// The sleeps of a run that other threads may outlast: a thread that sleeps goes on before another has done what it
/// could do in that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlasting {
    /// How many, at most.
    pub sleeps: u32,
    /// Only sleeps of at most so many nanoseconds.
    pub longest: u64,
}

impl Outlasting {
    /// Every sleep lasts for as long as others can run.
    pub const NONE: Outlasting = Outlasting { sleeps: 0, longest: 0 };
}

/// A thread takes `count` turns: in each it does the operation it stands before, and runs on to its next.
///
/// The thread is named by the order of creation, and nothing says where its turns lead, so this is for searches
/// that go through the schedules of one build; a [`Step`] means the same thing in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turns {
    pub thread: ThreadIndex,
    pub count: u32,
}

impl Turns {
    /// The turns of a schedule that is given as who was picked, decision by decision.
    pub fn of(picks: impl IntoIterator<Item = ThreadIndex>) -> Vec<Turns> {
        let mut turns: Vec<Turns> = Vec::new();
        for thread in picks {
            match turns.last_mut() {
                Some(last) if last.thread == thread => last.count += 1,
                _ => turns.push(Turns { thread, count: 1 }),
            }
        }
        turns
    }

    /// How many decisions they are.
    pub fn total(turns: &[Turns]) -> u64 {
        turns.iter().map(|turns| u64::from(turns.count)).sum()
    }
}

/// Run `thread`, and no other, up to a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub thread: ThreadId,
    pub until: Until,
}

/// Where a step stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// When the thread is about to do its `occurrence`-th (from 1) operation of this kind at this address, or,
    /// with address 0, at the address it stands at.
    Before { kind: EventKind, address: u64, occurrence: u32 },
    /// When the thread has ended.
    End,
}

/// Who runs when nothing is forced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The running thread goes on until it blocks or ends; then the one created first.
    RunToBlock,
    /// Any thread that can run, at every schedule point.
    Random { seed: u64 },
    /// Always the highest priority that can run; priorities are drawn from `seed` and the thread's id. Before
    /// the n-th event, for each n in `changes`, the running thread becomes the lowest (PCT).
    Priorities { seed: u64, changes: Vec<u64> },
    /// Always the first in this order that can run.
    Ordered(Order),
    /// Each operation that a thread stands before has a random score, and the highest is done; scores of
    /// operations that conflict with it are drawn again (partial-order sampling, POS).
    PartialOrder { seed: u64 },
    /// Some accesses are done in an order that is evenly random among all orders, as far as it is known how many
    /// each thread has (selectively uniform random walk, SURW).
    Weighted(Weights),
    /// Threads are led through places in the code, in the order of a sequence (guided test).
    Guided(Guidance),
    /// As [`RunToBlock`](Policy::RunToBlock), without the threads that are asleep (sleep sets).
    Awake { asleep: Vec<Sleeper>, from: u64 },
}

impl Policy {
    /// Why a run is said to have diverged in which a thread went round in vain in turns of the plan.
    pub const IN_VAIN: &str = "turns of the plan lead nowhere";
}

/// A thread that is not to do its next operation until another thread has done something that the operation cannot
/// change places with. Turn number [`from`](Policy::Awake) of the plan is the first one that can wake it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper {
    pub thread: ThreadIndex,
    /// What the operation touches.
    pub touches: Arc<[Touch]>,
}

impl Sleeper {
    /// Why a run is said to have diverged in which all threads that could go on are asleep.
    pub const ALL_ASLEEP: &str = "all threads that can run are asleep";
}

/// An order of threads: those named, then all others by a rule that needs no names, then `last`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    pub first: Vec<ThreadId>,
    pub others: Others,
    pub last: Option<ThreadId>,
}

/// How threads stand that an order does not name. The two are the reverse of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Others {
    /// A thread before those it creates, and of those the newest first.
    #[default]
    ParentsFirst,
    /// A thread after those it creates, and of those the oldest first.
    ChildrenFirst,
}

impl Others {
    /// Which of the two threads comes first.
    pub fn compare(self, one: &ThreadId, other: &ThreadId) -> Ordering {
        let parts = one.path().iter().zip(other.path());
        let newest_first = parts.map(|(a, b)| b.cmp(a)).find(|order| order.is_ne());
        let parents_first = newest_first.unwrap_or_else(|| one.path().len().cmp(&other.path().len()));
        match self {
            Others::ParentsFirst => parents_first,
            Others::ChildrenFirst => parents_first.reverse(),
        }
    }
}

/// What [`Policy::Weighted`] orders evenly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    pub seed: u64,
    /// The first byte, and how many: accesses to this memory count.
    pub interesting: [u64; 2],
    /// How many such accesses each thread has, as far as is known.
    pub counts: Vec<(ThreadId, u64)>,
}

/// A piece of memory, in the terms of one build.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extent {
    /// Fixed addresses: globals, and mappings.
    Fixed { start: u64, len: u64 },
    /// In every block allocated at this stack of calls (innermost first, 0 where it is shorter), the bytes
    /// from `start`.
    Heap { site: [u64; 3], start: u64, len: u64 },
    /// On this thread's stack, bytes from its base.
    Stack { thread: ThreadId, start: i64, len: u64 },
}

impl Extent {
    /// Bytes covered.
    pub fn len(&self) -> u64 {
        match *self {
            Extent::Fixed { len, .. } | Extent::Heap { len, .. } | Extent::Stack { len, .. } => len,
        }
    }

    /// Covers nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This extent with `other` added, when the two touch or overlap.
    fn join(&self, other: &Extent) -> Option<Extent> {
        /// The union of two ranges given as (start, length), if it is a range.
        fn union(a: (i128, u64), b: (i128, u64)) -> Option<(i128, u64)> {
            let (a_end, b_end) = (a.0 + i128::from(a.1), b.0 + i128::from(b.1));
            let start = a.0.min(b.0);
            // Ends may lie beyond what there are addresses for; there is nothing to cover there.
            let len = u64::try_from(a_end.max(b_end) - start).unwrap_or(u64::MAX);
            (a.0 <= b_end && b.0 <= a_end).then_some((start, len))
        }
        match (self, other) {
            (&Extent::Fixed { start: a, len: m }, &Extent::Fixed { start: b, len: n }) => {
                let (start, len) = union((a.into(), m), (b.into(), n))?;
                Some(Extent::Fixed { start: start as u64, len })
            }
            (&Extent::Heap { site, start: a, len: m }, &Extent::Heap { site: other, start: b, len: n })
                if site == other =>
            {
                let (start, len) = union((a.into(), m), (b.into(), n))?;
                Some(Extent::Heap { site, start: start as u64, len })
            }
            (
                Extent::Stack { thread, start: a, len: m },
                Extent::Stack { thread: other, start: b, len: n },
            ) if thread == other => {
                let (start, len) = union((i128::from(*a), *m), (i128::from(*b), *n))?;
                Some(Extent::Stack { thread: thread.clone(), start: start as i64, len })
            }
            _ => None,
        }
    }
}

/// The shared memory a plan knows of: extents, sorted, none touching another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracked(Vec<Extent>);

impl Tracked {
    /// The extents, in order.
    pub fn extents(&self) -> &[Extent] {
        &self.0
    }

    /// Adds what is not there yet; says whether anything was new.
    pub fn extend(&mut self, extents: impl IntoIterator<Item = Extent>) -> bool {
        let mut all = self.0.clone();
        all.extend(extents.into_iter().filter(|extent| !extent.is_empty()));
        all.sort();
        let mut merged: Vec<Extent> = Vec::with_capacity(all.len());
        for extent in all {
            match merged.last().and_then(|last| last.join(&extent)) {
                Some(joined) => *merged.last_mut().expect("join needs a last extent") = joined,
                None => merged.push(extent),
            }
        }
        let grew = merged != self.0;
        self.0 = merged;
        grew
    }
}

impl FromIterator<Extent> for Tracked {
    fn from_iter<I: IntoIterator<Item = Extent>>(extents: I) -> Tracked {
        let mut tracked = Tracked::default();
        tracked.extend(extents);
        tracked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_no_order_names_stand_by_creation() {
        let ids = ["0", "0.1", "0.2", "0.2.1", "0.10"];
        let mut threads = ids.map(|id| id.parse::<ThreadId>().expect("an id"));
        threads.sort_by(|a, b| Others::ParentsFirst.compare(a, b));
        assert_eq!(threads.each_ref().map(ThreadId::to_string), ["0", "0.10", "0.2", "0.2.1", "0.1"]);
        let mut reversed = threads.clone();
        reversed.sort_by(|a, b| Others::ChildrenFirst.compare(a, b));
        threads.reverse();
        assert_eq!(threads, reversed);
    }

    #[test]
    fn extents_that_touch_become_one() {
        let mut tracked = Tracked::default();
        assert!(tracked.extend([Extent::Fixed { start: 8, len: 8 }, Extent::Fixed { start: 0, len: 8 }]));
        assert_eq!(tracked.extents(), [Extent::Fixed { start: 0, len: 16 }]);
        assert!(!tracked.extend([Extent::Fixed { start: 4, len: 4 }]));
        let stack = |start, len| Extent::Stack { thread: ThreadId::main(), start, len };
        assert!(tracked.extend([stack(-16, 4), stack(-12, 4), stack(-4, 4)]));
        assert_eq!(tracked.extents()[1..], [stack(-16, 8), stack(-4, 4)]);
    }

    #[test]
    fn extents_beyond_the_last_address_do_not_wrap_around() {
        let all = Extent::Fixed { start: 0, len: u64::MAX };
        let tracked: Tracked = [all.clone(), Extent::Fixed { start: 8, len: u64::MAX }].into_iter().collect();
        assert_eq!(tracked.extents(), [all]);
    }

    #[test]
    fn heap_extents_of_different_sites_stay_apart() {
        let heap = |site, start| Extent::Heap { site: [site, 0, 0], start, len: 8 };
        let tracked: Tracked = [heap(1, 0), heap(2, 8), heap(1, 8)].into_iter().collect();
        assert_eq!(tracked.extents(), [Extent::Heap { site: [1, 0, 0], start: 0, len: 16 }, heap(2, 8)]);
    }
}
