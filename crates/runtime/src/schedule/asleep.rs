//! Threads that a plan has put to sleep (sleep sets).
//!
//! A thread that is asleep could go on, but what it would do next was tried before. It wakes when another thread does
//! something that its operation cannot change places with: from then on its operation means something else.

use threadbare_trace::{Deed, Policy, Sleeper, ThreadIndex, touches};

use crate::entry::log::Entry;

/// The threads that are asleep.
#[derive(Default)]
pub struct Asleep {
    sleepers: Vec<Sleeper>,
    /// The first turn that can wake them.
    from: u64,
}

impl Asleep {
    pub fn new(policy: &Policy) -> Asleep {
        match policy {
            Policy::Awake { asleep, from } => Asleep { sleepers: asleep.clone(), from: *from },
            _ => Asleep::default(),
        }
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.sleepers.is_empty()
    }

    pub fn contains(&self, thread: ThreadIndex) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.thread == thread)
    }

    /// Thread `me` does this in turn number `turn`: wakes whoever it concerns.
    #[cold]
    pub fn event(&mut self, me: ThreadIndex, turn: u64, entry: &Entry) {
        if turn < self.from {
            return;
        }
        let &Entry { kind, outcome, object, size, value, .. } = entry;
        for touch in touches(&Deed { thread: me, kind, outcome, object, size, value }) {
            self.sleepers.retain(|sleeper| !sleeper.touches.iter().any(|other| other.conflicts(&touch)));
        }
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::{EventKind, touches};

    use super::*;

    /// A thread sleeps until something happens that it would notice, and not before the plan has led to the place from
    /// which it sleeps.
    #[test]
    fn a_sleeper_wakes_by_what_concerns_it() {
        let [one, other] = [1, 2].map(ThreadIndex::new);
        let read = Entry::new(EventKind::Read, 0, 64).size(8);
        let deed = Deed {
            thread: one,
            kind: read.kind,
            outcome: read.outcome,
            object: read.object,
            size: read.size,
            value: 0,
        };
        let sleeper = Sleeper { thread: one, touches: touches(&deed).collect() };
        let mut asleep = Asleep::new(&Policy::Awake { asleep: vec![sleeper], from: 5 });
        let write = |at| Entry::new(EventKind::Write, 0, at).size(4);
        asleep.event(other, 4, &write(64));
        asleep.event(other, 5, &read);
        asleep.event(other, 6, &write(60));
        assert!(asleep.contains(one));
        asleep.event(other, 7, &write(68));
        assert!(asleep.is_empty());
    }
}
