//! Loops that wait for a change: what is known of their rounds in vain.
//!
//! A round in vain brings a thread back to the state in which it began, and changes nothing. A thread that waits so is like
//! one that waits for a lock: its last look, which lets it out of the loop, cannot be done where it would see what it saw in
//! a round in vain. Whether it would is known from experience: the runs so far have shown rounds, and what they saw.
//!
//! Only the last look of a round is told so. Where an earlier one sees the same again, the rest of the round may still turn
//! out otherwise, so that is tried. If it does not, the run is *blocked*: the thread stays where it is, and the run shows
//! which later looks could see something else.

use rustc_hash::FxHashMap;
use threadbare_trace::{Deed, Effect, Space, Touch};

use crate::blocking::Blocking;
use crate::content::{self, with_deeds};
use crate::step::{Step, Taken};

/// What the runs so far have shown.
#[derive(Debug, Default)]
pub struct Rounds {
    /// By the state that they begin and end in.
    known: FxHashMap<u64, Vec<Vec<Look>>>,
}

/// What a thread looked at, and what it saw.
#[derive(Clone, Copy, Debug)]
struct Look {
    deed: Deed,
    touch: Touch,
}

impl Look {
    fn sees_the_same(&self, other: &Look) -> bool {
        self.deed.kind == other.deed.kind && self.touch == other.touch && self.deed.value == other.deed.value
    }
}

/// What the step looks at. If it changes something, it would not where it is in vain.
fn looks(step: &Step) -> impl Iterator<Item = Look> {
    with_deeds(step).map(|(&deed, touch)| Look { deed, touch: Touch { effect: Effect::Observes, ..touch } })
}

impl Rounds {
    /// Learns from a run.
    pub fn learn(&mut self, taken: &Taken) {
        for round in &taken.rounds {
            let looks: Vec<Look> = round.iter().flat_map(looks).collect();
            let known = self.known.entry(round[0].state).or_default();
            if !known.iter().any(|other| are_the_same(other, &looks)) {
                known.push(looks);
            }
        }
    }

    /// A round in vain may begin with a step like this.
    pub fn may_begin(&self, step: &Step) -> bool {
        step.state != 0 && self.known.contains_key(&step.state)
    }

    /// `own` are steps of a thread, in order. The last of them, if it is taken after the steps that `before` gives, ends
    /// a round in vain. `before` are some of `run`, in order, and all steps of the thread before that one are among them.
    pub fn would_end<'a, I: Iterator<Item = &'a Step>>(
        &self,
        own: &[&Step],
        before: impl Fn() -> I,
        run: &'a [Step],
    ) -> bool {
        let Some((last, earlier)) = own.split_last() else { return false };
        let last: Vec<Look> = looks(last).collect();
        (0..own.len()).any(|first| {
            let Some(known) = self.known.get(&own[first].state) else { return false };
            let done: Vec<Look> = earlier[first..].iter().flat_map(|step| looks(step)).collect();
            known.iter().any(|round| {
                round.len() == done.len() + last.len()
                    && are_the_same(&round[..done.len()], &done)
                    && round[done.len()..].iter().zip(&last).all(|(look, other)| {
                        look.deed.kind == other.deed.kind
                            && look.touch == other.touch
                            && would_be_seen(look, before(), run)
                    })
            })
        })
    }
}

/// Who looks like this after the steps that `before` gives sees the same again.
fn would_be_seen<'a>(look: &Look, before: impl Iterator<Item = &'a Step>, run: &'a [Step]) -> bool {
    match look.touch.space {
        Space::Memory => content::after(&look.touch, before, run) == Some(look.deed.value),
        _ => !Blocking::may_do(&look.deed, before, run),
    }
}

fn are_the_same(some: &[Look], others: &[Look]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(look, other)| look.sees_the_same(other))
}
