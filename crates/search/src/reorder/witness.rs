//! The witness check: is a generated schedule one that could happen?
//!
//! One pass that shares nothing with how schedules are generated but [`reads`](super::reads), what the trace says of
//! memory. What fails it is a mistake of ours and is not run.

use std::fmt;
use std::sync::Arc;

use threadbare_trace::{EventIndex, LockEffect, ObjectIndex, Outcome, ThreadIndex};

use super::communication::Edge;
use super::history::{History, LocalIndex};
use super::reads::{Memory, Reads};
use super::schedule::Target;
use rustc_hash::FxHashMap as FastMap;

/// How much a schedule that passed is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every read sees the write that it saw in the trace, or the same value, up to where it no longer matters: the
    /// threads are bound to do just this.
    Witnessed,
    /// Some thread reads something else and may go another way.
    Possible,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Witnessed => "witnessed",
            Verdict::Possible => "possible",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a schedule cannot happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// An event comes before an earlier one of its thread.
    OutOfThreadOrder(EventIndex),
    /// An event comes before one that lets it go on.
    TooEarly(EventIndex),
    /// An event takes a lock that another thread holds.
    LockHeld(EventIndex),
    /// The target is not reached: this event is not where it should be.
    NotThere(EventIndex),
}

/// Checks schedules of one trace.
#[derive(Debug)]
pub struct Checker {
    history: Arc<History>,
    reads: Arc<Reads>,
}

impl Checker {
    pub fn new(history: Arc<History>, reads: Arc<Reads>) -> Checker {
        Checker { history, reads }
    }

    /// Checks a schedule for `target`.
    pub fn check(&self, schedule: &[EventIndex], target: &Target) -> Result<Verdict, Impossible> {
        let history = &self.history;
        let positions = Positions::of(history, schedule)?;
        check_order(history, &positions)?;
        check_locks(history, schedule)?;
        check_target(history, schedule, target, &positions)?;
        let kept = self.keeps_reads(schedule, target) && keeps_observed(history, &positions);
        Ok(if kept { Verdict::Witnessed } else { Verdict::Possible })
    }

    /// Every read sees what it saw. If the last thing that a thread does is a read of the anomaly, what it sees
    /// changes nothing any more.
    fn keeps_reads(&self, schedule: &[EventIndex], target: &Target) -> bool {
        let thread = |event: EventIndex| self.history.thread(event).index();
        let mut last_of_thread = vec![None; self.history.threads()];
        for &event in schedule {
            last_of_thread[thread(event)] = Some(event);
        }
        let no_longer_matters = |event: EventIndex| {
            target.sequence.contains(&event) && last_of_thread[thread(event)] == Some(event)
        };
        let mut memory = Memory::new(&self.history);
        schedule.iter().all(|&event| {
            let same = self.reads.is_same(&memory, event);
            memory.step(event);
            same || no_longer_matters(event)
        })
    }
}

/// Where each event is in the schedule.
struct Positions(Vec<u32>);

/// The event is not in the schedule.
const NOWHERE: u32 = u32::MAX;

impl Positions {
    /// An error if the events of a thread are not its first ones, or not in their order.
    fn of(history: &History, schedule: &[EventIndex]) -> Result<Positions, Impossible> {
        let mut done = vec![LocalIndex::default(); history.threads()];
        let mut positions = vec![NOWHERE; end(schedule)];
        for (at, &event) in schedule.iter().enumerate() {
            let done = &mut done[history.thread(event).index()];
            if history.local(event) != *done {
                return Err(Impossible::OutOfThreadOrder(event));
            }
            *done = done.next();
            positions[event.index()] = at as u32;
        }
        Ok(Positions(positions))
    }

    fn get(&self, event: EventIndex) -> Option<u32> {
        self.0.get(event.index()).copied().filter(|&position| position != NOWHERE)
    }

    /// If `to` happens, then after `from`.
    fn keeps(&self, edge: &Edge) -> bool {
        self.get(edge.to).is_none_or(|to| self.get(edge.from).is_some_and(|from| from < to))
    }
}

/// One more than the last event of the trace that is in the schedule.
fn end(schedule: &[EventIndex]) -> usize {
    schedule.iter().max().map_or(0, |last| last.index() + 1)
}

fn check_order(history: &History, positions: &Positions) -> Result<(), Impossible> {
    let broken = history.edges().iter().find(|edge| !edge.observed && !positions.keeps(edge));
    broken.map_or(Ok(()), |edge| Err(Impossible::TooEarly(edge.to)))
}

/// A thread that holds a lock, whether it only reads, and how often it took it.
struct Holder {
    thread: ThreadIndex,
    shared: bool,
    depth: u32,
}

fn check_locks(history: &History, schedule: &[EventIndex]) -> Result<(), Impossible> {
    let mut locks: FastMap<ObjectIndex, Vec<Holder>> = FastMap::default();
    for &index in schedule {
        let event = history.event(index);
        if event.outcome != Outcome::Done {
            continue;
        }
        match event.kind.lock_effect() {
            Some(LockEffect::Acquires { shared }) => {
                let holders = locks.entry(event.object).or_default();
                if let Some(mine) = holders.iter_mut().find(|holder| holder.thread == event.thread) {
                    mine.depth += 1;
                } else if holders.iter().all(|holder| holder.shared && shared) {
                    holders.push(Holder { thread: event.thread, shared, depth: 1 });
                } else {
                    return Err(Impossible::LockHeld(index));
                }
            }
            Some(LockEffect::Releases { .. }) => {
                let holders = locks.entry(event.object).or_default();
                if let Some(at) = holders.iter().position(|holder| holder.thread == event.thread) {
                    holders[at].depth -= 1;
                    if holders[at].depth == 0 {
                        holders.swap_remove(at);
                    }
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// The events that are to stand are next in their threads when the sequence begins, and the sequence is there, in
/// order, and at the end if it has to be without interruption.
fn check_target(
    history: &History,
    schedule: &[EventIndex],
    target: &Target,
    positions: &Positions,
) -> Result<(), Impossible> {
    let mut last = None;
    for &event in &target.sequence {
        let at = positions.get(event);
        if at.is_none() || at <= last {
            return Err(Impossible::NotThere(event));
        }
        last = at;
    }
    let start = schedule.len() - target.sequence.len();
    for &event in &target.stand {
        let events = history.events_of(history.thread(event));
        let local = history.local(event).index();
        let before = |event: EventIndex| positions.get(event).is_some_and(|at| (at as usize) < start);
        if before(event) || (local > 0 && !before(events[local - 1])) {
            return Err(Impossible::NotThere(event));
        }
    }
    Ok(())
}

/// Objects with a state of their own go through the same states.
fn keeps_observed(history: &History, positions: &Positions) -> bool {
    history.edges().iter().filter(|edge| edge.observed).all(|edge| positions.keeps(edge))
}
