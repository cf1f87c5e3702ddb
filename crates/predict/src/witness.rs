//! The witness check: is a generated schedule one that could happen?
//!
//! One pass that shares nothing with how schedules are generated. What fails it is a mistake of ours and is not
//! run.

use std::fmt;

use threadbare_trace::EventKind;

use crate::hash::FastMap;
use crate::history::History;
use crate::schedule::Target;

/// How much a schedule that passed is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every read sees the write that it saw in the trace, up to where it no longer matters: the threads are bound
    /// to do just this.
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
    OutOfThreadOrder(u32),
    /// An event comes before one that lets it go on.
    TooEarly(u32),
    /// An event takes a lock that another thread holds.
    LockHeld(u32),
    /// The target is not reached: this event is not where it should be.
    NotThere(u32),
}

/// Checks a schedule for `target`.
pub fn check(history: &History<'_>, schedule: &[u32], target: &Target) -> Result<Verdict, Impossible> {
    let position = positions(history, schedule)?;
    check_order(history, schedule, &position)?;
    check_locks(history, schedule)?;
    check_target(history, schedule, target, &position)?;
    let kept = keeps_reads(history, schedule, target) && keeps_observed(history, &position);
    Ok(if kept { Verdict::Witnessed } else { Verdict::Possible })
}

/// Where each event is in the schedule, if every thread's events are the first of what it did, in order.
fn positions(history: &History<'_>, schedule: &[u32]) -> Result<FastMap<u32, usize>, Impossible> {
    let mut done = vec![0; history.threads()];
    let mut position = FastMap::default();
    for (at, &event) in schedule.iter().enumerate() {
        let done = &mut done[history.thread(event) as usize];
        if history.local(event) != *done {
            return Err(Impossible::OutOfThreadOrder(event));
        }
        *done += 1;
        position.insert(event, at);
    }
    Ok(position)
}

fn check_order(
    history: &History<'_>,
    schedule: &[u32],
    position: &FastMap<u32, usize>,
) -> Result<(), Impossible> {
    for edge in history.edges().iter().filter(|edge| !edge.observed) {
        let Some(to) = position.get(&edge.to) else { continue };
        if !position.get(&edge.from).is_some_and(|from| from < to) {
            return Err(Impossible::TooEarly(schedule[*to]));
        }
    }
    Ok(())
}

fn check_locks(history: &History<'_>, schedule: &[u32]) -> Result<(), Impossible> {
    let mut acquires = FastMap::default();
    let mut releases = FastMap::default();
    for section in history.locksets().sections() {
        acquires.insert(section.acquire, section);
        releases.extend(section.release.map(|release| (release, section)));
    }
    let mut holders: FastMap<u32, Vec<(u32, bool)>> = FastMap::default();
    for event in schedule {
        if let Some(section) = acquires.get(event) {
            let holders = holders.entry(section.held.lock).or_default();
            if holders.iter().any(|&(_, shared)| !(shared && section.held.shared)) {
                return Err(Impossible::LockHeld(*event));
            }
            holders.push((section.thread, section.held.shared));
        } else if let Some(section) = releases.get(event) {
            let holders = holders.entry(section.held.lock).or_default();
            holders.retain(|&(thread, _)| thread != section.thread);
        }
    }
    Ok(())
}

/// The events that are to stand are next in their threads when the sequence begins, and the sequence is there, in
/// order, and at the end if it has to be without interruption.
fn check_target(
    history: &History<'_>,
    schedule: &[u32],
    target: &Target,
    position: &FastMap<u32, usize>,
) -> Result<(), Impossible> {
    let mut last = None;
    for event in &target.sequence {
        let at = position.get(event).copied();
        if at.is_none() || at <= last {
            return Err(Impossible::NotThere(*event));
        }
        last = at;
    }
    let start = if target.sequence.is_empty() { schedule.len() } else { schedule.len() - target.sequence.len() };
    for &event in &target.stand {
        let thread = history.thread(event);
        let before = schedule[..start].iter().filter(|&&other| history.thread(other) == thread).count();
        if before != history.local(event) as usize {
            return Err(Impossible::NotThere(event));
        }
    }
    Ok(())
}

/// Every read sees what it saw. If the last thing that a thread does is a read of the anomaly, what it sees changes
/// nothing any more.
fn keeps_reads(history: &History<'_>, schedule: &[u32], target: &Target) -> bool {
    let mut last_of_thread = vec![None; history.threads()];
    for &event in schedule {
        last_of_thread[history.thread(event) as usize] = Some(event);
    }
    let is_last = |event: u32| {
        target.sequence.contains(&event) && last_of_thread[history.thread(event) as usize] == Some(event)
    };
    let horizon = schedule.iter().max().map_or(0, |last| last + 1);
    let as_observed = writers(history, 0..horizon);
    let as_scheduled = writers(history, schedule.iter().copied());
    as_scheduled.iter().all(|(event, writer)| is_last(*event) || as_observed.get(event) == Some(writer))
}

/// For each read, the event that last wrote to a byte of its variable. (For variables of several parts this asks for
/// more than is needed.)
fn writers(history: &History<'_>, events: impl Iterator<Item = u32>) -> FastMap<u32, Option<u32>> {
    use EventKind::{AtomicLoad, AtomicRmw, Read};
    let mut last = FastMap::default();
    let mut seen = FastMap::default();
    for event in events {
        let kind = history.event(event).kind;
        if !kind.is_access() {
            continue;
        }
        let variable = history.variable(event);
        if matches!(kind, Read | AtomicLoad | AtomicRmw) || history.variables().is_mixed(variable) {
            seen.insert(event, last.get(&variable).copied());
        }
        if history.writes(event) {
            last.insert(variable, event);
        }
    }
    seen
}

/// Objects with a state of their own go through the same states.
fn keeps_observed(history: &History<'_>, position: &FastMap<u32, usize>) -> bool {
    let kept = |from: u32, to: usize| position.get(&from).is_some_and(|&from| from < to);
    let observed = history.edges().iter().filter(|edge| edge.observed);
    observed.filter_map(|edge| Some((edge.from, *position.get(&edge.to)?))).all(|(from, to)| kept(from, to))
}
