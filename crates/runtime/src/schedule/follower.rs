//! Following a plan: forced steps first, then its policy.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use threadbare_trace::{EventKind, Order, Others, Plan, Policy, Random, ThreadId, Until};
use threadbare_wire::{Ending, PendingRecord};

use crate::entry::log;
use crate::schedule::bits::Bits;
use crate::schedule::livelock::Watch;
use crate::schedule::sampling::{Scores, Walk};
use crate::schedule::scheduler::{Operation, Scheduler, finish};
use crate::schedule::snapshots;
use crate::schedule::wait::Wait;
use crate::time::timers;
use crate::{hash::Hasher, hash::mix};

/// How far the plan has been followed.
#[derive(Default)]
pub struct Follower {
    plan: Plan,
    /// Which of the plan's turns are being taken, and how many of those have been.
    turns: usize,
    taken: u32,
    /// The step being taken.
    step: usize,
    /// That step's thread, once it exists.
    step_thread: Option<usize>,
    /// How often each thread did each kind of operation at each address; kept if there are steps or may be.
    done: HashMap<(usize, u8, u64), u32, Hasher>,
    counts: bool,
    watches_races: bool,
    pub random: Random,
    pub scores: Scores,
    pub walk: Walk,
    /// The policy has begun to decide.
    free: bool,
    /// Turns taken so far.
    decided: u64,
    /// After so many, the next one needs more than a choice.
    alert_at: u64,
    /// Spurious wake-ups so far.
    spurious: u32,
    /// Operations done so far.
    operations: u64,
    /// The next of the plan's change points.
    change: usize,
    priorities: Vec<u64>,
    /// Below every priority given so far.
    lowest: u64,
    /// Operations the running thread has done since it was switched to.
    streak: u64,
    /// Operations done at the last of the plan's turns.
    last_turn: u64,
    /// Operations done when a wait last timed out or a sleep was last over.
    last_expiry: u64,
    watch: Watch,
}

/// A thread that has run this long while others could is made to give way, whatever the policy, except under
/// forced steps: it may be spinning until another thread does something.
const STREAK: u64 = 1000;
/// A timed wait of a random schedule times out, though others could run, once in so many choices.
const EARLY_TIMEOUT: u64 = 8;
/// Where spurious wake-ups are wanted, one is tried once in so many choices.
const SPURIOUS: u64 = 4;
/// After so many operations without, somebody's sleep or timed wait is over though others can run: they may be
/// waiting for it by looking again and again.
const SLEEP: u64 = 2000;

/// Below every priority that a thread begins with.
const LOWEST: u64 = 1 << 32;

/// The priority that `order` gives to a thread; what it does not name is equal.
fn priority_in(order: &Order, id: &ThreadId) -> u64 {
    match order.first.iter().position(|thread| thread == id) {
        _ if order.last.as_ref() == Some(id) => LOWEST,
        Some(place) => u64::MAX - place as u64,
        None => 1 << 63,
    }
}

impl Follower {
    pub fn new(plan: Plan) -> Follower {
        let (seed, walk) = match &plan.policy {
            Policy::Random { seed } | Policy::Priorities { seed, .. } | Policy::PartialOrder { seed } => {
                (*seed, Walk::default())
            }
            Policy::Weighted(weights) => (weights.seed, Walk::new(weights)),
            Policy::RunToBlock | Policy::Ordered(_) => (0, Walk::default()),
        };
        let alert_at = if plan.decisions { 0 } else { snapshots::next() };
        let counts = !plan.steps.is_empty() || snapshots::are_wanted();
        let watches_races = plan.races || plan.race.is_some();
        let fresh = Follower { lowest: LOWEST, ..Follower::default() };
        Follower { plan, random: Random(seed), walk, alert_at, counts, watches_races, ..fresh }
    }

    /// Goes on with another plan that would have come this far in the same way, all of it by its turns.
    pub fn resume(self, plan: Plan) -> Follower {
        let Follower { done, operations, decided, spurious, streak, watch, .. } = self;
        let mut follower = Follower::new(plan);
        let mut passed = decided;
        while let Some(turns) = follower.plan.turns.get(follower.turns)
            && passed >= u64::from(turns.count)
        {
            passed -= u64::from(turns.count);
            follower.turns += 1;
        }
        let (taken, last_turn) = (passed as u32, operations);
        Follower { taken, last_turn, done, operations, decided, spurious, streak, watch, ..follower }
    }

    /// Turns taken so far.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// There is more to be done at this turn than to choose.
    pub fn is_alert(&self) -> bool {
        self.decided >= self.alert_at
    }

    /// The snapshot that was to be taken has been.
    pub fn look_for_next_snapshot(&mut self) {
        if !self.plan.decisions {
            self.alert_at = snapshots::next();
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn watches_races(&self) -> bool {
        self.watches_races
    }

    /// Thread `me` does the operation it stood before.
    pub fn executed(&mut self, me: usize, operation: &PendingRecord) {
        self.operations += 1;
        if self.counts {
            *self.done.entry((me, operation.kind, operation.pc)).or_default() += 1;
        }
    }

    pub fn picked(&mut self, current: usize, next: usize, alive: &Bits) {
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
            let livelock = self.watch.is_livelock()
                && self.last_turn <= self.plan.max_events / 2
                && !timers::are_running();
            finish(if livelock { Ending::Livelock } else { Ending::EventBound }, 0, 0, "");
        }
    }

    /// Thread `me` comes to an operation.
    pub fn look(&mut self, me: usize, operation: &Operation, last_value: u64) {
        self.watch.look(me, operation, last_value, self.operations, self.plan.max_events);
    }

    /// In the second half of the longest run allowed, scheduling is fair, so that what still goes on at its
    /// end is going on by itself and not because somebody is being starved.
    fn must_be_fair(&self) -> bool {
        self.operations > self.plan.max_events / 2
    }

    /// It has been so long that whoever sleeps may be what others wait for.
    pub fn sleeps_are_too_long(&self) -> bool {
        self.operations - self.last_expiry >= SLEEP
    }

    /// Spurious wake-ups that there may still be.
    pub fn spurious_left(&self) -> u64 {
        u64::from(self.plan.spurious - self.spurious)
    }

    pub fn wakes_spuriously(&mut self) {
        self.spurious += 1;
    }

    fn diverged(&self, reason: &str) -> ! {
        finish(Ending::Diverged, self.step as u32, 0, reason)
    }

    fn priority(&mut self, index: usize, id: &ThreadId) -> u64 {
        while self.priorities.len() <= index {
            self.priorities.push(0);
        }
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

    fn make_lowest(&mut self, index: usize) {
        while self.priorities.len() <= index {
            self.priorities.push(0);
        }
        self.lowest -= 1;
        self.priorities[index] = self.lowest;
    }
}

impl Scheduler {
    /// The thread that the plan's next turn or step names.
    pub fn pick_forced(&mut self) -> Option<usize> {
        // Once the policy decides, there are no turns or steps left.
        if self.follower.free {
            return None;
        }
        self.pick_by_turn().or_else(|| self.pick_by_step())
    }

    #[inline(never)]
    fn pick_by_turn(&mut self) -> Option<usize> {
        let follower = &mut self.follower;
        while follower.plan.turns.get(follower.turns)?.count == follower.taken {
            (follower.turns, follower.taken) = (follower.turns + 1, 0);
        }
        follower.taken += 1;
        follower.last_turn = follower.operations;
        let index = follower.plan.turns[follower.turns].thread as usize;
        if index >= self.threads.len() || !self.can_be_made_to_run(index) {
            self.follower.diverged("the thread whose turn it is cannot run");
        }
        Some(index)
    }

    /// The thread that the plan's next step names, passing over steps that are done.
    #[inline(never)]
    fn pick_by_step(&mut self) -> Option<usize> {
        loop {
            let step = self.follower.plan.steps.get(self.follower.step)?;
            if self.follower.step_thread.is_none() {
                self.follower.step_thread = self.threads.iter().position(|thread| thread.id == step.thread);
            }
            let Some(index) = self.follower.step_thread else {
                self.cannot_step("the thread does not exist");
                continue;
            };
            if self.step_is_done(index, step.until) {
                self.next_step();
            } else if self.threads[index].done {
                self.cannot_step("the thread ended");
            } else if self.can_be_made_to_run(index) {
                return Some(index);
            } else {
                self.cannot_step("the thread cannot run");
            }
        }
    }

    fn step_is_done(&self, index: usize, until: Until) -> bool {
        match until {
            Until::End => self.threads[index].done,
            Until::Before { kind, address, occurrence } => {
                // SAFETY: the slot of a thread that exists.
                let pending = unsafe { &*log::pending(index) };
                let done = || self.follower.done.get(&(index, pending.kind, pending.pc)).copied();
                pending.kind == kind as u8
                    && (address == 0 || pending.pc == address)
                    && done().unwrap_or(0) + 1 == occurrence
            }
        }
    }

    fn next_step(&mut self) {
        self.follower.step += 1;
        self.follower.step_thread = None;
    }

    fn cannot_step(&mut self, reason: &str) {
        if self.follower.plan.strict {
            self.follower.diverged(reason);
        }
        self.next_step();
    }

    /// A thread that may be able to run, by the policy; `None` when there is none.
    pub fn pick_by_policy(&mut self) -> Option<usize> {
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
        let fair = self.follower.must_be_fair();
        if fair || matches!(self.follower.plan.policy, Policy::Random { .. }) {
            return self.pick_randomly();
        }
        let gives_way = self.current_gives_way();
        match &self.follower.plan.policy {
            Policy::Priorities { .. } | Policy::Ordered(_) => self.pick_by_priority(gives_way),
            Policy::PartialOrder { .. } => self.pick_by_score(),
            Policy::Weighted(weights) => self.pick_by_weight(weights.interesting),
            _ if gives_way => self.ready.after(self.current),
            _ if self.ready.contains(self.current) => Some(self.current),
            _ => self.ready.after(usize::MAX),
        }
    }

    /// Somebody who would wait for as long as others can run.
    #[cold]
    fn end_longest_sleep(&mut self) -> Option<usize> {
        self.follower.last_expiry = self.follower.operations;
        self.look_outside();
        self.expire_earliest(Scheduler::may_expire_early)
    }

    /// Who is ready depends on nothing but who can run, however the program was brought here.
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
        // SAFETY: the slot of a thread that exists.
        let kind = unsafe { (*log::pending(self.current)).kind };
        kind == EventKind::Yield as u8 || self.follower.streak >= STREAK
    }

    #[inline(never)]
    fn pick_randomly(&mut self) -> Option<usize> {
        if !self.timed.is_empty() && self.follower.random.below(EARLY_TIMEOUT) == 0 {
            let waits = |&index: &usize| {
                !matches!(self.threads[index].wait, Wait::Sleep)
                    && (self.can_run(index) || self.may_expire_early(index))
            };
            let timed: Vec<usize> = self.timed.iter().filter(waits).collect();
            if !timed.is_empty() {
                let index = timed[self.follower.random.below(timed.len() as u64) as usize];
                if self.can_run(index) || self.expire(index) {
                    return Some(index);
                }
            }
        }
        if self.follower.spurious_left() > 0 && self.follower.random.below(SPURIOUS) == 0 {
            let index = self.follower.random.below(self.threads.len() as u64) as usize;
            if !self.can_run(index) && self.wake_spuriously(index) {
                return Some(index);
            }
        }
        let nth = self.follower.random.below(self.ready.len());
        self.ready.nth(nth)
    }

    #[inline(never)]
    fn pick_by_priority(&mut self, gives_way: bool) -> Option<usize> {
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
            self.follower.make_lowest(self.current);
            self.follower.streak = 0;
        }
        let mut best: Option<(u64, usize)> = None;
        for index in self.ready.iter() {
            let priority = self.follower.priority(index, &self.threads[index].id);
            let id = |index: usize| &self.threads[index].id;
            let is_better = best.is_none_or(|(highest, at)| {
                let equals = || others.compare(id(index), id(at)).is_lt();
                priority > highest || priority == highest && equals()
            });
            if is_better {
                best = Some((priority, index));
            }
        }
        best.map(|(_, index)| index)
    }
}

/// Reads the plan that the tool left.
pub fn read() -> Plan {
    log::control().events.load(Ordering::Acquire);
    match threadbare_wire::decode_plan(log::plan_words()) {
        Ok(plan) => plan,
        Err(_) => finish(Ending::Unsupported, 0, 0, "internal error: the plan cannot be read"),
    }
}
