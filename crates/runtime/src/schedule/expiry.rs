//! Waits that end by time, by a timer or for no reason, and not by what another thread does.
//!
//! Time passes when nobody can run. A timed wait may also end while others can run, if the schedule says so.

use threadbare_trace::{Outlasting, Span, ThreadIndex};

use super::scheduler::Scheduler;
use crate::time::{alarms, timers};

impl Scheduler {
    /// The thread waits until a time, and could go on if it timed out.
    pub fn may_expire(&self, index: ThreadIndex) -> bool {
        self.threads[index].deadline.is_some() && self.threads[index].wait.may_be_given_up(self, index)
    }

    /// The same, and the plan has not put the thread to sleep.
    pub fn may_expire_awake(&self, index: ThreadIndex) -> bool {
        !self.follower.asleep.contains(index) && self.may_expire(index)
    }

    /// The wait may time out while other threads can run. A wait of more than an hour may not: no machine is so busy
    /// that the others would not have run by then. A sleep may.
    pub fn may_expire_early(&self, index: ThreadIndex) -> bool {
        const HOUR: u64 = 3_600_000_000_000;
        let thread = &self.threads[index];
        let is_near = thread.deadline.is_some_and(|deadline| deadline <= self.now.saturating_add(HOUR));
        (is_near || thread.wait.rules().is_sleep) && self.may_expire(index)
    }

    /// Lets the wait of `index` time out, if it may. A timer may end the wait before that.
    pub fn expire(&mut self, index: ThreadIndex) -> bool {
        let Some(deadline) = self.threads[index].deadline.filter(|_| self.may_expire(index)) else {
            return false;
        };
        if self.run_timers(Some(deadline), |sched| sched.can_run(index).then_some(index)).is_none() {
            let is_early = self.comes_later(index) && !self.follower.is_expiry_overdue();
            self.advance_to(deadline);
            let thread = &mut self.threads[index];
            thread.timed_out = true;
            thread.ended_early = is_early.then(|| Span::of_nanoseconds(thread.patience));
            self.follower.expires();
        }
        self.ready.insert(index);
        true
    }

    /// By time alone another thread goes on before `index`: it can run, or it has an earlier deadline.
    fn comes_later(&self, index: ThreadIndex) -> bool {
        let end = |index: ThreadIndex| (self.threads[index].deadline, index);
        let comes_first =
            |other: ThreadIndex| self.can_run(other) || self.may_expire(other) && end(other) < end(index);
        self.alive.iter().any(|other| other != index && comes_first(other))
    }

    /// Thread `index` sleeps, and the plan lets other threads outlast that.
    pub fn may_be_outlasted(&self, index: ThreadIndex) -> bool {
        let thread = &self.threads[index];
        let Outlasting { longest, .. } = self.follower.plan().outlasting;
        self.follower.outlastings_left() > 0
            && thread.wait.rules().is_sleep
            && thread.patience <= longest
            && !self.can_run(index)
            && self.may_expire(index)
    }

    /// Ends the sleep of `index` though others can run, if it may.
    pub fn outlast(&mut self, index: ThreadIndex) -> bool {
        let may = self.may_be_outlasted(index);
        if may {
            self.follower.outlasts();
            self.expire(index);
        }
        may
    }

    /// Notes that thread `index` begins a sleep which lasts while others can run, though they might outlast it.
    pub fn note_held_sleep(&mut self, index: ThreadIndex) {
        let thread = &self.threads[index];
        let is_held =
            thread.wait.rules().is_sleep && !self.may_be_outlasted(index) && self.comes_later(index);
        if is_held {
            self.follower.holds_sleep(thread.patience);
        }
    }

    /// A wait for a wake-up that the plan lets end without one.
    pub fn may_wake_spuriously(&self, index: ThreadIndex) -> bool {
        let thread = &self.threads[index];
        self.follower.spurious_left() > 0
            && thread.wait.rules().may_be_spurious
            && thread.wait.may_be_given_up(self, index)
    }

    /// Ends the wait of `index` though nobody notified it, if it may.
    pub fn wake_spuriously(&mut self, index: ThreadIndex) -> bool {
        let may = self.may_wake_spuriously(index);
        if may {
            self.follower.wakes_spuriously();
            self.threads[index].woken = true;
            self.ready.insert(index);
        }
        may
    }

    /// Thread `index` can go on, or its wait was made to end. A sleep ends no earlier than by itself,
    /// unless the plan lets it be outlasted.
    pub fn can_be_made_to_run(&mut self, index: ThreadIndex) -> bool {
        self.can_run(index)
            || self.is_ended_by_timer_or_signal(index)
            || !self.sleeps_on(index) && self.expire(index)
            || self.outlast(index)
            || self.wake_spuriously(index)
    }

    /// Thread `index` sleeps, and another thread can run or has an earlier deadline.
    fn sleeps_on(&self, index: ThreadIndex) -> bool {
        self.threads[index].wait.rules().is_sleep
            && !self.follower.sleeps_are_too_long()
            && self.comes_later(index)
    }

    /// Lets the wait with the earliest deadline time out, of those that `may`.
    #[cold]
    pub fn expire_earliest(&mut self, may: fn(&Scheduler, ThreadIndex) -> bool) -> Option<ThreadIndex> {
        let mut waiting: Vec<ThreadIndex> = self.timed.iter().filter(|&index| may(self, index)).collect();
        waiting.sort_by_key(|&index| (self.threads[index].deadline, index));
        waiting.into_iter().find(|&index| self.expire(index))
    }

    /// Virtual time comes to `time`.
    pub fn advance_to(&mut self, time: u64) {
        self.now = self.now.max(time);
        if timers::fire_due(self.now) {
            self.look_outside();
        }
        alarms::fire_due(self);
    }

    /// Lets time pass from timer to timer, up to `limit`, until `found` returns a thread.
    fn run_timers(
        &mut self,
        limit: Option<u64>,
        found: impl Fn(&mut Scheduler) -> Option<ThreadIndex>,
    ) -> Option<ThreadIndex> {
        let next = |sched: &Scheduler| timers::next().into_iter().chain(alarms::next(sched)).min();
        while let Some(next) = next(self).filter(|&next| limit.is_none_or(|limit| next <= limit)) {
            self.advance_to(next);
            let somebody = found(self);
            if somebody.is_some() {
                return somebody;
            }
        }
        None
    }

    /// No thread can run: time passes until a timer ends a wait, but not beyond the earliest deadline of a wait.
    pub fn wake_by_timer(&mut self) -> Option<ThreadIndex> {
        let timed = self.timed.iter().filter(|&index| self.may_expire(index));
        let limit = timed.filter_map(|index| self.threads[index].deadline).min();
        self.run_timers(limit, |sched| {
            let ready = sched.ready.iter().find(|&index| sched.can_run(index));
            ready.or_else(|| sched.interrupt())
        })
    }

    /// A timer or a signal ends the wait of `index`. Neither does while another thread can run, because programs use
    /// them like sleeps.
    fn is_ended_by_timer_or_signal(&mut self, index: ThreadIndex) -> bool {
        let may_be = (timers::are_running() || alarms::are_running() || self.is_due(index))
            && !self.alive.iter().any(|other| self.can_run(other));
        if may_be && self.interrupt().is_none() {
            self.wake_by_timer();
        }
        may_be && self.can_run(index)
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::Plan;

    use super::*;
    use crate::schedule::test_support::{FIRST, SECOND, with_threads};
    use crate::schedule::wait::Wait;

    /// The thread waits, at most until a time.
    fn waits_until(sched: &mut Scheduler, index: ThreadIndex, wait: Wait, deadline: u64) {
        let thread = &mut sched.threads[index];
        (thread.wait, thread.deadline) = (wait, Some(deadline));
        sched.timed.insert(index);
        sched.ready.remove(index);
    }

    /// Deadlines are met in their order, and of two that are the same the older thread's comes first.
    #[test]
    fn the_earliest_deadline_comes_first() {
        with_threads(3, Plan::default(), |sched| {
            waits_until(sched, FIRST, Wait::Join(ThreadIndex::MAIN), 20);
            waits_until(sched, SECOND, Wait::Join(ThreadIndex::MAIN), 10);
            assert_eq!(sched.expire_earliest(Scheduler::may_expire), Some(SECOND));
            assert!(sched.threads[SECOND].timed_out && !sched.threads[FIRST].timed_out);
            assert_eq!(sched.now, 10);
            assert!(sched.can_run(SECOND) && sched.ready.contains(SECOND));
            waits_until(sched, SECOND, Wait::Join(ThreadIndex::MAIN), 20);
            assert_eq!(sched.expire_earliest(Scheduler::may_expire), Some(FIRST));
        });
    }

    /// No machine is so busy that a wait of hours is over before others have run. A sleep may be that long.
    #[test]
    fn only_short_waits_and_sleeps_end_early() {
        const HOURS: u64 = 7_200_000_000_000;
        with_threads(3, Plan::default(), |sched| {
            waits_until(sched, FIRST, Wait::Join(ThreadIndex::MAIN), HOURS);
            waits_until(sched, SECOND, Wait::Sleep, HOURS);
            assert!(!sched.may_expire_early(FIRST) && sched.may_expire(FIRST));
            assert!(sched.may_expire_early(SECOND));
            sched.now = HOURS - 1;
            assert!(sched.may_expire_early(FIRST));
        });
    }

    /// A plan cannot make a thread wake from a sleep while another thread can run.
    #[test]
    fn a_sleep_is_not_cut_short() {
        with_threads(2, Plan::default(), |sched| {
            waits_until(sched, FIRST, Wait::Sleep, 10);
            assert!(!sched.can_be_made_to_run(FIRST));
            sched.threads[ThreadIndex::MAIN].wait = Wait::Join(FIRST);
            assert!(sched.can_be_made_to_run(FIRST));
            assert_eq!(sched.now, 10);
        });
    }

    /// Short sleeps may be outlasted, as often as the plan says; that takes as long as the sleep.
    #[test]
    fn outlasted_sleeps_are_counted() {
        let outlasting = Outlasting { sleeps: 1, longest: 10 };
        with_threads(3, Plan { outlasting, ..Plan::default() }, |sched| {
            for (thread, length) in [(FIRST, 10), (SECOND, 11)] {
                waits_until(sched, thread, Wait::Sleep, length);
                sched.threads[thread].patience = length;
            }
            assert!(!sched.may_be_outlasted(SECOND), "it is too long");
            assert!(sched.can_be_made_to_run(FIRST));
            assert_eq!((sched.now, sched.threads[FIRST].ended_early), (10, Some(Span::of_nanoseconds(10))));
            waits_until(sched, SECOND, Wait::Sleep, 15);
            sched.threads[SECOND].patience = 5;
            assert!(!sched.can_be_made_to_run(SECOND), "one was enough");
        });
    }

    /// A sleep that lasts for as long as others run is noted, so that a search can say so.
    #[test]
    fn sleeps_that_are_held_are_noted() {
        with_threads(2, Plan::default(), |sched| {
            waits_until(sched, FIRST, Wait::Sleep, 10);
            sched.threads[FIRST].patience = 10;
            sched.note_held_sleep(FIRST);
            assert_eq!(sched.follower.held_sleep(), Some(10));
        });
        let outlasting = Outlasting { sleeps: 1, longest: 10 };
        with_threads(2, Plan { outlasting, ..Plan::default() }, |sched| {
            waits_until(sched, FIRST, Wait::Sleep, 10);
            sched.threads[FIRST].patience = 10;
            sched.note_held_sleep(FIRST);
            assert_eq!(sched.follower.held_sleep(), None);
        });
    }

    /// Waits for a wake-up may end for no reason, as often as the plan says; other waits may not.
    #[test]
    fn spurious_wake_ups_are_counted() {
        with_threads(2, Plan { spurious: 1, ..Plan::default() }, |sched| {
            waits_until(sched, FIRST, Wait::Join(ThreadIndex::MAIN), 10);
            assert!(!sched.wake_spuriously(FIRST));
            sched.threads[FIRST].wait = Wait::Wakeup { address: 8, ticket: 1, mask: 1, mutex: None };
            assert!(sched.wake_spuriously(FIRST) && sched.can_run(FIRST));
            assert!(!sched.wake_spuriously(FIRST));
        });
    }
}
