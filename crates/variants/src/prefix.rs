//! A number for the state that a schedule leads to.
//!
//! Two schedules lead to the same state if threads do the same, every read sees the same write, and all that is done to an
//! object with a state of its own comes in the same order. What follows is then the same too, so one run of them is enough.

use rustc_hash::FxHashMap;
use threadbare_trace::EventIndex;

use crate::behaviour::number;
use crate::explorer::Recorded;

/// The number for this schedule of the run's events.
pub fn state_after(run: &Recorded, schedule: &[EventIndex]) -> u64 {
    let history = &run.history;
    let trace = history.trace();
    let threads: Vec<u64> = trace.threads.iter().map(number).collect();
    // By object: what was last done to it.
    let mut last: FxHashMap<u64, u64> = FxHashMap::default();
    let mut state = 0u64;
    for &index in schedule {
        let event = history.event(index);
        let (location, object) =
            (trace.location(event.location).address, run.names.object(event.object.index()));
        let place = match event.kind.is_access() {
            // Overlapping objects are one variable, by the first of its accesses.
            true => number((0, run.variable_name(index))),
            false => number((1, object)),
        };
        let before = last.get(&place).copied().unwrap_or_default();
        let own = (threads[event.thread.index()], history.local(index).number(), event.kind as u8);
        let done = number((own, location, object, before));
        state = state.wrapping_add(done);
        if !event.kind.is_access() || history.writes(index) {
            last.insert(place, done);
        }
    }
    last.into_iter().fold(state, |state, (place, done)| state.wrapping_add(number((place, done))))
}
