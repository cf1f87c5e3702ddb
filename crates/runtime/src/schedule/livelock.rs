//! Tells a livelock from a run that is only long.
//!
//! In the second half of the longest run allowed the schedule is fair. Towards its end each thread's state is noted at
//! every operation: the operation, the value of its last one, its registers and its stack. It is a livelock if in the
//! last eighth of the run no thread is in a state that it was not in during the eighth before. A loop that counts, on
//! the stack, in a register or in memory, would show new states.
//!
//! To hash a stack takes long. So operations and values alone are compared first, one eighth earlier. Most runs that
//! are only long show something new there.

use std::collections::HashSet;
use std::hash::Hasher as _;

use threadbare_trace::ThreadIndex;

use crate::hash::{Hasher, Mix};
use crate::schedule::frames;
use crate::schedule::scheduler::{self, Operation};

#[derive(Default)]
pub struct Watch {
    /// Operations and their values, in the sixth eighth of the run.
    deeds: HashSet<u64, Hasher>,
    /// The same with registers and stacks, in the seventh.
    states: HashSet<u64, Hasher>,
    moving: bool,
}

impl Watch {
    /// Something has moved: it is no livelock.
    pub fn is_moving(&self) -> bool {
        self.moving
    }

    /// Something has moved that threads may be waiting for.
    pub fn moves(&mut self) {
        self.moving = true;
    }

    /// A thread does something, after so many eighths of the run. `true` if its registers and its stack are to be
    /// looked at too.
    fn note_deed(&mut self, deed: u64, eighths: u64) -> bool {
        if eighths == 5 {
            self.deeds.insert(deed);
            return false;
        }
        self.moving |= !self.deeds.contains(&deed);
        !self.moving
    }

    /// A thread is in this state, after so many eighths of the run.
    fn note_state(&mut self, state: u64, eighths: u64) {
        if eighths == 6 {
            self.states.insert(state);
        } else {
            self.moving = !self.states.contains(&state);
        }
    }
}

/// The running thread `me` stands before an operation: remembers that, if the run is near its bound, or looks whether
/// it is known.
#[inline]
pub fn look(me: ThreadIndex, operation: &Operation) {
    if let Some(eighths) = with_watch(|_, eighths| eighths) {
        note(me, operation, eighths);
    }
}

#[inline]
fn with_watch<R>(work: impl FnOnce(&mut Watch, u64) -> R) -> Option<R> {
    scheduler::with(|sched| sched.follower.livelock_watch().map(|(watch, eighths)| work(watch, eighths)))
}

#[cold]
fn note(me: ThreadIndex, operation: &Operation, eighths: u64) {
    let mut state = Mix::default();
    let last_value = scheduler::with_me(|me| me.last_value);
    for word in [u64::from(me.number()), operation.kind as u64, operation.pc, operation.object, last_value] {
        state.write_u64(word);
    }
    if with_watch(|watch, _| watch.note_deed(state.finish(), eighths)) == Some(true) {
        frames::write(&mut state, me);
        with_watch(|watch, _| watch.note_state(state.finish(), eighths));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose threads do the same things in the same states goes in circles.
    #[test]
    fn the_same_again_is_no_movement() {
        let mut watch = Watch::default();
        assert!(!watch.note_deed(1, 5));
        assert!(watch.note_deed(1, 6));
        watch.note_state(2, 6);
        assert!(watch.note_deed(1, 7));
        watch.note_state(2, 7);
        assert!(!watch.is_moving());
    }

    /// A loop that counts is not a livelock, even if only its stack shows the count.
    #[test]
    fn what_is_new_is_movement() {
        let mut deeds = Watch::default();
        deeds.note_deed(1, 5);
        assert!(!deeds.note_deed(2, 6));
        assert!(deeds.is_moving());
        let mut states = Watch::default();
        states.note_deed(1, 5);
        states.note_state(2, 6);
        states.note_state(3, 7);
        assert!(states.is_moving());
    }
}
