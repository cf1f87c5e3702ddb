//! What a thread holds between two of its accesses (section 5.2, Algorithm 2).
//!
//! To place another thread's access between two of a unit of work, the unit has to pause somewhere between them
//! where it holds none of the locks that the other needs. A [`Gap`] is all the ways it can pause.

use rustc_hash::FxHashMap as FastMap;
use threadbare_search::reorder::history::History;
use threadbare_search::reorder::lockset::Lockset;
use threadbare_trace::{EventIndex, index_types};

/// The way from one access of a unit of work to the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gap {
    /// Where the unit can pause, latest first. A place where more is held than at a later one is left out.
    pub pauses: Vec<Pause>,
    /// Every lockset on the way, from after the first access up to the second.
    pub way: Vec<Lockset>,
}

/// A place to pause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pause {
    /// What is held there.
    pub held: Lockset,
    /// The locksets from there to the next access.
    pub rest: Vec<Lockset>,
}

index_types! {
    /// A gap, as an index into [`Gaps`].
    GapId;
}

/// Gaps, each stored once.
#[derive(Debug, Default)]
pub struct Gaps {
    gaps: Vec<Gap>,
    index: FastMap<Gap, GapId>,
    /// Gaps in which one lockset is held all the way: nearly all of them.
    constant: FastMap<Lockset, GapId>,
}

/// Only so many acquisitions and releases before the second access are looked at.
const MAX_LOCK_EVENTS: usize = 64;

impl Gaps {
    pub fn get(&self, gap: GapId) -> &Gap {
        &self.gaps[gap.index()]
    }

    /// The gap between two events of one thread.
    pub fn between(&mut self, history: &History, first: EventIndex, second: EventIndex) -> GapId {
        let thread = history.thread(first);
        let locks = history.lock_events(thread, history.local(first), history.local(second));
        let last = history.lockset(second);
        if locks.is_empty() {
            if let Some(&known) = self.constant.get(&last) {
                return known;
            }
            let id = self.id(Gap { pauses: vec![Pause { held: last, rest: vec![last] }], way: vec![last] });
            self.constant.insert(last, id);
            return id;
        }
        let locks = &locks[locks.len().saturating_sub(MAX_LOCK_EVENTS)..];
        let events = history.events_of(thread);
        let mut way = vec![last];
        let mut pauses = vec![Pause { held: last, rest: way.clone() }];
        for &local in locks.iter().rev() {
            let held = history.lockset(events[local.index()]);
            if !way.contains(&held) {
                way.push(held);
            }
            if !pauses.iter().any(|pause| history.locksets().within(pause.held, held)) {
                pauses.push(Pause { held, rest: way.clone() });
            }
        }
        self.id(Gap { pauses, way })
    }

    fn id(&mut self, gap: Gap) -> GapId {
        if let Some(&known) = self.index.get(&gap) {
            return known;
        }
        let id = GapId::at(self.gaps.len());
        self.gaps.push(gap.clone());
        self.index.insert(gap, id);
        id
    }
}
