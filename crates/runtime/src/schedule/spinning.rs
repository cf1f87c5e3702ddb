//! Loops that only wait for another thread to change what they look at.
//!
//! A thread goes round *in vain* if it comes to an operation in the state in which it came there before, and has done
//! nothing but look in between. It would do so again until somebody changes what it looked at. So it waits until then. The
//! state is the operation, the registers and the stack. A loop that counts, or that writes anywhere but to its own stack,
//! does more than look.
//!
//! Only explorations ask for this ([`Policy::Awake`](threadbare_trace::Policy::Awake)). A round in vain is no part of the run
//! if the thread made it by itself: the run is the same without it. The turns of a plan may ask for such a round too. Then
//! the thread is *stuck* and does nothing more in this run. What it could do later belongs to a run in which it has not
//! looked so early.

use std::hash::Hasher as _;

use threadbare_trace::{Deed, Effect, EventKind, Outcome, ThreadIndex, Touch, touches};
use threadbare_wire::{Condition, PendingRecord, Round, Update};

use crate::entry::log::{self, Entry};
use crate::hash::Mix;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{self, Operation, Scheduler};
use crate::schedule::wait::Wait;
use crate::schedule::{decisions, frames};

/// What a thread has only looked at.
#[derive(Default)]
pub struct Spinning {
    /// Since it last did more than look.
    looks: Vec<Look>,
    /// The decision that let it do its operation.
    decision: Option<Decision>,
    /// Its state before the operation that it stands before or does; 0 if that does more than look.
    state: u64,
    /// Whether the atomic operation that it stands before changes what it finds.
    condition: Option<Condition>,
    /// What an operation that may write found in memory.
    found: u64,
    /// It has gone round in vain, and nothing that it looked at there has changed since.
    waits: bool,
    is_stuck: bool,
}

/// An operation that only looked.
struct Look {
    /// The thread's state before.
    state: u64,
    /// What it looked at. A `yield` looks at nothing.
    at: Option<Touch>,
    decision: Decision,
    /// Somebody has changed since what it looked at.
    is_outdated: bool,
}

/// A decision to let a thread do its operation.
#[derive(Clone, Copy)]
struct Decision {
    /// Where it is recorded.
    word: u64,
    turn: u64,
    /// A turn of the plan asked for it.
    is_planned: bool,
}

impl Spinning {
    pub fn state(&self) -> u64 {
        self.state
    }

    pub fn waits(&self) -> bool {
        self.waits || self.is_stuck
    }

    /// It could go on by now, but not in this run.
    pub fn is_abandoned(&self) -> bool {
        self.is_stuck && !self.waits
    }

    /// The decision to let it do its operation is recorded at `word`.
    pub fn decided(&mut self, word: u64, turn: u64, is_planned: bool) {
        self.decision = Some(Decision { word, turn, is_planned });
    }

    /// The run goes on from here with a plan whose turns begin with all that was done so far.
    pub fn resume(&mut self) {
        for look in &mut self.looks {
            look.decision.is_planned = true;
            // The log is a copy from the end of the run that was begun with, where it may have been marked.
            decisions::set_round(look.decision.word, Round::None);
        }
    }

    /// It comes to an operation in this state. If it went round in vain: since when.
    fn arrive(&mut self, state: u64) -> Option<Decision> {
        (self.state, self.decision) = (state, None);
        let first = self.looks.iter().position(|look| look.state == state && state != 0)?;
        self.looks.drain(..first);
        let began = self.looks[0].decision;
        self.is_stuck = self.looks.iter().any(|look| look.decision.is_planned);
        self.waits = !self.looks.iter().any(|look| look.is_outdated);
        self.mark_round();
        Some(began)
    }

    /// It has looked at this.
    fn look(&mut self, at: Option<Touch>) {
        if let Some(decision) = self.decision {
            self.looks.push(Look { state: self.state, at, decision, is_outdated: false });
        }
        self.state = 0;
    }

    /// It has done more than look.
    fn forget(&mut self) {
        self.looks.clear();
    }

    /// Something changes. `true` if it was waiting for that.
    fn change(&mut self, change: &Touch) -> bool {
        let mut is_concerned = false;
        for look in &mut self.looks {
            let concerns = look.at.is_some_and(|at| at.conflicts(change));
            look.is_outdated |= concerns;
            is_concerned |= concerns;
        }
        let is_over = is_concerned && std::mem::take(&mut self.waits);
        if is_over {
            self.mark_round();
        }
        is_over
    }

    /// Writes down what the round in vain is to the run by now.
    fn mark_round(&mut self) {
        let round = match (self.waits, self.is_stuck) {
            (true, _) => Round::Last,
            (false, true) => Round::Abandoned,
            (false, false) => Round::PassedOver,
        };
        self.looks.iter().for_each(|look| decisions::set_round(look.decision.word, round));
        if round == Round::PassedOver {
            self.looks.clear();
        }
    }
}

/// The running thread `me` comes to an operation. `true` if it went round in vain: then it waits.
#[inline]
pub fn arrive(me: ThreadIndex, operation: &Operation) -> bool {
    AWAITS.get() && arrive_awaiting(me, operation)
}

#[cold]
fn arrive_awaiting(me: ThreadIndex, operation: &Operation) -> bool {
    let state = if may_only_look(operation) { state(me, operation) } else { 0 };
    if may_write(operation.kind) && operation.size() > 0 {
        // SAFETY: whoever made the operation promised that the program accesses the same bytes next. If it cannot, the
        // fault is the program's own; nothing is borrowed here that its handler could find in use.
        unsafe { log::read_memory(operation.object, operation.size().min(8)) };
    }
    scheduler::with(|sched| {
        let spinning = &mut sched.threads[me].spinning;
        if operation.kind == EventKind::AtomicRmw
            && let Some(condition) = spinning.condition
        {
            log::set_pending(me, PendingRecord { condition: condition.words(), ..log::pending(me) });
        }
        let began = spinning.arrive(state);
        if let Some(began) = began {
            let is_in_run = spinning.is_stuck;
            sched.follower.went_round_in_vain(me, (!is_in_run).then_some(began.turn));
        }
        began.is_some()
    })
}

fn may_only_look(operation: &Operation) -> bool {
    use EventKind::{AtomicLoad, AtomicRmw, Fence, Lock, Read, ReadLock, Yield};
    matches!(operation.wait, Wait::Nothing)
        && matches!(operation.kind, Read | AtomicLoad | AtomicRmw | Lock | ReadLock | Yield | Fence)
}

fn may_write(kind: EventKind) -> bool {
    matches!(kind, EventKind::AtomicRmw | EventKind::AtomicStore | EventKind::Write)
}

fn state(me: ThreadIndex, operation: &Operation) -> u64 {
    let mut state = Mix::default();
    for word in [operation.kind as u64, operation.pc, operation.object] {
        state.write_u64(word);
    }
    frames::write(&mut state, me);
    state.finish().max(1)
}

/// The running thread writes to memory that no event tells of.
pub fn writes(address: u64) {
    if !AWAITS.get() {
        return;
    }
    let here = &raw const address as u64;
    let is_on_own_stack = (here..here + frames::MAX_STACK / 2).contains(&address);
    if !is_on_own_stack {
        learns();
    }
}

/// The running thread has done something that no event tells of, or knows something new.
pub fn learns() {
    if AWAITS.get() {
        scheduler::with_me(|me| me.spinning.forget());
    }
}

/// The running thread comes to an atomic operation that changes what it finds under this condition.
#[inline(always)]
pub fn updates(condition: impl FnOnce() -> Condition) {
    if AWAITS.get() {
        scheduler::with_me(|me| me.spinning.condition = Some(condition()));
    }
}

/// The run is part of an exploration.
static AWAITS: Carrier<bool> = Carrier::new(false);

pub fn start() {
    AWAITS.set(scheduler::with(|sched| sched.follower.awaits()));
}

impl Scheduler {
    /// What the operation does that thread `index` stands before, if it may write.
    pub fn update(&mut self, index: ThreadIndex) -> Option<Update> {
        let pending = log::pending(index);
        let kind = pending.event_kind().filter(|&kind| may_write(kind))?;
        if !self.follower.awaits() || !(1..=8).contains(&pending.size) {
            return None;
        }
        let condition = match kind {
            EventKind::AtomicRmw => self.threads[index].spinning.condition?,
            _ => Condition::ALWAYS,
        };
        // SAFETY: the thread has read these bytes when it came here, and accesses them next.
        let found = unsafe { log::read_memory(pending.object, pending.size.into()) };
        self.threads[index].spinning.found = found;
        Some(Update { found, condition })
    }
}

impl Scheduler {
    /// Thread `me` has done this: those who wait for such a change go on.
    pub fn has_done(&mut self, me: ThreadIndex, entry: &mut Entry) {
        if !self.follower.awaits() {
            return;
        }
        let is_update = entry.kind == EventKind::AtomicRmw && entry.outcome == Outcome::Done;
        let spinning = &mut self.threads[me].spinning;
        let condition = spinning.condition.take_if(|_| entry.kind == EventKind::AtomicRmw);
        if is_update && condition.is_some_and(|condition| !condition.changes(spinning.found)) {
            entry.outcome = Outcome::Unchanged;
        }
        let &mut Entry { kind, outcome, object, size, value, .. } = entry;
        let mut has_only_looked = kind != EventKind::Allocate;
        let mut touches = touches(&Deed { thread: me, kind, outcome, object, size, value }).peekable();
        if touches.peek().is_none() && matches!(kind, EventKind::Yield | EventKind::Fence) {
            self.threads[me].spinning.look(None);
        }
        for touch in touches {
            if touch.effect == Effect::Observes {
                self.threads[me].spinning.look(Some(touch));
            } else {
                has_only_looked = false;
                self.changes(&touch);
            }
        }
        if !has_only_looked {
            self.threads[me].spinning.forget();
        }
        self.follower.event(me, entry, has_only_looked);
    }

    /// Something changes: what threads saw there no longer holds.
    fn changes(&mut self, change: &Touch) {
        for index in self.alive.iter() {
            if self.threads[index].spinning.change(change) {
                self.ready.insert(index);
            }
        }
    }
}
