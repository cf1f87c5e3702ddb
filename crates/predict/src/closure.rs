//! Sound prediction: which events can be next at the same time, in a run that keeps the order of critical sections.
//!
//! Not in the paper, and computed before its wider search: what is found here needs no second run to be true. A set
//! of events that is closed under [`Dependence`], and in which of two critical sections of one lock the earlier is
//! over, can be run in the order it had in the trace, and every read in it sees the write it saw. An event that
//! comes directly after such a set in its thread can be next; two of them, at the same time.

use crate::dependence::{Dependence, Prefix};
use crate::history::History;

/// The critical sections of the locks that more than one thread takes.
#[derive(Debug)]
pub struct Closure {
    dependence: Dependence,
    locks: Vec<LockUse>,
}

#[derive(Debug, Default)]
struct LockUse {
    /// For each thread that takes the lock, its sections in order.
    threads: Vec<(u32, Vec<Section>)>,
    /// For each of these threads, the acquisitions that exclude all others, as (place among its events, event).
    exclusive: Vec<Vec<(u32, u32)>>,
}

#[derive(Debug)]
struct Section {
    /// Place of the acquisition among its thread's events.
    local: u32,
    acquire: u32,
    shared: bool,
    /// How many events of the thread there are up to and with the release.
    through: Option<u32>,
}

impl Closure {
    pub fn of(history: &History<'_>) -> Closure {
        let mut by_lock: std::collections::BTreeMap<u32, LockUse> = std::collections::BTreeMap::new();
        for section in history.locksets().sections() {
            let lock = by_lock.entry(section.held.lock).or_default();
            let at = match lock.threads.iter().position(|(thread, _)| *thread == section.thread) {
                Some(at) => at,
                None => {
                    lock.threads.push((section.thread, Vec::new()));
                    lock.exclusive.push(Vec::new());
                    lock.threads.len() - 1
                }
            };
            let local = history.local(section.acquire);
            lock.threads[at].1.push(Section {
                local,
                acquire: section.acquire,
                shared: section.held.shared,
                through: section.release.map(|release| history.local(release) + 1),
            });
            if !section.held.shared {
                lock.exclusive[at].push((local, section.acquire));
            }
        }
        let locks = by_lock.into_values().filter(|lock| lock.threads.len() > 1).collect();
        Closure { dependence: Dependence::of(history), locks }
    }

    /// The smallest closed prefix after which each of `events` is next in its thread; `None` when there is none.
    pub fn next_together(&self, history: &History<'_>, events: &[u32]) -> Option<Prefix> {
        let mut growing = self.nothing();
        growing.stand_before(history, events);
        (growing.close() && !events.iter().any(|&event| growing.contains(history, event)))
            .then_some(growing.prefix)
    }

    pub fn nothing(&self) -> Growing<'_> {
        let cursors = self.locks.iter().map(|lock| vec![0; lock.threads.len()]).collect();
        Growing { closure: self, prefix: vec![0; self.dependence.threads()], cursors }
    }
}

/// A prefix that only grows.
pub struct Growing<'c> {
    closure: &'c Closure,
    prefix: Prefix,
    /// For each lock and thread: sections that are known to have begun.
    cursors: Vec<Vec<usize>>,
}

impl Growing<'_> {
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub fn contains(&self, history: &History<'_>, event: u32) -> bool {
        history.local(event) < self.prefix[history.thread(event) as usize]
    }

    /// Adds what each event's thread did before it, and what lets the event happen.
    pub fn stand_before(&mut self, history: &History<'_>, events: &[u32]) {
        let dependence = &self.closure.dependence;
        for &event in events {
            dependence.include(&mut self.prefix, history.thread(event), history.local(event));
            for edge in history.incoming(event) {
                dependence.include(&mut self.prefix, history.thread(edge.from), history.local(edge.from) + 1);
            }
        }
    }

    /// Ends critical sections that have to be over, until none is left. `false` when one never ends.
    pub fn close(&mut self) -> bool {
        loop {
            let mut grew = false;
            for lock in 0..self.closure.locks.len() {
                match self.end_sections(lock) {
                    Some(more) => grew |= more,
                    None => return false,
                }
            }
            if !grew {
                return true;
            }
        }
    }

    /// Of each thread's last section of the lock, all but the latest have to be over; readers may stay together.
    /// `None` when a section that has to end never does, otherwise whether the prefix grew.
    fn end_sections(&mut self, lock: usize) -> Option<bool> {
        let uses = &self.closure.locks[lock];
        let (mut latest, mut latest_exclusive) = (None, None);
        for (at, (thread, sections)) in uses.threads.iter().enumerate() {
            let count = self.prefix[*thread as usize];
            let cursor = &mut self.cursors[lock][at];
            *cursor += sections[*cursor..].partition_point(|section| section.local < count);
            let Some(last) = cursor.checked_sub(1) else { continue };
            latest = latest.max(Some(sections[last].acquire));
            let begun = uses.exclusive[at].partition_point(|&(local, _)| local < count);
            latest_exclusive =
                latest_exclusive.max(begun.checked_sub(1).map(|last| uses.exclusive[at][last].1));
        }
        let mut grew = false;
        for (at, (thread, sections)) in uses.threads.iter().enumerate() {
            let Some(last) = self.cursors[lock][at].checked_sub(1) else { continue };
            let section = &sections[last];
            let later = if section.shared { latest_exclusive } else { latest };
            if later > Some(section.acquire) {
                grew |= self.closure.dependence.include(&mut self.prefix, *thread, section.through?);
            }
        }
        Some(grew)
    }
}

/// Finds events that can be next at the same time, one from each list (each the events of one thread, in order).
///
/// An event that has to be over before the others can be next cannot be next together with any later ones either,
/// so each list is walked once.
pub fn first_together(
    closure: &Closure,
    history: &History<'_>,
    lists: &[&[u32]],
) -> Option<(Vec<u32>, Prefix)> {
    let mut growing = closure.nothing();
    let mut places = vec![0; lists.len()];
    loop {
        let events: Option<Vec<u32>> =
            lists.iter().zip(&places).map(|(list, &place): (_, &usize)| list.get(place).copied()).collect();
        let events = events?;
        growing.stand_before(history, &events);
        if !growing.close() {
            return None;
        }
        let mut moved = false;
        for ((list, place), event) in lists.iter().zip(&mut places).zip(&events) {
            if growing.contains(history, *event) {
                let thread = history.thread(*event) as usize;
                let count = growing.prefix[thread];
                *place += list[*place..].partition_point(|&event| history.local(event) < count);
                moved = true;
            }
        }
        if !moved {
            return Some((events, growing.prefix));
        }
    }
}
