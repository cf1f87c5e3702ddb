//! Every correct reordering of a small trace: each thread does the first of what it did, locks exclude, a thread
//! begins after its fork and is joined after its end, and every read sees the write it saw.

use std::collections::{BTreeSet, HashSet};

use threadbare_trace::{EventIndex, EventKind, ObjectIndex, ObjectName, ThreadIndex, Trace};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reorderings {
    All,
    /// Of two critical sections of one lock that both happen, the one that was earlier is.
    KeepingSections,
}

/// What some reordering shows.
#[derive(Default)]
pub struct Shown {
    /// Pairs of conflicting accesses that were next at the same time, the earlier event first.
    pub races: BTreeSet<Vec<EventIndex>>,
    /// Sets of acquisitions that waited for each other.
    pub deadlocks: BTreeSet<Vec<EventIndex>>,
}

/// Traces with more states are passed over.
const MAX_STATES: usize = 40_000;

/// How many events each thread has done, and who wrote each variable last.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    done: Vec<usize>,
    writers: Vec<Option<EventIndex>>,
}

/// Conflicting accesses of different threads, the earlier event first.
pub fn conflicting_pairs(trace: &Trace) -> Vec<Vec<EventIndex>> {
    let accesses: Vec<EventIndex> =
        EventIndex::first(trace.events.len()).filter(|&event| trace.event(event).kind.is_access()).collect();
    let mut pairs = Vec::new();
    for (at, &a) in accesses.iter().enumerate() {
        pairs.extend(accesses[at + 1..].iter().filter(|&&b| conflict(trace, a, b)).map(|&b| vec![a, b]));
    }
    pairs
}

fn conflict(trace: &Trace, a: EventIndex, b: EventIndex) -> bool {
    let (a, b) = (trace.event(a), trace.event(b));
    a.kind.is_access()
        && b.kind.is_access()
        && a.thread != b.thread
        && a.object == b.object
        && (a.kind.is_write() || b.kind.is_write())
}

/// `None` when there are too many reorderings.
pub fn explore(trace: &Trace, reorderings: Reorderings) -> Option<Shown> {
    let exploration = Exploration::new(trace, reorderings);
    let start = State { done: vec![0; trace.threads.len()], writers: vec![None; trace.objects.len()] };
    let mut known = HashSet::from([start.clone()]);
    let mut open = vec![start];
    let mut shown = Shown::default();
    while let Some(state) = open.pop() {
        exploration.look(&state, &mut shown);
        for thread in 0..trace.threads.len() {
            if let Some(next) = exploration.step(&state, thread)
                && known.insert(next.clone())
            {
                open.push(next);
            }
        }
        if known.len() > MAX_STATES {
            return None;
        }
    }
    Some(shown)
}

struct Exploration<'t> {
    trace: &'t Trace,
    threads: Vec<Vec<EventIndex>>,
    /// By event: the write that a read saw.
    seen: Vec<Option<EventIndex>>,
    reorderings: Reorderings,
}

impl<'t> Exploration<'t> {
    fn new(trace: &'t Trace, reorderings: Reorderings) -> Exploration<'t> {
        let mut threads = vec![Vec::new(); trace.threads.len()];
        let mut last = vec![None; trace.objects.len()];
        let mut seen = Vec::new();
        for (index, event) in trace.indexed_events() {
            threads[event.thread.index()].push(index);
            seen.push(last[event.object.index()]);
            if event.kind == EventKind::Write {
                last[event.object.index()] = Some(index);
            }
        }
        Exploration { trace, threads, seen, reorderings }
    }

    fn next(&self, state: &State, thread: usize) -> Option<EventIndex> {
        self.threads[thread].get(state.done[thread]).copied()
    }

    fn step(&self, state: &State, thread: usize) -> Option<State> {
        let index = self.next(state, thread)?;
        let event = self.trace.event(index);
        if !self.is_enabled(state, thread, index) {
            return None;
        }
        let mut next = state.clone();
        next.done[thread] += 1;
        if event.kind == EventKind::Write {
            next.writers[event.object.index()] = Some(index);
        }
        Some(next)
    }

    fn is_enabled(&self, state: &State, thread: usize, index: EventIndex) -> bool {
        let event = self.trace.event(index);
        let forked = state.done[thread] > 0 || thread == 0 || self.is_forked(state, thread);
        forked
            && match event.kind {
                EventKind::Read => state.writers[event.object.index()] == self.seen[index.index()],
                EventKind::Lock | EventKind::ReadLock => {
                    self.is_free(state, index) && self.keeps_sections(state, index)
                }
                EventKind::Join => match self.trace.object(event.object).name {
                    ObjectName::Thread(child) => {
                        state.done[child.index()] == self.threads[child.index()].len()
                    }
                    _ => true,
                },
                _ => true,
            }
    }

    fn done(&self, state: &State) -> impl Iterator<Item = EventIndex> {
        self.threads.iter().zip(&state.done).flat_map(|(events, &done)| events[..done].iter().copied())
    }

    fn is_forked(&self, state: &State, thread: usize) -> bool {
        let name = ObjectName::Thread(ThreadIndex::at(thread));
        self.done(state).any(|event| {
            let event = self.trace.event(event);
            event.kind == EventKind::Fork && self.trace.object(event.object).name == name
        })
    }

    /// Threads that hold a lock, with whether they only read.
    fn holders(&self, state: &State, lock: ObjectIndex) -> Vec<(ThreadIndex, bool)> {
        let mut holders = Vec::new();
        for (thread, events) in self.threads.iter().enumerate() {
            let mut held = None;
            for &index in &events[..state.done[thread]] {
                let event = self.trace.event(index);
                match event.kind {
                    EventKind::Lock if event.object == lock => held = Some(false),
                    EventKind::ReadLock if event.object == lock => held = Some(true),
                    EventKind::Unlock | EventKind::ReadUnlock if event.object == lock => held = None,
                    _ => {}
                }
            }
            holders.extend(held.map(|shared| (ThreadIndex::at(thread), shared)));
        }
        holders
    }

    fn is_free(&self, state: &State, index: EventIndex) -> bool {
        let event = self.trace.event(index);
        let reads = event.kind == EventKind::ReadLock;
        self.holders(state, event.object).iter().all(|&(_, shared)| shared && reads)
    }

    /// No critical section of the lock that excludes this one and came later has begun.
    fn keeps_sections(&self, state: &State, index: EventIndex) -> bool {
        let event = self.trace.event(index);
        self.reorderings == Reorderings::All
            || self.done(state).all(|other| {
                let done = self.trace.event(other);
                let takes = matches!(done.kind, EventKind::Lock | EventKind::ReadLock);
                let both_read = done.kind == EventKind::ReadLock && event.kind == EventKind::ReadLock;
                !takes || done.object != event.object || both_read || other < index
            })
    }

    fn look(&self, state: &State, shown: &mut Shown) {
        let ready = |thread: usize| {
            let index = self.next(state, thread)?;
            (thread == 0 || self.is_forked(state, thread)).then_some(index)
        };
        let next: Vec<EventIndex> = (0..self.threads.len()).filter_map(ready).collect();
        for (at, &a) in next.iter().enumerate() {
            for &b in &next[at + 1..] {
                if conflict(self.trace, a, b) {
                    shown.races.insert(vec![a.min(b), a.max(b)]);
                }
            }
        }
        shown.deadlocks.extend(self.cycles(state, &next));
    }

    /// Cycles of threads that wait for each other, as the acquisitions they stand before.
    fn cycles(&self, state: &State, next: &[EventIndex]) -> Vec<Vec<EventIndex>> {
        let event = |index: EventIndex| self.trace.event(index);
        let waits = |index: EventIndex| {
            matches!(event(index).kind, EventKind::Lock | EventKind::ReadLock) && !self.is_free(state, index)
        };
        let waiting: Vec<EventIndex> = next.iter().copied().filter(|&index| waits(index)).collect();
        let mut cycles = Vec::new();
        for &start in &waiting {
            self.follow(state, &waiting, &mut vec![start], &mut cycles);
        }
        cycles
    }

    fn follow(
        &self,
        state: &State,
        waiting: &[EventIndex],
        path: &mut Vec<EventIndex>,
        cycles: &mut Vec<Vec<EventIndex>>,
    ) {
        let event = |index: EventIndex| self.trace.event(index);
        let last = event(path[path.len() - 1]);
        let reads = last.kind == EventKind::ReadLock;
        for (holder, shared) in self.holders(state, last.object) {
            if shared && reads {
                continue;
            }
            if event(path[0]).thread == holder && path.len() > 1 {
                let mut cycle = path.clone();
                cycle.sort_unstable();
                cycles.push(cycle);
            } else if let Some(&next) = waiting.iter().find(|&&next| event(next).thread == holder)
                && !path.contains(&next)
            {
                path.push(next);
                self.follow(state, waiting, path, cycles);
                path.pop();
            }
        }
    }
}
