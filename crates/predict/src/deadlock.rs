//! Deadlocks that the run almost had: cycles of threads, each of which wants a lock that the next one holds.
//!
//! The paper speaks of accesses only, but its steps serve here too. Acquisitions that are alike are merged into
//! *abstract* ones. A cycle counts only if no lock is held by two of its threads (that would guard it) and if the
//! partial order allows its acquisitions to be next at the same time.

use std::collections::BTreeMap;

use threadbare_trace::{EventIndex, ObjectIndex, ThreadIndex};

use crate::search::independent;
use threadbare_search::reorder::history::{History, Line};
use threadbare_search::reorder::lockset::{Held, Lockset};
use threadbare_search::reorder::order::Segment;

/// Acquisitions of one lock by one thread on one line while it holds the same others.
#[derive(Debug)]
struct AbstractAcquire {
    thread: ThreadIndex,
    wanted: Held,
    held: Lockset,
    line: Line,
    /// In order.
    instances: Vec<EventIndex>,
}

/// A cycle.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// For each thread of the cycle, the acquisitions that may be part of it, in order.
    pub instances: Vec<Vec<EventIndex>>,
    /// One of each, that the partial order allows to be next at the same time.
    pub representative: Vec<EventIndex>,
    /// How many combinations of threads and locks have the same lines.
    pub count: u64,
}

/// Longer cycles are not looked for, and no more than so many of them.
const MAX_CYCLE_LENGTH: usize = 4;
const MAX_CYCLES: usize = 10_000;

/// Cycles, told apart by the lines of their acquisitions (sorted).
pub fn search(history: &History) -> BTreeMap<Vec<Line>, Candidate> {
    let acquires = abstract_acquires(history);
    let mut search = Search {
        history,
        follows: follows(history, &acquires),
        acquires: &acquires,
        cycles: 0,
        found: BTreeMap::new(),
    };
    for start in 0..acquires.len() {
        search.extend(&mut vec![start]);
    }
    search.found
}

fn abstract_acquires(history: &History) -> Vec<AbstractAcquire> {
    let mut merged: BTreeMap<(ThreadIndex, Held, Lockset, Line), Vec<EventIndex>> = BTreeMap::new();
    for section in history.locksets().sections() {
        let held = history.lockset(section.acquire);
        if held != Lockset::EMPTY {
            let key = (section.thread, section.held, held, history.line(section.acquire));
            merged.entry(key).or_default().push(section.acquire);
        }
    }
    let acquire =
        |((thread, wanted, held, line), instances)| AbstractAcquire { thread, wanted, held, line, instances };
    merged.into_iter().map(acquire).collect()
}

/// For each acquisition, those of other threads that hold what it wants and nothing else that it holds.
fn follows(history: &History, acquires: &[AbstractAcquire]) -> Vec<Vec<usize>> {
    let mut holding: BTreeMap<ObjectIndex, Vec<usize>> = BTreeMap::new();
    for (index, acquire) in acquires.iter().enumerate() {
        for held in history.locksets().held(acquire.held) {
            holding.entry(held.lock).or_default().push(index);
        }
    }
    let follows = |acquire: &AbstractAcquire| {
        let holders = holding.get(&acquire.wanted.lock).into_iter().flatten().copied();
        holders.filter(|&other| may_follow(history, acquire, &acquires[other])).collect()
    };
    acquires.iter().map(follows).collect()
}

fn may_follow(history: &History, acquire: &AbstractAcquire, other: &AbstractAcquire) -> bool {
    let locksets = history.locksets();
    let keeps_out = |held: &Held| held.lock == acquire.wanted.lock && !(held.shared && acquire.wanted.shared);
    acquire.thread != other.thread
        && locksets.held(other.held).iter().any(keeps_out)
        && locksets.disjoint(acquire.held, other.held)
}

struct Search<'a> {
    history: &'a History,
    acquires: &'a [AbstractAcquire],
    follows: Vec<Vec<usize>>,
    cycles: usize,
    found: BTreeMap<Vec<Line>, Candidate>,
}

impl Search<'_> {
    /// Follows a path that begins with its lowest member.
    fn extend(&mut self, path: &mut Vec<usize>) {
        let last = path[path.len() - 1];
        for at in 0..self.follows[last].len() {
            let next = self.follows[last][at];
            if next == path[0] && path.len() > 1 {
                self.cycles += 1;
                self.test(path);
            } else if next > path[0] && path.len() < MAX_CYCLE_LENGTH && self.fits(path, next) {
                path.push(next);
                self.extend(path);
                path.pop();
            }
            if self.cycles >= MAX_CYCLES {
                return;
            }
        }
    }

    fn fits(&self, path: &[usize], next: usize) -> bool {
        let next = &self.acquires[next];
        path.iter().map(|&member| &self.acquires[member]).all(|member| {
            member.thread != next.thread
                && member.wanted.lock != next.wanted.lock
                && self.history.locksets().disjoint(member.held, next.held)
        })
    }

    fn test(&mut self, cycle: &[usize]) {
        let members: Vec<&AbstractAcquire> = cycle.iter().map(|&member| &self.acquires[member]).collect();
        let Some(representative) = self.unordered(&members) else { return };
        let mut lines: Vec<Line> = members.iter().map(|member| member.line).collect();
        lines.sort_unstable();
        let candidate = self.found.entry(lines).or_insert_with(|| Candidate {
            instances: members.iter().map(|member| member.instances.clone()).collect(),
            representative,
            count: 0,
        });
        candidate.count += 1;
    }

    /// One instance of each that the partial order allows to be next together.
    fn unordered(&self, members: &[&AbstractAcquire]) -> Option<Vec<EventIndex>> {
        let mut lists: Vec<(Vec<EventIndex>, Vec<Segment>)> = Vec::new();
        for member in members {
            let mut instances = member.instances.clone();
            instances.dedup_by_key(|event| self.history.segment(*event));
            let segments = instances.iter().map(|&event| self.history.segment(event)).collect();
            lists.push((instances, segments));
        }
        let segments: Vec<&[Segment]> = lists.iter().map(|(_, segments)| segments.as_slice()).collect();
        let chosen = independent(self.history.order(), &segments)?;
        Some(lists.iter().zip(chosen).map(|((instances, _), at)| instances[at]).collect())
    }
}
