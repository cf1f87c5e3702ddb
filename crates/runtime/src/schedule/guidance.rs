//! Guided test: threads are led through the places of a sequence.
//!
//! At each choice there are two tiers, as in the paper (Rungta and Mercer, section 3.3). A thread that stands before the
//! next waypoint goes first. If there is none, the thread goes that is nearest to the waypoint. How near a thread is was
//! worked out before the run, for every place in the code; here it costs a look into a table. The way may lead out of the
//! functions that the thread is in, so the table has two distances for a place, and the calls of a thread are gone
//! through from the innermost outwards. The result for a call stack is kept, because most events are in a known one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use threadbare_trace::{
    Afterwards, Demand, Distance, EventKind, Guidance, KeptBack, Policy, Preference, StackIndex, ThreadIndex,
    Watched, Waypoint, WhichThread,
};
use threadbare_wire::{GuidedStep, Pass, PendingRecord, Tables};

use crate::entry::log;
use crate::hash::Hasher;
use crate::schedule::bits::Bits;
use crate::schedule::scheduler::{Scheduler, current};
use crate::schedule::thread::Thread;

/// Where no thread comes nearer to the waypoint, one choice in so many is at random.
const SWITCHES: u64 = 8;

/// How far a run has come on its way.
#[derive(Default)]
pub struct Progress {
    /// Waypoints that are behind.
    passed: usize,
    passes: Vec<Pass>,
    /// The threads that stand for variables of the sequence.
    bound: Vec<(u8, ThreadIndex)>,
    /// Threads that have begun a call at the next waypoint, in which nothing has happened yet that others can notice.
    entered: Vec<ThreadIndex>,
    /// Threads that have arrived at a waypoint and stay there until others have arrived too.
    held: Vec<ThreadIndex>,
    /// What it was like before the first of those arrived: waypoints behind, and threads that stood for variables.
    before_group: (usize, usize),
    /// What is known of call stacks, by the number of the next waypoint.
    stacks: HashMap<(usize, StackIndex), FromStack, Hasher>,
    /// By thread: what is known of its next step. Few threads move between two choices.
    steps: Vec<Option<(Standing, GuidedStep)>>,
}

/// What a thread's next step depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Standing {
    passed: usize,
    bound: usize,
    pc: u64,
    stack: StackIndex,
    kind: u8,
}

/// What is known of a call stack.
#[derive(Clone, Copy)]
struct FromStack {
    /// From the return into the innermost caller to the waypoint.
    distance: u32,
    /// One of its calls was made at the waypoint.
    is_at_waypoint: bool,
}

impl Progress {
    /// Tells the tool again what it was told: another run has been made since.
    pub fn tell_again(&self) {
        log::control().passes.store(0, Ordering::Relaxed);
        for (index, &pass) in self.passes.iter().enumerate() {
            log::pass(index, pass);
        }
    }

    fn known_of(&mut self, waypoint: &Waypoint, stack: StackIndex) -> FromStack {
        if stack == StackIndex::EMPTY {
            return FromStack { distance: Distance::INFINITE, is_at_waypoint: false };
        }
        let key = (self.passed, stack);
        if let Some(&known) = self.stacks.get(&key) {
            return known;
        }
        // Stacks may be deep, so this is a loop: down to the first that is known, and up again.
        let mut unknown = vec![stack];
        let mut from = loop {
            let node = log::stack(unknown[unknown.len() - 1]);
            let parent = StackIndex::new(node.parent);
            if parent == StackIndex::EMPTY {
                break FromStack { distance: Distance::INFINITE, is_at_waypoint: false };
            }
            match self.stacks.get(&(self.passed, parent)) {
                Some(&known) => break known,
                None => unknown.push(parent),
            }
        };
        for stack in unknown.into_iter().rev() {
            let pc = log::stack(stack).pc;
            from = FromStack {
                distance: distance_at(self.passed, pc).through(from.distance),
                is_at_waypoint: from.is_at_waypoint || waypoint.points.binary_search(&pc).is_ok(),
            };
            self.stacks.insert((self.passed, stack), from);
        }
        from
    }

    /// Whether thread `index` may pass this waypoint.
    fn is_meant(&self, waypoint: &Waypoint, index: ThreadIndex, thread: &Thread) -> bool {
        match &waypoint.thread {
            WhichThread::Any => true,
            WhichThread::Id(id) => thread.id == *id,
            WhichThread::Variable(number) => {
                let is_other = |&(other, bound): &(u8, ThreadIndex)| (other == *number) != (bound == index);
                !self.bound.iter().any(is_other)
            }
        }
    }

    /// Thread `index` has come to the next waypoint.
    fn advance(&mut self, waypoints: &[Waypoint], index: ThreadIndex) {
        let waypoint = &waypoints[self.passed];
        if self.held.is_empty() {
            self.before_group = (self.passed, self.bound.len());
        }
        let records = log::control().events.load(Ordering::Relaxed);
        let pass = Pass { records, thread: u64::from(index.number()) };
        log::pass(self.passed, pass);
        self.passes.push(pass);
        self.passed += 1;
        self.entered.clear();
        if let WhichThread::Variable(number) = waypoint.thread
            && !self.bound.contains(&(number, index))
        {
            self.bound.push((number, index));
        }
        match (waypoint.demand, waypoints.get(self.passed).map(|next| next.demand)) {
            (Demand::Arrive(group), Some(Demand::Arrive(next))) if group == next => self.held.push(index),
            _ => self.held.clear(),
        }
    }

    /// A thread goes on that was to stay until others have arrived. So the group is as it was before any had.
    fn break_group(&mut self) {
        let (passed, bound) = self.before_group;
        self.passed = passed;
        self.passes.truncate(passed);
        self.bound.truncate(bound);
        self.held.clear();
        self.steps.clear();
        self.entered.clear();
        self.tell_again();
    }
}

/// The calls that an operation is made inside of, outermost first, and the operation itself.
fn frames(operation: &PendingRecord) -> Vec<u64> {
    let mut frames = vec![operation.pc];
    let mut stack = operation.stack_index();
    while stack != StackIndex::EMPTY {
        let node = log::stack(stack);
        frames.push(node.pc);
        stack = StackIndex::new(node.parent);
    }
    frames.reverse();
    frames
}

/// The distances from an address to the waypoint with this number. Code that is not known is taken to return at once.
fn distance_at(waypoint: usize, address: u64) -> Distance {
    let unknown = Distance { to_waypoint: Distance::INFINITE, to_return: 0 };
    Tables(log::table_words()).distance(waypoint, address).unwrap_or(unknown)
}

impl Scheduler {
    fn guidance(&self) -> Option<&Guidance> {
        match &self.follower.plan.policy {
            Policy::Guided(guidance) => Some(guidance),
            _ => None,
        }
    }

    /// All waypoints, if some are still to come.
    fn waypoints_left(&self) -> Option<Arc<[Waypoint]>> {
        let waypoints = &self.guidance()?.waypoints;
        (self.follower.progress.passed < waypoints.len()).then(|| Arc::clone(waypoints))
    }

    /// This operation of thread `index` is at the waypoint.
    fn is_at(&mut self, waypoint: &Waypoint, index: ThreadIndex, operation: &PendingRecord) -> bool {
        let progress = &mut self.follower.progress;
        operation.kind != 0
            && progress.is_meant(waypoint, index, &self.threads[index])
            && (waypoint.points.binary_search(&operation.pc).is_ok()
                || progress.known_of(waypoint, operation.stack_index()).is_at_waypoint)
    }

    /// Thread `index` does this operation.
    pub fn note_pass(&mut self, index: ThreadIndex, operation: &PendingRecord) {
        if self.follower.progress.held.contains(&index) {
            self.follower.progress.break_group();
        }
        // One operation may pass a call, and then what is called at a place inside of it.
        let mut inside = 0;
        while let Some(waypoints) = self.waypoints_left() {
            let waypoint = &waypoints[self.follower.progress.passed];
            if waypoint.demand != Demand::Pass || !self.is_at(waypoint, index, operation) {
                return;
            }
            let frames = frames(operation);
            let is_there = |pc: &u64| waypoint.points.binary_search(pc).is_ok();
            let Some(outermost) = frames.iter().skip(inside).position(is_there) else { return };
            inside += outermost + 1;
            if inside == frames.len() && self.is_before_call(operation) {
                return self.follower.progress.entered.push(index);
            }
            self.follower.progress.advance(&waypoints, index);
        }
    }

    /// A thread comes to a call. What is done there is still to come.
    fn is_before_call(&self, operation: &PendingRecord) -> bool {
        let is_code = |watched: &Watched| match watched {
            Watched::Code(moved) => moved.place == operation.pc && !moved.is_before_call,
            Watched::Access(_) | Watched::Call(_) => false,
        };
        operation.kind == EventKind::Reach as u8 && !self.follower.plan.watched.iter().any(is_code)
    }

    /// Looks whether a thread has left a call at the next waypoint. Then it has passed the waypoint, though nothing
    /// happened inside.
    fn note_returns(&mut self) {
        let Some(waypoints) = self.waypoints_left() else { return };
        let waypoint = &waypoints[self.follower.progress.passed];
        let entered = self.follower.progress.entered.clone();
        let left = entered.into_iter().find(|&index| {
            let pending = log::pending(index);
            pending.kind != 0 && !self.is_at(waypoint, index, &pending)
        });
        if let Some(index) = left {
            self.follower.progress.advance(&waypoints, index);
        }
    }

    /// Looks whether threads have arrived where they are to stand, or have left a call that they were to make.
    pub fn note_arrivals(&mut self) {
        self.note_returns();
        while let Some(waypoints) = self.waypoints_left() {
            let waypoint = &waypoints[self.follower.progress.passed];
            if waypoint.demand == Demand::Pass {
                return;
            }
            let alive: Vec<ThreadIndex> = self.alive.iter().collect();
            let arrived = alive.into_iter().find(|&index| {
                !self.follower.progress.held.contains(&index)
                    && self.is_at(waypoint, index, &log::pending(index))
            });
            let Some(index) = arrived else { return };
            self.follower.progress.advance(&waypoints, index);
        }
    }

    /// No thread can go on. A thread that is blocked at a waypoint does not pass it, but has come as far as it can.
    pub fn note_blocked(&mut self) {
        let mut blocked: Vec<ThreadIndex> = self.alive.iter().collect();
        while let Some(waypoints) = self.waypoints_left() {
            let waypoint = &waypoints[self.follower.progress.passed];
            let at = blocked.iter().position(|&index| self.is_at(waypoint, index, &log::pending(index)));
            let Some(position) = at else { return };
            self.follower.progress.advance(&waypoints, blocked.swap_remove(position));
        }
    }

    /// The running thread fails. If it does so in a call at the next waypoint, it has passed that.
    pub fn note_failure(&mut self) {
        let Some(waypoints) = self.waypoints_left() else { return };
        if self.follower.progress.entered.contains(&current()) {
            self.follower.progress.advance(&waypoints, current());
        }
    }

    /// What guidance knows of a thread that may go next.
    fn guided_step(&mut self, waypoint: &Waypoint, index: ThreadIndex) -> GuidedStep {
        let PendingRecord { pc, kind, .. } = log::pending(index);
        let stack = log::pending(index).stack_index();
        let progress = &mut self.follower.progress;
        let standing = Standing { passed: progress.passed, bound: progress.bound.len(), pc, stack, kind };
        if progress.steps.len() <= index.index() {
            progress.steps.resize(index.index() + 1, None);
        }
        if let Some((_, step)) = progress.steps[index.index()].filter(|(known, _)| *known == standing) {
            return step;
        }
        let step = self.find_step(waypoint, index);
        self.follower.progress.steps[index.index()] = Some((standing, step));
        step
    }

    fn find_step(&mut self, waypoint: &Waypoint, index: ThreadIndex) -> GuidedStep {
        if waypoint.demand == Demand::Pass && self.is_at(waypoint, index, &log::pending(index)) {
            return GuidedStep::Passes;
        }
        let distance = match self.guidance().map(|guidance| &guidance.preference) {
            Some(Preference::Nearest(_)) => self.distance(waypoint, index),
            Some(Preference::Threads(threads)) => u32::from(!threads.contains(&self.threads[index].id)),
            Some(Preference::None) | None => 0,
        };
        // A thread that is not meant does not bring the waypoint nearer, but it may set somebody else free.
        let is_meant = self.follower.progress.is_meant(waypoint, index, &self.threads[index]);
        GuidedStep::Distance(if is_meant { distance } else { Distance::INFINITE })
    }

    fn distance(&mut self, waypoint: &Waypoint, index: ThreadIndex) -> u32 {
        let PendingRecord { pc, kind, .. } = log::pending(index);
        let number = self.follower.progress.passed;
        if kind == EventKind::Begin as u8 {
            let entry = self.threads[index].start.map_or(0, |(routine, _)| routine as usize as u64);
            return distance_at(number, entry).to_waypoint;
        }
        let from_caller = self.follower.progress.known_of(waypoint, log::pending(index).stack_index());
        // The table has what comes after a call by its return address. What comes before is just below.
        let from = if kind == EventKind::Reach as u8 { pc - 1 } else { pc };
        distance_at(number, from).through(from_caller.distance)
    }

    /// For the record of a decision: the waypoints passed, and what is known of each of these threads.
    pub fn guided_steps(&mut self, alternatives: &Bits) -> Option<(u32, Vec<GuidedStep>)> {
        self.guidance()?;
        let threads: Vec<ThreadIndex> = alternatives.iter().collect();
        let steps = match self.waypoints_left() {
            Some(waypoints) => {
                let waypoint = &waypoints[self.follower.progress.passed];
                threads.into_iter().map(|index| self.guided_step(waypoint, index)).collect()
            }
            None => vec![GuidedStep::Distance(0); threads.len()],
        };
        Some((self.follower.progress.passed as u32, steps))
    }

    /// The thread that guidance lets go next. A thread that `gives_way` goes only if no other can.
    pub fn pick_by_guidance(&mut self, gives_way: bool) -> Option<ThreadIndex> {
        let Some(waypoints) = self.waypoints_left() else { return self.pick_afterwards(gives_way) };
        let waypoint = &waypoints[self.follower.progress.passed];
        let me = current();
        let all: Vec<ThreadIndex> = self.ready.iter().collect();
        let is_free = |index: &ThreadIndex| {
            let is_held = self.follower.progress.held.contains(index);
            let must_wait = gives_way && *index == me;
            !is_held && !must_wait && !self.is_kept_back(waypoint, *index)
        };
        let free: Vec<ThreadIndex> = all.iter().copied().filter(is_free).collect();
        let candidates = if free.is_empty() { all } else { free };
        let steps: Vec<(ThreadIndex, GuidedStep)> =
            candidates.into_iter().map(|index| (index, self.guided_step(waypoint, index))).collect();
        let rank = |step: &GuidedStep| match step {
            GuidedStep::Passes => (0, 0),
            GuidedStep::Distance(distance) => (1, *distance),
        };
        let best = steps.iter().map(|(_, step)| rank(step)).min()?;
        if gives_way {
            self.follower.streak = 0;
        }
        // Nobody comes nearer. A thread that goes on sets others free sooner than many that take turns.
        let is_far = best == (1, Distance::INFINITE) && steps.iter().any(|&(index, _)| index == me);
        if is_far && self.follower.random.below(SWITCHES) != 0 {
            return Some(me);
        }
        let equals: Vec<ThreadIndex> =
            steps.iter().filter(|(_, step)| rank(step) == best).map(|&(index, _)| index).collect();
        Some(equals[self.follower.random.below(equals.len() as u64) as usize])
    }

    fn is_kept_back(&self, waypoint: &Waypoint, index: ThreadIndex) -> bool {
        let is_before = |kept: &KeptBack| {
            self.threads[index].id == kept.thread && frames(&log::pending(index)).contains(&kept.before)
        };
        waypoint.kept_back.iter().any(is_before)
    }

    fn pick_afterwards(&mut self, gives_way: bool) -> Option<ThreadIndex> {
        match self.guidance()?.afterwards {
            Afterwards::Random => self.pick_randomly(),
            Afterwards::RunOn if gives_way => self.ready.after(current()),
            Afterwards::RunOn if self.ready.contains(current()) => Some(current()),
            Afterwards::RunOn => self.ready.first(),
        }
    }
}
