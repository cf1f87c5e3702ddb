//! Threads that a plan has put to sleep (sleep sets).
//!
//! A thread that is asleep could go on, but what it would do next was tried before. It wakes when another thread does
//! something that its operation cannot change places with: from then on its operation means something else.
//!
//! If all that the other did was to go round in vain ([`spinning`](super::spinning)), that was nothing, and it sleeps on.

use threadbare_trace::{Deed, Policy, Sleeper, ThreadIndex, Touch, touches};

use crate::entry::log::Entry;

/// The threads that are asleep.
#[derive(Default)]
pub struct Asleep {
    sleepers: Vec<Sleeper>,
    /// Threads that were woken by looks, each of a thread in a turn, which may yet turn out to be in vain.
    stirred: Vec<(Sleeper, Vec<(ThreadIndex, u64)>)>,
    /// The first turn that can wake them.
    from: u64,
}

impl Asleep {
    pub fn new(policy: &Policy) -> Asleep {
        match policy {
            Policy::Awake { asleep, from } => {
                Asleep { sleepers: asleep.clone(), stirred: Vec::new(), from: *from }
            }
            _ => Asleep::default(),
        }
    }

    pub fn contains(&self, thread: ThreadIndex) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.thread == thread)
    }

    /// Thread `me` does this in turn number `turn`: wakes whoever it concerns.
    pub fn event(&mut self, me: ThreadIndex, turn: u64, entry: &Entry, has_only_looked: bool) {
        if turn < self.from || self.sleepers.is_empty() && self.stirred.is_empty() {
            return;
        }
        let &Entry { kind, outcome, object, size, value, .. } = entry;
        let done: Vec<Touch> = touches(&Deed { thread: me, kind, outcome, object, size, value }).collect();
        let concerns = |sleeper: &Sleeper| {
            done.iter().any(|touch| sleeper.touches.iter().any(|other| other.conflicts(touch)))
        };
        if !has_only_looked {
            // What it looked at before is part of something now.
            self.sleepers.retain(|sleeper| !concerns(sleeper));
            let is_mine = |&(by, _): &(ThreadIndex, u64)| by == me;
            self.stirred.retain(|(sleeper, by)| !by.iter().any(is_mine) && !concerns(sleeper));
            return;
        }
        for (_, by) in self.stirred.iter_mut().filter(|(sleeper, _)| concerns(sleeper)) {
            by.push((me, turn));
        }
        let woken = self.sleepers.extract_if(.., |sleeper| concerns(sleeper));
        self.stirred.extend(woken.map(|sleeper| (sleeper, vec![(me, turn)])));
    }

    /// The looks of thread `me` from turn `since` on were in vain.
    pub fn went_round_in_vain(&mut self, me: ThreadIndex, since: u64) {
        let is_in_vain = |&(by, turn): &(ThreadIndex, u64)| by == me && turn >= since;
        self.stirred.iter_mut().for_each(|(_, by)| by.retain(|by| !is_in_vain(by)));
        let again = self.stirred.extract_if(.., |(_, by)| by.is_empty());
        self.sleepers.extend(again.map(|(sleeper, _)| sleeper));
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
        asleep.event(other, 4, &write(64), false);
        asleep.event(other, 5, &read, true);
        asleep.event(other, 6, &write(60), false);
        assert!(asleep.contains(one));
        asleep.event(other, 7, &write(68), false);
        assert!(!asleep.contains(one));
    }

    /// A sleeper that would write sleeps on when all that was read in its way was read in vain.
    #[test]
    fn a_round_in_vain_wakes_nobody() {
        let [one, other, third] = [1, 2, 3].map(ThreadIndex::new);
        let touches = touches(&Deed {
            thread: one,
            kind: EventKind::Write,
            outcome: threadbare_trace::Outcome::Done,
            object: 64,
            size: 8,
            value: 0,
        });
        let sleeper = Sleeper { thread: one, touches: touches.collect() };
        let mut asleep = Asleep::new(&Policy::Awake { asleep: vec![sleeper], from: 0 });
        let read = Entry::new(EventKind::Read, 0, 64).size(8);
        asleep.event(other, 0, &read, true);
        assert!(!asleep.contains(one));
        asleep.event(third, 1, &read, true);
        asleep.went_round_in_vain(other, 0);
        assert!(!asleep.contains(one), "the third thread has read it too");
        asleep.went_round_in_vain(third, 1);
        assert!(asleep.contains(one));
        asleep.event(other, 2, &read, true);
        asleep.went_round_in_vain(other, 3);
        assert!(!asleep.contains(one), "the read was before that round");
        asleep.event(other, 3, &Entry::new(EventKind::Write, 0, 128).size(8), false);
        asleep.went_round_in_vain(other, 2);
        assert!(!asleep.contains(one), "the read led to something");
    }
}
