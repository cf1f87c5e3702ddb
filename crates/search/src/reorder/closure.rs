//! Sound prediction: which events can be next at the same time, in a run that keeps the order of critical sections.
//!
//! Not in the paper, and computed before its wider search: what is found here needs no second run to be true. A set
//! of events that is closed under [`Dependence`], and in which of two critical sections of one lock the earlier is
//! over, can be run in the order it had in the trace, and every read in it sees the write it saw. An event that
//! comes directly after such a set in its thread can be next; two of them, at the same time.

use threadbare_trace::{EventIndex, ObjectIndex, ThreadIndex, index_types};

use super::dependence::{Dependence, Prefix};
use super::history::{History, LocalIndex};

index_types! {
    /// A lock that more than one thread takes, as an index into the locks of a [`Closure`].
    SharedLock;
    /// A thread that takes a shared lock, as an index into the threads that do.
    LockUser;
}

/// The critical sections of the locks that more than one thread takes.
#[derive(Debug)]
pub struct Closure {
    dependence: Dependence,
    locks: Vec<LockUse>,
    /// For each thread, where it begins sections of these locks.
    begins: Vec<Vec<Begin>>,
}

#[derive(Debug, Default)]
struct LockUse {
    /// For each thread that takes the lock, its sections in order.
    threads: Vec<(ThreadIndex, Vec<Section>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Begin {
    /// Where the acquisition is among its thread's events.
    local: LocalIndex,
    lock: SharedLock,
    user: LockUser,
}

#[derive(Debug)]
struct Section {
    /// Where the acquisition is among its thread's events.
    local: LocalIndex,
    acquire: EventIndex,
    shared: bool,
    /// The thread's last acquisition that excludes all others, up to this one.
    exclusive: Option<EventIndex>,
    /// Where the thread is after the release, if there is one.
    through: Option<LocalIndex>,
}

impl Closure {
    pub fn of(history: &History) -> Closure {
        let mut by_lock: std::collections::BTreeMap<ObjectIndex, LockUse> = std::collections::BTreeMap::new();
        for section in history.locksets().sections() {
            let lock = by_lock.entry(section.held.lock).or_default();
            let at = match lock.threads.iter().position(|(thread, _)| *thread == section.thread) {
                Some(at) => at,
                None => {
                    lock.threads.push((section.thread, Vec::new()));
                    lock.threads.len() - 1
                }
            };
            let sections = &mut lock.threads[at].1;
            let exclusive = match section.held.shared {
                true => sections.last().and_then(|before| before.exclusive),
                false => Some(section.acquire),
            };
            sections.push(Section {
                local: history.local(section.acquire),
                acquire: section.acquire,
                shared: section.held.shared,
                exclusive,
                through: section.release.map(|release| history.local(release).next()),
            });
        }
        let locks: Vec<LockUse> = by_lock.into_values().filter(|lock| lock.threads.len() > 1).collect();
        let begins = begins(&locks, history.threads());
        Closure { dependence: Dependence::of(history), locks, begins }
    }

    /// The smallest closed prefix after which each of `events` is next in its thread; `None` when there is none.
    pub fn next_together(&self, history: &History, events: &[EventIndex]) -> Option<Prefix> {
        let mut growing = self.nothing();
        growing.stand_before(history, events);
        (growing.close() && !events.iter().any(|&event| growing.contains(history, event)))
            .then_some(growing.prefix)
    }

    pub fn nothing(&self) -> Growing<'_> {
        let cursors = self.locks.iter().map(|lock| vec![0; lock.threads.len()]).collect();
        let threads = self.dependence.threads();
        Growing {
            closure: self,
            prefix: vec![LocalIndex::default(); threads],
            cursors,
            begun: vec![0; threads],
            entered: Vec::new(),
            is_entered: vec![false; self.locks.len()],
        }
    }
}

fn begins(locks: &[LockUse], threads: usize) -> Vec<Vec<Begin>> {
    let mut begins: Vec<Vec<Begin>> = vec![Vec::new(); threads];
    for (lock, uses) in locks.iter().enumerate() {
        for (at, (thread, sections)) in uses.threads.iter().enumerate() {
            let (lock, user) = (SharedLock::at(lock), LockUser::at(at));
            let begin = |section: &Section| Begin { local: section.local, lock, user };
            begins[thread.index()].extend(sections.iter().map(begin));
        }
    }
    begins.iter_mut().for_each(|begins| begins.sort_unstable());
    begins
}

/// A prefix that only grows.
pub struct Growing<'c> {
    closure: &'c Closure,
    prefix: Prefix,
    /// For each lock and thread: sections that are known to have begun.
    cursors: Vec<Vec<usize>>,
    /// For each thread: how many of its sections of any lock are known to have begun.
    begun: Vec<usize>,
    /// Locks of which a section has begun since they were looked at.
    entered: Vec<SharedLock>,
    /// By lock: it is among these.
    is_entered: Vec<bool>,
}

impl Growing<'_> {
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub fn contains(&self, history: &History, event: EventIndex) -> bool {
        history.local(event) < self.prefix[history.thread(event).index()]
    }

    /// Adds what each event's thread did before it, and what lets the event happen.
    pub fn stand_before(&mut self, history: &History, events: &[EventIndex]) {
        let dependence = &self.closure.dependence;
        for &event in events {
            dependence.include(&mut self.prefix, history.thread(event), history.local(event));
            for edge in history.incoming(event) {
                dependence.include(
                    &mut self.prefix,
                    history.thread(edge.from),
                    history.local(edge.from).next(),
                );
            }
        }
    }

    /// Ends critical sections that have to be over, until none is left. `false` when one never ends.
    pub fn close(&mut self) -> bool {
        loop {
            self.enter();
            if self.entered.is_empty() {
                return true;
            }
            while let Some(lock) = self.entered.pop() {
                self.is_entered[lock.index()] = false;
                if self.end_sections(lock).is_none() {
                    return false;
                }
            }
        }
    }

    /// Notes which sections the prefix has come to contain; for locks without any, nothing changes.
    fn enter(&mut self) {
        for ((begins, begun), &end) in self.closure.begins.iter().zip(&mut self.begun).zip(&self.prefix) {
            while let Some(begin) = begins.get(*begun).filter(|begin| begin.local < end) {
                *begun += 1;
                self.cursors[begin.lock.index()][begin.user.index()] += 1;
                if !std::mem::replace(&mut self.is_entered[begin.lock.index()], true) {
                    self.entered.push(begin.lock);
                }
            }
        }
    }

    /// Looks at each thread's last section of the lock. The latest of them may go on, the others have to end first; but
    /// readers do not have to end for readers. `None` when a section that has to end never does.
    fn end_sections(&mut self, lock: SharedLock) -> Option<()> {
        let uses = &self.closure.locks[lock.index()];
        let cursors = &self.cursors[lock.index()];
        let begun = uses.threads.iter().zip(cursors).filter_map(|((_, sections), cursor)| {
            let last = cursor.checked_sub(1)?;
            Some(&sections[last])
        });
        let latest = begun.clone().map(|section| section.acquire).max();
        let latest_exclusive = begun.filter_map(|section| section.exclusive).max();
        for (at, (thread, sections)) in uses.threads.iter().enumerate() {
            let Some(last) = cursors[at].checked_sub(1) else { continue };
            let section = &sections[last];
            let later = if section.shared { latest_exclusive } else { latest };
            if later > Some(section.acquire) {
                self.closure.dependence.include(&mut self.prefix, *thread, section.through?);
            }
        }
        Some(())
    }
}

/// Finds events that can be next at the same time, one from each list (each the events of one thread, in order).
///
/// An event that has to be over before the others can be next cannot be next together with any later ones either,
/// so each list is walked once.
pub fn first_together(
    closure: &Closure,
    history: &History,
    lists: &[&[EventIndex]],
) -> Option<(Vec<EventIndex>, Prefix)> {
    let mut growing = closure.nothing();
    let mut places = vec![0; lists.len()];
    loop {
        let events: Option<Vec<EventIndex>> =
            lists.iter().zip(&places).map(|(list, &place): (_, &usize)| list.get(place).copied()).collect();
        let events = events?;
        growing.stand_before(history, &events);
        if !growing.close() {
            return None;
        }
        let mut moved = false;
        for ((list, place), event) in lists.iter().zip(&mut places).zip(&events) {
            if growing.contains(history, *event) {
                let end = growing.prefix[history.thread(*event).index()];
                *place += list[*place..].partition_point(|&event| history.local(event) < end);
                moved = true;
            }
        }
        if !moved {
            return Some((events, growing.prefix));
        }
    }
}
