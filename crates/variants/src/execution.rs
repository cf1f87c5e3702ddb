//! The order of a run's steps that no equivalent run can change, and its races.
//!
//! A step *happens before* another if the same thread takes both, or if they cannot change places, or through others in
//! between. The order is kept as vector clocks: for each step, how many steps of each thread happen before it.

use rustc_hash::FxHashMap;
use threadbare_search::OperationPatience;
use threadbare_trace::{Deed, Effect, EventKind, Space, ThreadIndex, Touch};

use crate::blocking::Blocking;
use crate::content;
use crate::rounds::Rounds;
use crate::step::Step;

/// A run that has come to its end.
pub struct Execution<'a> {
    pub steps: &'a [Step],
    /// What threads stood before at the end.
    pending: &'a [Step],
    rounds: &'a Rounds,
    /// For each step, by thread: how many steps of that thread happen before it or are it.
    clocks: Vec<Clock>,
    /// The positions of each thread's steps.
    by_thread: Vec<Vec<u32>>,
    /// The step that created each thread.
    created: Vec<Option<u32>>,
    /// For each primitive, the positions of the steps that touch it.
    objects: FxHashMap<u64, Vec<u32>>,
    /// For each step and then for each pending operation: the latest steps that it cannot change places with.
    conflicts: Vec<Vec<u32>>,
}

type Clock = Box<[u32]>;

/// Two steps that can be taken the other way round, as positions. What was pending at the end is numbered from the end
/// of the run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    pub first: usize,
    pub second: usize,
}

impl<'a> Execution<'a> {
    pub fn new(steps: &'a [Step], pending: &'a [Step], rounds: &'a Rounds) -> Execution<'a> {
        let all = || steps.iter().chain(pending);
        let threads = all().map(|step| step.thread.index() + 1).max().unwrap_or(0);
        let mut latest = Latest::default();
        let mut clocks: Vec<Clock> = Vec::with_capacity(steps.len());
        let mut by_thread = vec![Vec::new(); threads];
        let mut created = vec![None; threads];
        let mut conflicts = Vec::with_capacity(steps.len() + pending.len());
        let mut objects: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (position, step) in steps.iter().enumerate() {
            let own: &mut Vec<u32> = &mut by_thread[step.thread.index()];
            let mut clock = match own.last() {
                Some(&last) => clocks[last as usize].clone(),
                None => vec![0; threads].into_boxed_slice(),
            };
            let before = latest.conflicts(step);
            for &other in before.iter().chain(&latest.arrivals(step)) {
                join(&mut clock, &clocks[other as usize]);
            }
            own.push(position as u32);
            clock[step.thread.index()] = own.len() as u32;
            clocks.push(clock);
            latest.add(step, position as u32);
            for deed in step.deeds.iter().filter(|deed| deed.kind == EventKind::Fork) {
                if let Some(creation) = created.get_mut(deed.object as usize) {
                    *creation = Some(position as u32);
                }
            }
            for touch in step.touches.iter().filter(|touch| touch.space == Space::Object) {
                let touching = objects.entry(touch.start).or_default();
                if touching.last() != Some(&(position as u32)) {
                    touching.push(position as u32);
                }
            }
            conflicts.push(before);
        }
        conflicts.extend(pending.iter().map(|step| latest.conflicts(step)));
        Execution { steps, pending, rounds, clocks, by_thread, created, objects, conflicts }
    }

    pub fn step(&self, position: usize) -> &'a Step {
        self.steps.get(position).unwrap_or_else(|| &self.pending[position - self.steps.len()])
    }

    /// How many steps of each thread happen before the step at `position`, or are it.
    pub fn clock(&self, position: usize) -> &[u32] {
        &self.clocks[position]
    }

    /// The step at `first` is the one at `second`, or happens before it.
    pub fn is_before(&self, first: usize, second: usize) -> bool {
        self.is_in(first, &self.clocks[second])
    }

    fn is_in(&self, position: usize, clock: &[u32]) -> bool {
        let thread = self.steps[position].thread.index();
        clock[thread] >= self.clocks[position][thread]
    }

    /// What the thread of a step or of a pending operation did before it, or else the step that created the thread.
    fn previous(&self, position: usize) -> Option<usize> {
        let thread = self.step(position).thread.index();
        let own = &self.by_thread[thread];
        let count = own.partition_point(|&other| (other as usize) < position);
        let last = count.checked_sub(1).map(|last| own[last]);
        last.or(self.created[thread]).map(|position| position as usize)
    }

    /// Every race: the first step is a latest one that the second can come before.
    pub fn races(&self) -> Vec<Race> {
        let mut races = Vec::new();
        for second in 0..self.steps.len() + self.pending.len() {
            let step = self.step(second);
            let previous = self.previous(second);
            let is_fixed = |&first: &usize| {
                self.steps[first].thread == step.thread
                    || previous.is_some_and(|previous| self.is_before(first, previous))
            };
            let waits = step.patience != OperationPatience::None;
            let own = self.own_looks(second);
            let firsts = match waits || !own.is_empty() {
                true => self.last_that_let_go(second, &own, is_fixed),
                false => {
                    let conflicts: Vec<usize> =
                        self.conflicts[second].iter().map(|&first| first as usize).collect();
                    let is_latest = |first: &usize| {
                        !conflicts.iter().any(|&other| other != *first && self.is_before(*first, other))
                    };
                    conflicts.iter().copied().filter(|first| is_latest(first) && !is_fixed(first)).collect()
                }
            };
            races.extend(firsts.into_iter().map(|first| Race { first, second }));
        }
        races
    }

    /// If the step at `position` may be the last look of a round in vain: the thread's steps from where such a round may
    /// begin to that one.
    fn own_looks(&self, position: usize) -> Vec<&'a Step> {
        let thread = self.step(position).thread.index();
        let own = &self.by_thread[thread];
        let count = own.partition_point(|&other| (other as usize) < position);
        let earlier = own[..count].iter().rev().map(|&other| &self.steps[other as usize]);
        let mut looks: Vec<&Step> = earlier.take_while(|step| step.state != 0).collect();
        looks.reverse();
        looks.push(self.step(position));
        let first = looks.iter().position(|step| self.rounds.may_begin(step));
        first.map_or_else(Vec::new, |first| looks.split_off(first))
    }

    /// The latest steps before which the operation at `second` could be done, if it may have to wait or if it may be part
    /// of a round in vain.
    fn last_that_let_go(
        &self,
        second: usize,
        own: &[&Step],
        is_fixed: impl Fn(&usize) -> bool,
    ) -> Vec<usize> {
        let step = self.step(second);
        let was_done = second < self.steps.len();
        let mut found: Vec<usize> = Vec::new();
        for first in self.conflicting(second).into_iter().rev().filter(|first| !is_fixed(first)) {
            let is_latest = !found.iter().any(|&later| self.is_before(first, later));
            let before = || self.steps_without(first, second);
            let waits = step.patience != OperationPatience::None;
            if is_latest
                && (!waits || Blocking::lets_go(step, was_done, before, self.steps))
                && !self.rounds.would_end(own, before, self.steps)
            {
                found.push(first);
            }
        }
        found
    }

    /// The steps before the one at `position` that it cannot change places with, in order.
    fn conflicting(&self, position: usize) -> Vec<usize> {
        let step = self.step(position);
        let mut others: Vec<usize> = match step.touches.iter().any(|touch| touch.space == Space::Memory) {
            true => (0..self.steps.len()).collect(),
            false => {
                let histories = step.touches.iter().filter_map(|touch| self.objects.get(&touch.start));
                let others = histories.flatten().chain(&self.conflicts[position]);
                others.map(|&other| other as usize).collect()
            }
        };
        others.retain(|&other| other < position && self.steps[other].conflicts(step));
        others.sort_unstable();
        others.dedup();
        others
    }

    /// The steps before `end` that happen neither after the one at `position` nor are it.
    fn steps_without(&self, position: usize, end: usize) -> impl Iterator<Item = &'a Step> {
        let others = (0..end.min(self.steps.len())).filter(move |&other| !self.is_before(position, other));
        others.map(|other| &self.steps[other])
    }

    /// The steps after `first` that do not come after it in every equivalent run, and then the one at `second`: a
    /// beginning of a run in which the two are reversed.
    pub fn reversed(&self, race: Race) -> Vec<Step> {
        let independent = (race.first + 1..self.steps.len())
            .filter(|&position| position != race.second && !self.is_before(race.first, position));
        let before = || self.steps_without(race.first, self.steps.len());
        let step = self.step(race.second);
        let changes = |deed: &Deed, touch: &Touch| match (deed.kind, step.update) {
            // Where the run does not tell what memory holds, a change is what to be prepared for.
            (EventKind::AtomicRmw, Some(update)) => content::after(touch, before(), self.steps)
                .is_none_or(|content| update.condition.changes(content)),
            _ => Blocking::may_do(deed, before(), self.steps),
        };
        let last = step.elsewhere(changes);
        independent.map(|position| self.step(position).clone()).chain([last]).collect()
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, other) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*other);
    }
}

/// The latest steps that touch each thing.
#[derive(Default)]
struct Latest {
    /// By space and by pieces of eight bytes.
    pieces: FxHashMap<(Space, u64), Vec<(Touch, u32)>>,
    /// Touches of many pieces.
    large: Vec<(Touch, u32)>,
    /// The last step that touches everything.
    all: Option<u32>,
    /// The last step of each thread that touches anything.
    last: FxHashMap<ThreadIndex, u32>,
    /// Who has arrived at each barrier.
    arrived: FxHashMap<u64, Vec<u32>>,
}

const MAX_PIECES: u64 = 16;

fn pieces(touch: &Touch) -> Option<std::ops::RangeInclusive<u64>> {
    let end = touch.start.saturating_add(touch.len.max(1) - 1);
    (touch.len <= 8 * MAX_PIECES).then_some(touch.start >> 3..=end >> 3)
}

impl Latest {
    /// The latest steps that `step` cannot change places with, in order.
    fn conflicts(&self, step: &Step) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        for touch in step.touches.iter() {
            if touch.space == Space::All {
                found.extend(self.last.values());
            }
            let near: Vec<&(Touch, u32)> = match pieces(touch) {
                Some(pieces) => {
                    pieces.filter_map(|piece| self.pieces.get(&(touch.space, piece))).flatten().collect()
                }
                None => self.pieces.values().flatten().collect(),
            };
            let conflicting = near.into_iter().chain(&self.large).filter(|(other, _)| other.conflicts(touch));
            found.extend(conflicting.map(|&(_, position)| position));
        }
        if !step.touches.is_empty() {
            found.extend(self.all);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// If the step leaves a barrier: the steps that arrived there.
    fn arrivals(&self, step: &Step) -> Vec<u32> {
        let leaves = step.deeds.iter().filter(|deed| deed.kind == EventKind::BarrierLeave);
        leaves.filter_map(|deed| self.arrived.get(&deed.object)).flatten().copied().collect()
    }

    fn add(&mut self, step: &Step, position: u32) {
        for touch in step.touches.iter() {
            if touch.space == Space::All {
                self.all = Some(position);
                continue;
            }
            let covers = |(other, _): &(Touch, u32)| {
                touch.effect == Effect::Changes
                    && touch.space == other.space
                    && touch.start <= other.start
                    && other.start.saturating_add(other.len) <= touch.start.saturating_add(touch.len)
            };
            match pieces(touch) {
                Some(pieces) => {
                    for piece in pieces {
                        let entries = self.pieces.entry((touch.space, piece)).or_default();
                        entries.retain(|entry| !covers(entry));
                        entries.push((*touch, position));
                    }
                }
                None => {
                    self.large.retain(|entry| !covers(entry));
                    self.large.push((*touch, position));
                }
            }
        }
        for deed in step.deeds.iter().filter(|deed| deed.kind == EventKind::BarrierArrive) {
            self.arrived.entry(deed.object).or_default().push(position);
        }
        if !step.touches.is_empty() {
            self.last.insert(step.thread, position);
        }
    }
}
