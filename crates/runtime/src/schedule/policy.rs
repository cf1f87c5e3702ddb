//! Who runs when a plan no longer forces it: the choice that each policy makes.
//!
//! Policies live in the runtime because they choose at every event. A search that chooses between whole schedules is
//! outside, in the tool.

use threadbare_trace::{End, EventKind, Order, Others, Policy, Sleeper, ThreadId, ThreadIndex};

use super::ending::finish;
use super::follower::Follower;
use super::scheduler::{Scheduler, current};
use crate::entry::log;
use crate::hash::mix;

/// A thread that has done so many operations while others could run gives way: it may be spinning until another thread
/// does something. That holds for the policies that would let it run on: in order, by priority, or until it blocks. The
/// others (random, partial order, weighted) draw at every operation, so a thread that spins does not keep the rest
/// waiting.
const STREAK: u64 = 1000;
/// In a random schedule, one in so many choices lets a wait time out though other threads can run.
const EARLY_TIMEOUT: u64 = 8;
/// Where a plan allows spurious wake-ups, one in so many choices tries one.
const SPURIOUS: u64 = 4;
/// Below every priority that a thread begins with.
pub const LOWEST: u64 = 1 << 32;

/// The priority that `order` gives to a thread; what it does not name is equal.
fn priority_in(order: &Order, id: &ThreadId) -> u64 {
    match order.first.iter().position(|thread| thread == id) {
        _ if order.last.as_ref() == Some(id) => LOWEST,
        Some(place) => u64::MAX - place as u64,
        None => 1 << 63,
    }
}

impl Follower {
    fn priority(&mut self, index: ThreadIndex, id: &ThreadId) -> u64 {
        let index = self.place_for(index);
        if self.priorities[index] == 0 {
            self.priorities[index] = match &self.plan.policy {
                Policy::Ordered(order) => priority_in(order, id),
                _ => {
                    let path = id.path().iter().map(|&part| u64::from(part));
                    mix([self.random.0].into_iter().chain(path)) | 1 << 63
                }
            };
        }
        self.priorities[index]
    }

    /// Makes room for the priority of thread `index`.
    fn place_for(&mut self, index: ThreadIndex) -> usize {
        let index = index.index();
        if self.priorities.len() <= index {
            self.priorities.resize(index + 1, 0);
        }
        index
    }

    fn make_lowest(&mut self, index: ThreadIndex) {
        let index = self.place_for(index);
        self.lowest -= 1;
        self.priorities[index] = self.lowest;
    }
}

impl Scheduler {
    /// A thread that may be able to run, by the policy; `None` when there is none.
    pub fn pick_by_policy(&mut self) -> Option<ThreadIndex> {
        if !self.follower.free {
            self.follower.free = true;
            self.find_ready();
        }
        if self.ready.is_empty() {
            return None;
        }
        if self.follower.sleeps_are_too_long()
            && let Some(index) = self.end_longest_sleep()
        {
            return Some(index);
        }
        if matches!(self.follower.plan.policy, Policy::Awake { .. }) {
            return self.pick_awake();
        }
        let fair = self.follower.must_be_fair();
        if fair || matches!(self.follower.plan.policy, Policy::Random { .. }) {
            return self.pick_randomly();
        }
        let gives_way = self.current_gives_way();
        match &self.follower.plan.policy {
            Policy::Priorities { .. } | Policy::Ordered(_) => self.pick_by_priority(gives_way),
            Policy::PartialOrder { .. } => self.pick_by_score(),
            Policy::Weighted(weights) => self.pick_by_weight(weights.interesting),
            Policy::Guided(_) => self.pick_by_guidance(gives_way),
            _ if gives_way => self.ready.after(current()),
            _ if self.ready.contains(current()) => Some(current()),
            _ => self.ready.first(),
        }
    }

    /// A thread that is not asleep: the running one, if it need not give way, or else the next. Ends the run when all
    /// that can go on are asleep: every continuation was tried before.
    #[inline(never)]
    fn pick_awake(&mut self) -> Option<ThreadIndex> {
        let (from, gives_way) = (current(), self.current_gives_way());
        let asleep = &self.follower.asleep;
        let may_go = |&index: &ThreadIndex| !asleep.contains(index) && self.can_run(index);
        // Those after the running thread come first, so that threads which all give way take turns.
        let turn = |&index: &ThreadIndex| match index == from && !gives_way {
            true => 0,
            false => 1 + u64::from(index.number().wrapping_sub(from.number()).wrapping_sub(1)),
        };
        let next = self.ready.iter().filter(may_go).min_by_key(turn);
        if next.is_none() {
            self.end_if_asleep();
        }
        if gives_way {
            self.follower.streak = 0;
        }
        next
    }

    /// Ends the run if a thread that is asleep could go on.
    pub fn end_if_asleep(&mut self) {
        let asleep: Vec<ThreadIndex> =
            self.alive.iter().filter(|&index| self.follower.asleep.contains(index)).collect();
        if asleep.into_iter().any(|index| self.can_run(index) || self.may_expire(index)) {
            finish(&End::Diverged { step: 0, reason: Sleeper::ALL_ASLEEP.into() });
        }
    }

    /// Lets the wait with the earliest deadline time out, though other threads can run.
    #[cold]
    fn end_longest_sleep(&mut self) -> Option<ThreadIndex> {
        self.follower.last_expiry = self.follower.operations;
        self.look_outside();
        self.expire_earliest(Scheduler::may_expire_early)
    }

    /// Marks the threads that can run as ready, and no others. So the policy's choices do not depend on whether turns,
    /// steps or a snapshot have led here.
    #[cold]
    fn find_ready(&mut self) {
        for index in self.alive.iter() {
            if self.can_run(index) {
                self.ready.insert(index);
            } else {
                self.ready.remove(index);
            }
        }
    }

    /// The running thread is yielding, or has run for too long.
    fn current_gives_way(&mut self) -> bool {
        log::pending(current()).kind == EventKind::Yield as u8 || self.follower.streak >= STREAK
    }

    #[inline(never)]
    pub fn pick_randomly(&mut self) -> Option<ThreadIndex> {
        if !self.timed.is_empty() && self.follower.random.below(EARLY_TIMEOUT) == 0 {
            let waits = |&index: &ThreadIndex| {
                !self.threads[index].wait.rules().is_sleep
                    && (self.can_run(index) || self.may_expire_early(index))
            };
            let timed: Vec<ThreadIndex> = self.timed.iter().filter(waits).collect();
            if !timed.is_empty() {
                let index = timed[self.follower.random.below(timed.len() as u64) as usize];
                if self.can_run(index) || self.expire(index) {
                    return Some(index);
                }
            }
        }
        if self.follower.outlastings_left() > 0 && self.follower.random.below(EARLY_TIMEOUT) == 0 {
            let sleeping: Vec<ThreadIndex> =
                self.timed.iter().filter(|&index| self.may_be_outlasted(index)).collect();
            if !sleeping.is_empty() {
                let index = sleeping[self.follower.random.below(sleeping.len() as u64) as usize];
                self.outlast(index);
                return Some(index);
            }
        }
        if self.follower.spurious_left() > 0 && self.follower.random.below(SPURIOUS) == 0 {
            let index = ThreadIndex::at(self.follower.random.below(self.threads.len() as u64) as usize);
            if !self.can_run(index) && self.wake_spuriously(index) {
                return Some(index);
            }
        }
        let nth = self.follower.random.below(self.ready.len());
        self.ready.nth(nth)
    }

    #[inline(never)]
    fn pick_by_priority(&mut self, gives_way: bool) -> Option<ThreadIndex> {
        let (changes, others) = match &self.follower.plan.policy {
            Policy::Priorities { changes, .. } => (changes.as_slice(), Others::default()),
            Policy::Ordered(order) => (&[][..], order.others),
            _ => return None,
        };
        let mut demote = gives_way;
        while changes.get(self.follower.change).is_some_and(|&at| at <= self.follower.operations) {
            self.follower.change += 1;
            demote = true;
        }
        if demote {
            self.follower.make_lowest(current());
            self.follower.streak = 0;
        }
        // A thread that sleeps is no different from one that can run, if its sleep may be outlasted.
        let mut sleeping = Vec::new();
        if self.follower.outlastings_left() > 0 {
            sleeping.extend(self.timed.iter().filter(|&index| self.may_be_outlasted(index)));
        }
        let mut best: Option<(u64, ThreadIndex)> = None;
        for index in self.ready.iter().chain(sleeping) {
            let priority = self.follower.priority(index, &self.threads[index].id);
            let id = |index: ThreadIndex| &self.threads[index].id;
            let is_better = best.is_none_or(|(highest, at)| {
                let equals = || others.compare(id(index), id(at)).is_lt();
                priority > highest || priority == highest && equals()
            });
            if is_better {
                best = Some((priority, index));
            }
        }
        let (_, next) = best?;
        if !self.ready.contains(next) {
            self.outlast(next);
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::Plan;

    use super::*;
    use crate::schedule::scheduler::{Operation, announce};
    use crate::schedule::test_support::{FIRST, SECOND, with_threads};

    const MAIN: ThreadIndex = ThreadIndex::MAIN;

    fn plan(policy: Policy) -> Plan {
        Plan { policy, max_events: 1_000_000, ..Plan::default() }
    }

    fn child(number: u32) -> ThreadId {
        ThreadId::main().child(number)
    }

    /// The running thread stands before something other than a yield.
    fn stands_before_lock() {
        announce(MAIN, &Operation::new(EventKind::Lock, 0, 0));
    }

    /// The running thread goes on, and gives way only when it yields or has run for long.
    #[test]
    fn run_to_block() {
        with_threads(3, plan(Policy::RunToBlock), |sched| {
            stands_before_lock();
            assert_eq!(sched.pick_by_policy(), Some(MAIN));
            sched.follower.streak = STREAK;
            assert_eq!(sched.pick_by_policy(), Some(FIRST));
            sched.follower.streak = 0;
            announce(MAIN, &Operation::new(EventKind::Yield, 0, 0));
            assert_eq!(sched.pick_by_policy(), Some(FIRST));
            sched.ready.remove(MAIN);
            assert_eq!(sched.pick_by_policy(), Some(FIRST));
        });
    }

    /// Those that are named first come first, those that are not named in between, and the last one last.
    #[test]
    fn an_order_is_kept() {
        let order = Order { first: vec![child(2)], last: Some(ThreadId::main()), ..Order::default() };
        with_threads(3, plan(Policy::Ordered(order)), |sched| {
            stands_before_lock();
            for next in [SECOND, FIRST, MAIN] {
                assert_eq!(sched.pick_by_policy(), Some(next));
                sched.ready.remove(next);
            }
            assert_eq!(sched.pick_by_policy(), None);
        });
    }

    /// At a change point the running thread falls below all others, once.
    #[test]
    fn a_change_point_demotes_the_running_thread() {
        let policy = Policy::Priorities { seed: 1, changes: vec![5] };
        with_threads(2, plan(policy), |sched| {
            stands_before_lock();
            sched.follower.make_lowest(FIRST);
            assert_eq!(sched.pick_by_policy(), Some(MAIN));
            sched.follower.operations = 5;
            assert_eq!(sched.pick_by_policy(), Some(FIRST));
            sched.ready.remove(FIRST);
            assert_eq!(sched.pick_by_policy(), Some(MAIN));
            sched.ready.insert(FIRST);
            assert_eq!(sched.follower.change, 1);
            assert_eq!(sched.pick_by_policy(), Some(FIRST));
        });
    }

    /// Near the bound of a run any policy is random, so that no thread starves.
    #[test]
    fn the_second_half_is_fair() {
        let order = Order { first: vec![ThreadId::main()], ..Order::default() };
        with_threads(2, plan(Policy::Ordered(order)), |sched| {
            stands_before_lock();
            sched.follower.operations = 500_001;
            sched.follower.last_expiry = 500_001;
            assert!((0..100).any(|_| sched.pick_by_policy() == Some(FIRST)));
        });
    }
}
