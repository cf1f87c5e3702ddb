//! Following a plan: first its turns, then its steps, then its policy.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use threadbare_trace::{End, FailureKind, Plan, Policy, Random, ThreadIndex, Until};
use threadbare_wire::PendingRecord;

use crate::entry::log::{self, Entry};
use crate::hash::Hasher;
use crate::schedule::asleep::Asleep;
use crate::schedule::bits::Bits;
use crate::schedule::ending::{fail, finish, refuse};
use crate::schedule::guidance::Progress;
use crate::schedule::livelock::Watch;
use crate::schedule::policy::LOWEST;
use crate::schedule::sampling::{Scores, Walk};
use crate::schedule::scheduler::Scheduler;
use crate::schedule::snapshots;
use crate::time::timers;

/// The plan cannot be followed any further, and why.
#[derive(Debug, PartialEq, Eq)]
struct Diverged(&'static str);

/// How far the plan has been followed.
#[derive(Default)]
pub struct Follower {
    pub(super) plan: Plan,
    /// The entry of the plan's turns that is being followed, and how many turns of that entry have been taken.
    turns: usize,
    taken: u32,
    /// The step being taken.
    step: usize,
    /// That step's thread, once it exists.
    step_thread: Option<ThreadIndex>,
    /// How often each thread did each kind of operation at each address; kept if there are steps or may be.
    done: HashMap<(ThreadIndex, u8, u64), u32, Hasher>,
    counts: bool,
    watches_races: bool,
    pub(super) random: Random,
    pub(super) scores: Scores,
    pub(super) walk: Walk,
    pub(super) progress: Progress,
    pub(super) asleep: Asleep,
    /// The policy has begun to decide.
    pub(super) free: bool,
    /// Turns taken so far.
    decided: u64,
    /// From this turn on, a choice also takes a snapshot or records a decision.
    alert_at: u64,
    /// Spurious wake-ups so far.
    spurious: u32,
    /// Sleeps that were outlasted so far.
    outlasted: u32,
    /// The shortest sleep that the plan does not let be outlasted, in nanoseconds.
    held_sleep: Option<u64>,
    /// Operations done when the time of a wait or a sleep was last up, whoever decided that.
    last_time_up: u64,
    /// Operations done so far.
    pub(super) operations: u64,
    /// The next of the plan's change points.
    pub(super) change: usize,
    pub(super) priorities: Vec<u64>,
    /// Below every priority given so far.
    pub(super) lowest: u64,
    /// Operations the running thread has done since it was switched to.
    pub(super) streak: u64,
    /// Operations done at the last of the plan's turns.
    last_turn: u64,
    /// Operations done when a wait last timed out or a sleep was last over.
    pub(super) last_expiry: u64,
    watch: Watch,
    has_gone_round_in_vain: bool,
}

/// After so many operations in which no wait has timed out, one does, though other threads can run: they may be polling
/// for what that thread is to do.
const MAX_SLEEP_OPERATIONS: u64 = 2000;

impl Follower {
    pub fn new(plan: Plan) -> Follower {
        let (seed, walk) = match &plan.policy {
            Policy::Random { seed } | Policy::Priorities { seed, .. } | Policy::PartialOrder { seed } => {
                (*seed, Walk::default())
            }
            Policy::Weighted(weights) => (weights.seed, Walk::new(weights)),
            Policy::Guided(guidance) => (guidance.seed, Walk::default()),
            Policy::RunToBlock | Policy::Ordered(_) | Policy::Awake { .. } => (0, Walk::default()),
        };
        let alert_at = if plan.decisions { 0 } else { snapshots::next() };
        let counts = !plan.steps.is_empty() || snapshots::are_wanted();
        let watches_races = plan.races || plan.race.is_some();
        let asleep = Asleep::new(&plan.policy);
        let fresh = Follower { lowest: LOWEST, asleep, ..Follower::default() };
        Follower { plan, random: Random(seed), walk, alert_at, counts, watches_races, ..fresh }
    }

    /// Goes on with another plan. Its turns begin with the schedule so far.
    pub fn resume(self, plan: Plan) -> Follower {
        let Follower { done, operations, decided, spurious, streak, watch, .. } = self;
        let Follower { outlasted, held_sleep, last_time_up, progress, .. } = self;
        log::set_held_sleep(held_sleep);
        progress.tell_again();
        let mut follower = Follower::new(plan);
        let mut passed = decided;
        while let Some(turns) = follower.plan.turns.get(follower.turns)
            && passed >= u64::from(turns.count)
        {
            passed -= u64::from(turns.count);
            follower.turns += 1;
        }
        let (taken, last_turn) = (passed as u32, operations);
        let times = Follower { outlasted, held_sleep, last_time_up, ..follower };
        let guided = Follower { progress, ..times };
        Follower { taken, last_turn, done, operations, decided, spurious, streak, watch, ..guided }
    }

    /// Turns taken so far.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// This choice also takes a snapshot or records a decision.
    pub fn is_alert(&self) -> bool {
        self.decided >= self.alert_at
    }

    /// A snapshot was taken: finds out when the next is due.
    pub fn look_for_next_snapshot(&mut self) {
        if !self.plan.decisions {
            self.alert_at = snapshots::next();
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn is_guided(&self) -> bool {
        matches!(self.plan.policy, Policy::Guided(_))
    }

    pub fn watches_races(&self) -> bool {
        self.watches_races
    }

    /// The policy decides: the plan's turns and steps are taken.
    pub fn is_free(&self) -> bool {
        self.free
    }

    /// Threads that spin are to wait.
    #[inline(always)]
    pub fn awaits(&self) -> bool {
        matches!(self.plan.policy, Policy::Awake { .. })
    }

    /// Thread `me` has done this. Threads that are asleep may wake by it.
    pub fn event(&mut self, me: ThreadIndex, entry: &Entry, has_only_looked: bool) {
        self.asleep.event(me, self.decided.saturating_sub(1), entry, has_only_looked);
    }

    /// Thread `me` has gone round in vain. If that is no part of the run, the round began in turn `since`.
    pub fn went_round_in_vain(&mut self, me: ThreadIndex, since: Option<u64>) {
        self.has_gone_round_in_vain = true;
        if let Some(since) = since {
            self.asleep.went_round_in_vain(me, since);
        }
    }

    pub fn has_gone_round_in_vain(&self) -> bool {
        self.has_gone_round_in_vain
    }

    /// Thread `me` does the operation it stood before.
    pub fn executed(&mut self, me: ThreadIndex, operation: &PendingRecord) {
        self.operations += 1;
        if self.counts {
            *self.done.entry((me, operation.kind, operation.pc)).or_default() += 1;
        }
    }

    pub fn picked(&mut self, current: ThreadIndex, next: ThreadIndex, alive: &Bits) {
        if current == next {
            self.streak += 1;
        } else {
            self.streak = 0;
            log::switch(self.decided, next);
        }
        self.decided += 1;
        log::turns(self.decided);
        if matches!(self.plan.policy, Policy::PartialOrder { .. }) {
            self.scores.picked(next, alive);
        }
    }

    /// Ends a run that has become too long.
    pub fn check_bound(&self) {
        if self.operations >= self.plan.max_events {
            // What the plan's turns made of the second half says nothing of what would go on by itself.
            // Who waits for a timer, which is over when nobody can run, may yet end it.
            let livelock = !self.watch.is_moving()
                && self.last_turn <= self.plan.max_events / 2
                && !timers::are_running();
            if livelock {
                fail(FailureKind::Livelock, 0, "");
            }
            finish(&End::EventBound);
        }
    }

    /// The run is so near its bound that a livelock is to be looked for. Returns the watch, and how many eighths of the
    /// longest run allowed have passed.
    #[inline]
    pub fn livelock_watch(&mut self) -> Option<(&mut Watch, u64)> {
        let max = self.plan.max_events;
        let is_near = !self.watch.is_moving() && self.operations >= max / 8 * 5;
        is_near.then(|| (&mut self.watch, self.operations / (max / 8).max(1)))
    }

    /// A thread has looked at a clock. It may be waiting for a time, and that will come.
    pub fn clock_moves(&mut self) {
        if let Some((watch, 6..)) = self.livelock_watch() {
            watch.moves();
        }
    }

    /// In the second half of the longest run allowed, scheduling is fair. What still goes on at the end then goes on by
    /// itself, and not because a thread is starved.
    pub fn must_be_fair(&self) -> bool {
        self.operations > self.plan.max_events / 2
    }

    /// No wait has timed out for so long that the other threads may be waiting for a sleeping one.
    pub fn sleeps_are_too_long(&self) -> bool {
        self.operations - self.last_expiry >= MAX_SLEEP_OPERATIONS
    }

    /// Spurious wake-ups that there may still be.
    pub fn spurious_left(&self) -> u64 {
        u64::from(self.plan.spurious - self.spurious)
    }

    pub fn wakes_spuriously(&mut self) {
        self.spurious += 1;
    }

    /// Sleeps that may still be outlasted.
    pub fn outlastings_left(&self) -> u64 {
        u64::from(self.plan.outlasting.sleeps - self.outlasted)
    }

    pub fn outlasts(&mut self) {
        self.outlasted += 1;
    }

    /// A sleep of so many nanoseconds lasts for as long as others can run.
    pub fn holds_sleep(&mut self, nanoseconds: u64) {
        self.held_sleep = Some(self.held_sleep.map_or(nanoseconds, |before| before.min(nanoseconds)));
        log::set_held_sleep(self.held_sleep);
    }

    #[cfg(test)]
    pub fn held_sleep(&self) -> Option<u64> {
        self.held_sleep
    }

    /// The time of a wait or a sleep is up.
    pub fn expires(&mut self) {
        self.last_time_up = self.operations;
    }

    /// No time was up for so long that the others are not slow if one is now.
    pub fn is_expiry_overdue(&self) -> bool {
        self.operations - self.last_time_up >= MAX_SLEEP_OPERATIONS
    }
}

impl Scheduler {
    /// The thread that the plan's next turn or step names.
    pub fn pick_forced(&mut self) -> Option<ThreadIndex> {
        // Once the policy decides, there are no turns or steps left.
        if self.follower.free {
            return None;
        }
        match self.next_forced() {
            Ok(next) => next,
            Err(Diverged(reason)) => {
                let step = self.follower.step as u32;
                finish(&End::Diverged { step, reason: reason.into() })
            }
        }
    }

    fn next_forced(&mut self) -> Result<Option<ThreadIndex>, Diverged> {
        match self.pick_by_turn()? {
            None => self.pick_by_step(),
            next => Ok(next),
        }
    }

    #[inline(never)]
    fn pick_by_turn(&mut self) -> Result<Option<ThreadIndex>, Diverged> {
        let follower = &mut self.follower;
        let turns = loop {
            match follower.plan.turns.get(follower.turns) {
                None => return Ok(None),
                Some(turns) if turns.count == follower.taken => {
                    (follower.turns, follower.taken) = (follower.turns + 1, 0);
                }
                Some(turns) => break turns,
            }
        };
        let index = turns.thread;
        follower.taken += 1;
        follower.last_turn = follower.operations;
        if self.threads.get(index).is_none() || !self.can_be_made_to_run(index) {
            return Err(Diverged("the thread whose turn it is cannot run"));
        }
        Ok(Some(index))
    }

    /// The thread that the plan's next step names, passing over steps that are done. A strict plan that cannot be
    /// followed is an error; a loose one passes over steps that cannot be taken.
    #[inline(never)]
    fn pick_by_step(&mut self) -> Result<Option<ThreadIndex>, Diverged> {
        while let Some(step) = self.follower.plan.steps.get(self.follower.step) {
            if self.follower.step_thread.is_none() {
                let mut threads = self.threads.iter();
                self.follower.step_thread =
                    threads.find(|(_, thread)| thread.id == step.thread).map(|(index, _)| index);
            }
            let step_thread = self.follower.step_thread;
            let problem = match step_thread {
                None => Some("the thread does not exist"),
                Some(index) if self.step_is_done(index, step.until) => None,
                Some(index) if self.threads[index].done => Some("the thread ended"),
                Some(index) if self.can_be_made_to_run(index) => return Ok(Some(index)),
                Some(_) => Some("the thread cannot run"),
            };
            if let Some(problem) = problem.filter(|_| self.follower.plan.strict) {
                return Err(Diverged(problem));
            }
            self.follower.step += 1;
            self.follower.step_thread = None;
        }
        Ok(None)
    }

    fn step_is_done(&self, index: ThreadIndex, until: Until) -> bool {
        match until {
            Until::End => self.threads[index].done,
            Until::Before { kind, address, occurrence } => {
                let pending = log::pending(index);
                let done = || self.follower.done.get(&(index, pending.kind, pending.pc)).copied();
                pending.kind == kind as u8
                    && (address == 0 || pending.pc == address)
                    && done().unwrap_or(0) + 1 == occurrence
            }
        }
    }
}

/// Reads the plan that the tool left.
pub fn read() -> Plan {
    log::control().events.load(Ordering::Acquire);
    match threadbare_wire::decode_plan(log::plan_words()) {
        Ok(plan) => plan,
        Err(_) => refuse(0, "internal error: the plan cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::{EventKind, Step, ThreadId, Turns};

    use super::*;
    use crate::schedule::scheduler::Operation;
    use crate::schedule::test_support::{FIRST, SECOND, with_threads};
    use crate::schedule::wait::Wait;

    fn turns(turns: &[(u32, u32)]) -> Vec<Turns> {
        turns.iter().map(|&(thread, count)| Turns { thread: ThreadIndex::new(thread), count }).collect()
    }

    fn child(number: u32) -> ThreadId {
        ThreadId::main().child(number)
    }

    fn before(thread: ThreadId, address: u64, occurrence: u32) -> Step {
        Step { thread, until: Until::Before { kind: EventKind::Lock, address, occurrence } }
    }

    /// Takes `count` forced choices.
    fn take(sched: &mut Scheduler, count: usize) -> Vec<Option<ThreadIndex>> {
        (0..count).map(|_| sched.next_forced().expect("the plan can be followed")).collect()
    }

    /// Thread `index` has done what it stood before, and comes to a lock at `pc`.
    fn comes_to_lock(sched: &mut Scheduler, index: ThreadIndex, pc: u64) {
        sched.follower.executed(index, &log::pending(index));
        crate::schedule::scheduler::announce(index, &Operation::new(EventKind::Lock, pc, 0));
    }

    /// Turns are taken in their order and as often as they say; then nothing is forced.
    #[test]
    fn turns_in_order() {
        let plan = Plan { turns: turns(&[(1, 2), (0, 0), (2, 1)]), ..Plan::default() };
        with_threads(3, plan, |sched| {
            assert_eq!(take(sched, 5), [Some(FIRST), Some(FIRST), Some(SECOND), None, None]);
        });
    }

    /// A turn of a thread that is not there or cannot run means that this is another program, or another schedule.
    #[test]
    fn turns_that_cannot_be_taken() {
        let diverged = Err(Diverged("the thread whose turn it is cannot run"));
        with_threads(2, Plan { turns: turns(&[(7, 1)]), ..Plan::default() }, |sched| {
            assert_eq!(sched.next_forced(), diverged);
        });
        with_threads(2, Plan { turns: turns(&[(1, 1)]), ..Plan::default() }, |sched| {
            sched.threads[FIRST].wait = Wait::Join(ThreadIndex::MAIN);
            assert_eq!(sched.next_forced(), diverged);
        });
    }

    /// A run that goes on from a snapshot must not take the turns again that led there.
    #[test]
    fn resuming_passes_over_turns_that_were_taken() {
        let plan = Plan { turns: turns(&[(0, 2), (1, 3), (2, 1)]), ..Plan::default() };
        with_threads(3, plan.clone(), |sched| {
            let mut follower = std::mem::take(&mut sched.follower);
            follower.decided = 4;
            sched.follower = follower.resume(plan);
            assert_eq!(take(sched, 3), [Some(FIRST), Some(SECOND), None]);
        });
    }

    /// A step holds for its thread until that stands before the operation for the n-th time.
    #[test]
    fn steps_lead_to_the_nth_occurrence() {
        let plan = Plan { steps: vec![before(child(1), 50, 2)], strict: true, ..Plan::default() };
        with_threads(2, plan, |sched| {
            assert_eq!(take(sched, 1), [Some(FIRST)]);
            comes_to_lock(sched, FIRST, 50);
            assert_eq!(take(sched, 1), [Some(FIRST)], "the first time is not the second");
            comes_to_lock(sched, FIRST, 50);
            assert_eq!(take(sched, 1), [None]);
        });
    }

    /// A step to the end of a thread is done when the thread is.
    #[test]
    fn steps_to_the_end() {
        let steps = vec![Step { thread: child(1), until: Until::End }, before(child(2), 0, 1)];
        with_threads(3, Plan { steps, strict: true, ..Plan::default() }, |sched| {
            assert_eq!(take(sched, 1), [Some(FIRST)]);
            sched.threads[FIRST].done = true;
            assert_eq!(take(sched, 1), [Some(SECOND)]);
        });
    }

    /// What a strict plan fails of, a loose one passes over: clips of another build are followed as far as they go.
    #[test]
    fn strict_and_loose() {
        let steps = vec![before(child(9), 50, 1), before(child(1), 50, 1), before(child(2), 50, 1)];
        let block = |sched: &mut Scheduler| sched.threads[FIRST].wait = Wait::Join(ThreadIndex::MAIN);
        with_threads(3, Plan { steps: steps.clone(), strict: false, ..Plan::default() }, |sched| {
            block(sched);
            assert_eq!(take(sched, 1), [Some(SECOND)]);
        });
        with_threads(3, Plan { steps: steps.clone(), strict: true, ..Plan::default() }, |sched| {
            assert_eq!(sched.next_forced(), Err(Diverged("the thread does not exist")));
        });
        with_threads(3, Plan { steps: steps[1..].to_vec(), strict: true, ..Plan::default() }, |sched| {
            block(sched);
            assert_eq!(sched.next_forced(), Err(Diverged("the thread cannot run")));
            sched.threads[FIRST].done = true;
            assert_eq!(sched.next_forced(), Err(Diverged("the thread ended")));
        });
    }
}
