//! Thread communication: which events let an event of another thread go on (section 4.2, Definition 1).
//!
//! Fork and join, notify and wake are the paper's. Semaphores, barriers, `once` and futexes are the same thing
//! under other names: somebody posts what somebody waits for.

use std::collections::HashMap;

use threadbare_trace::{
    Event, EventIndex, EventKind, LockEffect, ObjectIndex, ObjectName, Outcome, ThreadIndex, Trace,
};

use super::lockset::Locksets;

/// `from` comes before `to`, in another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: EventIndex,
    pub to: EventIndex,
    /// The two happened in this order, but another order was possible. Such an edge is not part of the partial order. A
    /// schedule that keeps it goes the same way as the trace.
    pub observed: bool,
}

/// All edges of the trace, in the order of `to`.
pub fn edges(trace: &Trace, locksets: &Locksets) -> Vec<Edge> {
    let mut finder = Finder::new(trace, locksets);
    for (index, event) in trace.indexed_events() {
        finder.look(index, event);
    }
    finder.edges
}

struct Finder<'t> {
    trace: &'t Trace,
    edges: Vec<Edge>,
    /// The fork of each thread, until the thread begins.
    forks: Vec<Option<EventIndex>>,
    /// The last event of each thread so far.
    last: Vec<Option<EventIndex>>,
    /// Threads that have done nothing yet.
    fresh: Vec<bool>,
    /// The last notification of each condition variable or futex.
    notified: HashMap<ObjectIndex, EventIndex>,
    semaphores: HashMap<ObjectIndex, Semaphore>,
    barriers: HashMap<ObjectIndex, Barrier>,
    once: HashMap<ObjectIndex, EventIndex>,
    /// The last event at each object whose state is more than these edges say.
    chain: HashMap<ObjectIndex, EventIndex>,
    /// The release that ended a hold from before the trace, by lock.
    first_release: HashMap<ObjectIndex, EventIndex>,
    unmatched: Vec<EventIndex>,
}

/// Posts so far, and waits that had to have one of them.
#[derive(Default)]
struct Semaphore {
    posts: Vec<EventIndex>,
    taken: usize,
}

/// Who has arrived since the barrier was last left, and who is leaving.
#[derive(Default)]
struct Barrier {
    arrived: Vec<EventIndex>,
    leaving: Vec<EventIndex>,
}

impl<'t> Finder<'t> {
    fn new(trace: &'t Trace, locksets: &Locksets) -> Finder<'t> {
        Finder {
            trace,
            edges: Vec::new(),
            forks: vec![None; trace.threads.len()],
            last: vec![None; trace.threads.len()],
            fresh: vec![true; trace.threads.len()],
            notified: HashMap::new(),
            semaphores: HashMap::new(),
            barriers: HashMap::new(),
            once: HashMap::new(),
            chain: HashMap::new(),
            first_release: HashMap::new(),
            unmatched: locksets.unmatched().to_vec(),
        }
    }

    fn look(&mut self, index: EventIndex, event: &Event) {
        let thread = event.thread.index();
        if std::mem::take(&mut self.fresh[thread]) {
            self.edge(self.forks[thread], index);
        }
        let done = event.outcome == Outcome::Done;
        match event.kind {
            EventKind::Fork if done => {
                if let Some(child) = self.other_thread(event) {
                    self.forks[child.index()] = Some(index);
                }
            }
            EventKind::Join if done => {
                if let Some(child) = self.other_thread(event) {
                    self.edge(self.last[child.index()], index);
                }
            }
            EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake if event.value > 0 => {
                self.notified.insert(event.object, index);
            }
            EventKind::Wake | EventKind::FutexResume if done => {
                self.edge(self.notified.get(&event.object).copied(), index);
            }
            EventKind::SemPost | EventKind::SemWait => self.semaphore(index, event, done),
            EventKind::BarrierArrive => self.arrive(index, event.object),
            EventKind::BarrierLeave => self.leave(index, event.object),
            EventKind::OnceLeave => {
                self.once.insert(event.object, index);
            }
            EventKind::OnceEnter => self.edge(self.once.get(&event.object).copied(), index),
            EventKind::Lock | EventKind::ReadLock => {
                self.edge(self.first_release.get(&event.object).copied(), index);
            }
            EventKind::Unlock | EventKind::ReadUnlock if self.unmatched.binary_search(&index).is_ok() => {
                self.first_release.insert(event.object, index);
            }
            // These did not succeed, and nobody was let go on.
            EventKind::Fork
            | EventKind::Join
            | EventKind::NotifyOne
            | EventKind::NotifyAll
            | EventKind::FutexWake
            | EventKind::Wake
            | EventKind::FutexResume
            | EventKind::Unlock
            | EventKind::ReadUnlock => {}
            // These let nobody go on. What threads pass through memory, descriptors and signals is no communication here.
            EventKind::Read
            | EventKind::Write
            | EventKind::AtomicLoad
            | EventKind::AtomicStore
            | EventKind::AtomicRmw
            | EventKind::Fence
            | EventKind::Wait
            | EventKind::FutexWait
            | EventKind::Begin
            | EventKind::End
            | EventKind::Detach
            | EventKind::Cancel
            | EventKind::Signal
            | EventKind::Io
            | EventKind::Allocate
            | EventKind::Free
            | EventKind::Enter
            | EventKind::Leave
            | EventKind::Reach
            | EventKind::Yield
            | EventKind::Sleep
            | EventKind::Exit
            | EventKind::Failure => {}
        }
        self.keep_as_observed(index, event);
        self.last[thread] = Some(index);
    }

    fn other_thread(&self, event: &Event) -> Option<ThreadIndex> {
        match self.trace.object(event.object).name {
            ObjectName::Thread(thread) => Some(thread),
            _ => None,
        }
    }

    fn edge(&mut self, from: Option<EventIndex>, to: EventIndex) {
        self.push(from, to, false);
    }

    fn push(&mut self, from: Option<EventIndex>, to: EventIndex, observed: bool) {
        let thread = |event: EventIndex| self.trace.event(event).thread;
        if let Some(from) = from.filter(|&from| thread(from) != thread(to)) {
            self.edges.push(Edge { from, to, observed });
        }
    }

    /// A wait takes the oldest post that nobody has taken; before there is any, it took what the semaphore had
    /// at the start.
    fn semaphore(&mut self, index: EventIndex, event: &Event, done: bool) {
        let semaphore = self.semaphores.entry(event.object).or_default();
        if event.kind == EventKind::SemPost {
            semaphore.posts.push(index);
        } else if done {
            let post = semaphore.posts.get(semaphore.taken).copied();
            semaphore.taken += usize::from(post.is_some());
            self.edge(post, index);
        }
    }

    fn arrive(&mut self, index: EventIndex, object: ObjectIndex) {
        let barrier = self.barriers.entry(object).or_default();
        barrier.arrived.push(index);
    }

    /// The first to leave shows that the barrier was full.
    fn leave(&mut self, index: EventIndex, object: ObjectIndex) {
        let barrier = self.barriers.entry(object).or_default();
        let thread = self.trace.event(index).thread;
        let mine = |&arrival: &EventIndex| self.trace.event(arrival).thread == thread;
        if barrier.arrived.iter().any(mine) {
            barrier.leaving = std::mem::take(&mut barrier.arrived);
        }
        for arrival in barrier.leaving.clone() {
            self.edge(Some(arrival), index);
        }
    }

    /// Objects with a state of their own keep the order of everything done to them, and a try that found a lock
    /// taken keeps who had taken it.
    fn keep_as_observed(&mut self, index: EventIndex, event: &Event) {
        let done = event.outcome == Outcome::Done;
        let takes_lock = matches!(event.kind.lock_effect(), Some(LockEffect::Acquires { .. }));
        let is_failed_try = takes_lock && !done;
        if event.kind.is_stateful() || is_failed_try {
            self.push(self.chain.get(&event.object).copied(), index, true);
        }
        if event.kind.is_stateful() || (takes_lock && done) {
            self.chain.insert(event.object, index);
        }
    }
}
