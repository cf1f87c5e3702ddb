//! Two random policies that weigh threads: partial-order sampling, and the selectively uniform random walk.

use threadbare_trace::{EventKind, ThreadId, ThreadIndex, Weights};
use threadbare_wire::PendingRecord;

use crate::entry::log;
use crate::schedule::bits::Bits;
use crate::schedule::scheduler::Scheduler;
use crate::schedule::thread::Threads;
use threadbare_trace::Random;

fn overlap(one: [u64; 2], other: [u64; 2]) -> bool {
    one[0] < other[0].saturating_add(other[1].max(1)) && other[0] < one[0].saturating_add(one[1].max(1))
}

fn span(operation: &PendingRecord) -> [u64; 2] {
    [operation.object, u64::from(operation.size)]
}

/// The scores of partial-order sampling: one for each thread's next operation. 0 means that it is not drawn yet.
#[derive(Default)]
pub struct Scores(Vec<u64>);

impl Scores {
    fn of(&mut self, index: ThreadIndex, random: &mut Random) -> u64 {
        let index = index.index();
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        if self.0[index] == 0 {
            self.0[index] = random.next() | 1;
        }
        self.0[index]
    }

    /// Thread `index` runs: threads whose next operation conflicts with its own draw again.
    pub fn picked(&mut self, index: ThreadIndex, alive: &Bits) {
        let done = log::pending(index);
        for other in alive.iter() {
            let Some(score) = self.0.get_mut(other.index()) else { break };
            if other == index || *score != 0 && conflict(&done, &log::pending(other)) {
                *score = 0;
            }
        }
    }
}

fn conflict(one: &PendingRecord, other: &PendingRecord) -> bool {
    let reads = |operation: &PendingRecord| {
        matches!(EventKind::from_byte(operation.kind), Some(EventKind::Read | EventKind::AtomicLoad))
    };
    one.object != 0 && overlap(span(one), span(other)) && !(reads(one) && reads(other))
}

/// How far a selectively uniform random walk has come.
#[derive(Default)]
pub struct Walk {
    /// How many interesting accesses are still to come, of threads that are not created yet.
    to_come: Vec<(ThreadId, u64)>,
    /// The same for threads that exist, by index.
    left: Vec<u64>,
    /// The thread that is to do the next interesting access.
    intended: Option<ThreadIndex>,
}

impl Walk {
    pub fn new(weights: &Weights) -> Walk {
        Walk { to_come: weights.counts.clone(), ..Walk::default() }
    }

    /// Takes note of threads that were created.
    fn meet(&mut self, threads: &Threads) {
        for (_, new) in threads.iter().skip(self.left.len()) {
            let known = self.to_come.iter().position(|(thread, _)| *thread == new.id);
            self.left.push(known.map_or(0, |known| self.to_come.swap_remove(known).1));
        }
    }

    /// How many interesting accesses thread `index` has still to do, together with threads that it has yet to create.
    fn weight(&self, index: ThreadIndex, id: &ThreadId) -> u64 {
        let descends = |thread: &ThreadId| thread.path().starts_with(id.path());
        let created = self.to_come.iter().filter(|(thread, _)| descends(thread)).map(|(_, count)| count);
        self.left[index.index()] + created.sum::<u64>()
    }
}

impl Scheduler {
    #[inline(never)]
    pub fn pick_by_score(&mut self) -> Option<ThreadIndex> {
        let follower = &mut self.follower;
        self.ready.iter().max_by_key(|&index| follower.scores.of(index, &mut follower.random))
    }

    /// Any thread, except those that stand before an interesting access that is another thread's turn.
    #[inline(never)]
    pub fn pick_by_weight(&mut self, interesting: [u64; 2]) -> Option<ThreadIndex> {
        self.follower.walk.meet(&self.threads);
        if self.follower.walk.intended.is_none_or(|index| self.threads[index].done) {
            self.follower.walk.intended = self.draw_by_weight();
        }
        let intended = self.follower.walk.intended;
        let counts = |index: ThreadIndex| {
            let pending = log::pending(index);
            EventKind::from_byte(pending.kind).is_some_and(EventKind::is_access)
                && overlap(span(&pending), interesting)
        };
        let free: Vec<ThreadIndex> =
            self.ready.iter().filter(|&index| Some(index) == intended || !counts(index)).collect();
        let among = if free.is_empty() { self.ready.iter().collect() } else { free };
        let next = among[self.follower.random.below(among.len() as u64) as usize];
        let walk = &mut self.follower.walk;
        if counts(next) {
            let left = &mut walk.left[next.index()];
            *left = left.saturating_sub(1);
            walk.intended = None;
        } else if intended == Some(next) && log::pending(next).kind == EventKind::Fork as u8 {
            // What it was intended for may be the new thread's to do.
            walk.intended = None;
        }
        Some(next)
    }

    fn draw_by_weight(&mut self) -> Option<ThreadIndex> {
        let walk = &self.follower.walk;
        let weight = |index: ThreadIndex| (index, walk.weight(index, &self.threads[index].id));
        let weights: Vec<(ThreadIndex, u64)> = self.alive.iter().map(weight).collect();
        let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut drawn = if total == 0 { return None } else { self.follower.random.below(total) };
        let found = weights.into_iter().find(|&(_, weight)| {
            let here = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            here
        });
        found.map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scheduler::{Operation, announce};
    use crate::schedule::test_support::{FIRST, SECOND, with_threads};
    use threadbare_trace::{Plan, Policy};

    fn record(kind: EventKind, object: u64, size: u16) -> PendingRecord {
        PendingRecord {
            thread: 0,
            kind: kind as u8,
            blocked: 0,
            size,
            stack: 0,
            holder: 0,
            pc: 0,
            object,
            condition: [0; 3],
            patience: 0,
        }
    }

    /// Two operations conflict if they use the same memory or object and one of them is no read.
    #[test]
    fn conflicts() {
        let read = record(EventKind::Read, 64, 8);
        assert!(!conflict(&read, &record(EventKind::AtomicLoad, 64, 8)));
        assert!(conflict(&read, &record(EventKind::Write, 71, 1)));
        assert!(!conflict(&read, &record(EventKind::Write, 72, 1)));
        let lock = record(EventKind::Lock, 64, 0);
        assert!(conflict(&lock, &record(EventKind::Unlock, 64, 0)));
        assert!(!conflict(&lock, &record(EventKind::Lock, 65, 0)));
        assert!(!conflict(&record(EventKind::Yield, 0, 0), &record(EventKind::Yield, 0, 0)));
    }

    /// A score holds until its operation is done, or one that conflicts with it.
    #[test]
    fn scores_are_drawn_again() {
        with_threads(3, Plan::default(), |sched| {
            for (thread, object) in [(ThreadIndex::MAIN, 64), (FIRST, 64), (SECOND, 128)] {
                announce(thread, &Operation::new(EventKind::Lock, 0, object));
            }
            let (mut scores, mut random) = (Scores::default(), Random(1));
            let threads = [ThreadIndex::MAIN, FIRST, SECOND];
            let before = threads.map(|thread| scores.of(thread, &mut random));
            assert_eq!(threads.map(|thread| scores.of(thread, &mut random)), before);
            scores.picked(ThreadIndex::MAIN, &sched.alive);
            let after = threads.map(|thread| scores.of(thread, &mut random));
            assert_ne!(after[0], before[0]);
            assert_ne!(after[1], before[1]);
            assert_eq!(after[2], before[2]);
        });
    }

    /// A thread's weight has in it what threads are to do that it has yet to create.
    #[test]
    fn weights_count_descendants() {
        let counts =
            vec![(ThreadId::main(), 1), (ThreadId::main().child(1), 2), (ThreadId::main().child(3), 4)];
        let weights = Weights { counts, ..Weights::default() };
        with_threads(2, Plan::default(), |sched| {
            let mut walk = Walk::new(&weights);
            walk.meet(&sched.threads);
            assert_eq!(walk.weight(ThreadIndex::MAIN, &ThreadId::main()), 1 + 4);
            assert_eq!(walk.weight(FIRST, &ThreadId::main().child(1)), 2);
        });
    }

    /// Before an interesting access, a thread waits for its turn; others go on.
    #[test]
    fn an_access_waits_for_its_turn() {
        let counts = vec![(ThreadId::main().child(1), 1)];
        let weights = Weights { seed: 1, interesting: [64, 8], counts };
        with_threads(3, Plan { policy: Policy::Weighted(weights), ..Plan::default() }, |sched| {
            // SAFETY: the operation is only announced; nobody accesses the memory.
            let access = || unsafe { Operation::access(EventKind::Write, 0, 64, 8) };
            announce(SECOND, &access());
            announce(FIRST, &Operation::new(EventKind::Lock, 0, 0));
            sched.ready.remove(ThreadIndex::MAIN);
            for _ in 0..20 {
                assert_eq!(sched.pick_by_weight([64, 8]), Some(FIRST));
            }
            announce(FIRST, &access());
            assert_eq!(sched.pick_by_weight([64, 8]), Some(FIRST));
        });
    }
}
