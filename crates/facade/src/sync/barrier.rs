//! `std::sync::Barrier`.

use std::fmt;

use super::{Condvar, Mutex};

pub struct Barrier {
    size: usize,
    state: Mutex<State>,
    opened: Condvar,
}

struct State {
    /// Threads that are waiting.
    here: usize,
    /// How often the barrier has opened.
    generation: usize,
}

pub struct BarrierWaitResult(bool);

impl Barrier {
    #[must_use]
    #[inline(always)]
    pub const fn new(size: usize) -> Barrier {
        Barrier { size, state: Mutex::new(State { here: 0, generation: 0 }), opened: Condvar::new() }
    }

    #[inline(always)]
    pub fn wait(&self) -> BarrierWaitResult {
        let mut state = self.state.lock().unwrap();
        state.here += 1;
        if state.here >= self.size {
            state.here = 0;
            state.generation = state.generation.wrapping_add(1);
            self.opened.notify_all();
            return BarrierWaitResult(true);
        }
        let mine = state.generation;
        let opened = self.opened.wait_while(state, |state| state.generation == mine);
        drop(opened.unwrap());
        BarrierWaitResult(false)
    }
}

impl BarrierWaitResult {
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.0).finish()
    }
}
