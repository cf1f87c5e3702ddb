//! Decisions of the scheduler, for the tool: which threads were enabled, which one ran, and the state of the program.

use std::sync::atomic::Ordering;

use threadbare_trace::ThreadIndex;
use threadbare_wire::{self as wire, DECISIONS_BYTES, DECISIONS_OFFSET, GuidedStep};

use crate::entry::log;
use crate::schedule::bits::Bits;
use crate::schedule::scheduler::Scheduler;
use crate::schedule::state;

/// A decision that is about to be made.
pub struct Pending {
    state: u64,
    alternatives: Bits,
    /// Words of guidance, if the run is guided.
    guidance: Vec<u64>,
}

impl Scheduler {
    /// The state and the enabled threads, if the plan asks for decisions.
    pub fn look_at_choice(&mut self) -> Option<Pending> {
        if !self.follower.plan().decisions {
            return None;
        }
        let alternatives = self.alternatives();
        let steps = self.guided_steps(&alternatives);
        let guidance = steps.map_or_else(Vec::new, |(passed, steps)| GuidedStep::words(passed, &steps));
        let state = if self.follower.awaits() { 0 } else { state::number(self) };
        Some(Pending { state, alternatives, guidance })
    }

    /// The enabled threads. A thread is enabled if it can run, if its wait may time out, or if its wait may end
    /// spuriously. A thread that sleeps is not, while any other is, unless the plan lets its sleep be outlasted.
    fn alternatives(&self) -> Bits {
        let mut alternatives = Bits::default();
        let may_go = |index: ThreadIndex| {
            self.can_run(index)
                || !self.threads[index].wait.rules().is_sleep && self.may_expire_early(index)
                || self.may_wake_spuriously(index)
                || self.may_be_outlasted(index)
        };
        self.alive.iter().filter(|&index| may_go(index)).for_each(|index| alternatives.insert(index));
        alternatives
    }
}

impl Pending {
    /// Records that `picked` runs, while there is room.
    pub fn made(mut self, sched: &mut Scheduler, picked: ThreadIndex) {
        self.alternatives.insert(picked);
        if sched.follower.awaits() {
            self.state = sched.threads[picked].spinning.state();
        }
        let patience = log::pending(picked).operation_patience();
        let control = log::control();
        let set = self.alternatives.words();
        let at = control.decision_words.load(Ordering::Relaxed);
        let records = control.events.load(Ordering::Relaxed);
        let update = sched.update(picked).map(|update| update.words());
        if let Some(update) = update {
            self.guidance.extend(update);
        }
        let mut head =
            wire::Decisions::head(records, self.state, (picked, patience), set.len(), self.guidance.len());
        if update.is_some() {
            head[wire::Decisions::HEAD - 1] = wire::Decisions::with_update(head[wire::Decisions::HEAD - 1]);
        }
        let words: Vec<u64> = head.iter().chain(set).chain(&self.guidance).copied().collect();
        let len = words.len();
        if log::write_words(DECISIONS_OFFSET, DECISIONS_BYTES, at, words.into_iter()) {
            control.decision_words.store(at + len as u64, Ordering::Release);
            let (turn, is_planned) = (sched.follower.decided(), !sched.follower.is_free());
            sched.threads[picked].spinning.decided(at, turn, is_planned);
        }
    }
}

/// The decision at this word turned out to be part of such a round.
pub fn set_round(at: u64, round: wire::Round) {
    let last = at + wire::Decisions::HEAD as u64 - 1;
    log::update_word(DECISIONS_OFFSET, last, |word| wire::Decisions::in_round(word, round));
}
