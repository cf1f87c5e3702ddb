//! Locksets and critical sections (section 4.1: the attribute *l* of an event), computed offline.
//!
//! Recursive acquisitions are folded into the outermost one. The two sides of a read-write lock are two ways to
//! hold one lock: readers do not exclude each other.

use std::collections::HashMap;

use threadbare_trace::{EventIndex, LockEffect, ObjectIndex, Outcome, ThreadIndex, Trace, index_types};

use super::error::TraceError;

index_types! {
    /// A set of held locks, as an index into [`Locksets`]. Equal sets have equal indices; 0 is the empty set.
    Lockset;
    /// A critical section, as an index into [`Locksets::sections`].
    SectionIndex;
}

impl Lockset {
    pub const EMPTY: Lockset = Lockset::new(0);
}

/// A lock and how it is held. Ordered by lock, so that sets of them can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    pub lock: ObjectIndex,
    /// The read side of a read-write lock.
    pub shared: bool,
}

/// One outermost acquisition of one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalSection {
    pub thread: ThreadIndex,
    pub held: Held,
    /// The event that took the lock.
    pub acquire: EventIndex,
    /// The event that gave it back; `None` when the trace ends before.
    pub release: Option<EventIndex>,
}

/// Which locks are held where.
#[derive(Debug, Default)]
pub struct Locksets {
    sets: Vec<Box<[Held]>>,
    /// What each event's thread held just before it.
    before: Vec<Lockset>,
    /// In the order of acquisition.
    sections: Vec<CriticalSection>,
    /// Releases of locks that were taken before the trace began.
    unmatched: Vec<EventIndex>,
}

impl Locksets {
    pub fn of(trace: &Trace) -> Result<Locksets, TraceError> {
        let mut walk = Walk::new(trace);
        let mut before = Vec::with_capacity(trace.events.len());
        for (index, event) in trace.indexed_events() {
            before.push(walk.current[event.thread.index()]);
            let held = |shared| Held { lock: event.object, shared };
            match event.kind.lock_effect().filter(|_| event.outcome == Outcome::Done) {
                Some(LockEffect::Acquires { shared }) => walk.acquire(index, event.thread, held(shared))?,
                Some(LockEffect::Releases { shared }) => walk.release(index, event.thread, held(shared))?,
                None => {}
            }
        }
        let Walk { sets, sections, unmatched, .. } = walk;
        Ok(Locksets { sets: sets.sets, before, sections, unmatched })
    }

    /// What the event's thread held just before it.
    pub fn before(&self, event: EventIndex) -> Lockset {
        self.before[event.index()]
    }

    pub fn held(&self, set: Lockset) -> &[Held] {
        &self.sets[set.index()]
    }

    /// All critical sections, in the order of acquisition.
    pub fn sections(&self) -> &[CriticalSection] {
        &self.sections
    }

    pub fn section(&self, section: SectionIndex) -> CriticalSection {
        self.sections[section.index()]
    }

    /// Releases whose lock was taken before the trace began.
    pub fn unmatched(&self) -> &[EventIndex] {
        &self.unmatched
    }

    /// No lock is in both in a way that excludes: the paper's l(i) ∩ l(j) = ∅.
    pub fn disjoint(&self, a: Lockset, b: Lockset) -> bool {
        if a == Lockset::EMPTY || b == Lockset::EMPTY {
            return true;
        }
        let (mut a, mut b) = (self.held(a), self.held(b));
        while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
            match x.lock.cmp(&y.lock) {
                std::cmp::Ordering::Less => a = rest_a,
                std::cmp::Ordering::Greater => b = rest_b,
                std::cmp::Ordering::Equal if x.shared && y.shared => (a, b) = (rest_a, rest_b),
                std::cmp::Ordering::Equal => return false,
            }
        }
        true
    }

    /// Everything in `a` is in `b`.
    pub fn within(&self, a: Lockset, b: Lockset) -> bool {
        a == b || self.held(a).iter().all(|held| self.held(b).binary_search(held).is_ok())
    }
}

/// Sets under construction: each is stored once.
#[derive(Default)]
struct Interned {
    sets: Vec<Box<[Held]>>,
    index: HashMap<Box<[Held]>, Lockset>,
    /// (set, lock) → the set with the lock, and the set without it; programs take few different steps.
    with: HashMap<(Lockset, Held), Lockset>,
    without: HashMap<(Lockset, Held), Lockset>,
}

impl Interned {
    fn id(&mut self, set: Vec<Held>) -> Lockset {
        let set = set.into_boxed_slice();
        if let Some(&id) = self.index.get(&set) {
            return id;
        }
        let id = Lockset::at(self.sets.len());
        self.sets.push(set.clone());
        self.index.insert(set, id);
        id
    }

    fn with(&mut self, set: Lockset, held: Held) -> Lockset {
        if let Some(&known) = self.with.get(&(set, held)) {
            return known;
        }
        let mut members = self.sets[set.index()].to_vec();
        if let Err(at) = members.binary_search(&held) {
            members.insert(at, held);
        }
        let id = self.id(members);
        self.with.insert((set, held), id);
        id
    }

    fn without(&mut self, set: Lockset, held: Held) -> Lockset {
        if let Some(&known) = self.without.get(&(set, held)) {
            return known;
        }
        let members = self.sets[set.index()].iter().copied().filter(|member| *member != held).collect();
        let id = self.id(members);
        self.without.insert((set, held), id);
        id
    }
}

/// Who holds what, as the trace goes by.
struct Walk<'t> {
    trace: &'t Trace,
    sets: Interned,
    current: Vec<Lockset>,
    /// For each lock, those who hold it: their thread, section, and depth.
    holders: HashMap<ObjectIndex, Vec<Holder>>,
    sections: Vec<CriticalSection>,
    unmatched: Vec<EventIndex>,
}

struct Holder {
    thread: ThreadIndex,
    shared: bool,
    section: SectionIndex,
    depth: u32,
}

impl<'t> Walk<'t> {
    fn new(trace: &'t Trace) -> Walk<'t> {
        let mut sets = Interned::default();
        sets.id(Vec::new());
        let current = vec![Lockset::EMPTY; trace.threads.len()];
        Walk { trace, sets, current, holders: HashMap::new(), sections: Vec::new(), unmatched: Vec::new() }
    }

    fn acquire(&mut self, index: EventIndex, thread: ThreadIndex, held: Held) -> Result<(), TraceError> {
        let holders = self.holders.entry(held.lock).or_default();
        if let Some(mine) = holders.iter_mut().find(|holder| holder.thread == thread) {
            mine.depth += 1;
            return Ok(());
        }
        if let Some(other) = holders.iter().find(|holder| !(holder.shared && held.shared)) {
            let holder = other.thread;
            return Err(TraceError::TakenTwice {
                event: index,
                thread: self.name(thread),
                lock: self.lock(held.lock),
                holder: self.name(holder),
            });
        }
        holders.push(Holder {
            thread,
            shared: held.shared,
            section: SectionIndex::at(self.sections.len()),
            depth: 1,
        });
        self.sections.push(CriticalSection { thread, held, acquire: index, release: None });
        let current = &mut self.current[thread.index()];
        *current = self.sets.with(*current, held);
        Ok(())
    }

    fn release(&mut self, index: EventIndex, thread: ThreadIndex, held: Held) -> Result<(), TraceError> {
        let holders = self.holders.entry(held.lock).or_default();
        let Some(at) = holders.iter().position(|holder| holder.thread == thread) else {
            let Some(other) = holders.first().map(|holder| holder.thread) else {
                self.unmatched.push(index);
                return Ok(());
            };
            return Err(TraceError::ForeignRelease {
                event: index,
                thread: self.name(thread),
                lock: self.lock(held.lock),
                holder: self.name(other),
            });
        };
        holders[at].depth -= 1;
        if holders[at].depth == 0 {
            let section = &mut self.sections[holders.swap_remove(at).section.index()];
            section.release = Some(index);
            let current = &mut self.current[thread.index()];
            *current = self.sets.without(*current, section.held);
        }
        Ok(())
    }

    fn name(&self, thread: ThreadIndex) -> String {
        self.trace.thread(thread).to_string()
    }

    fn lock(&self, object: ObjectIndex) -> String {
        self.trace.object(object).display.clone()
    }
}
