//! A schedule as the steps of a plan.
//!
//! A thread that is switched away from stands before its next event, and that event is where its step stops. This
//! fits as long as threads do what they did in the trace; the last thing that an anomaly makes a thread do may be
//! another than recorded.

use std::collections::HashMap;

use threadbare_trace::{Event, EventKind, Step, Until};

use crate::history::History;

/// The steps that force a schedule.
pub fn steps(history: &History<'_>, schedule: &[u32]) -> Vec<Step> {
    let mut stops = Stops::new(history);
    let mut steps = Vec::new();
    let turns = schedule.chunk_by(|a, b| history.thread(*a) == history.thread(*b));
    for turn in turns {
        let last = turn[turn.len() - 1];
        // A turn of nothing but bookkeeping is none.
        if turn.iter().all(|&event| !is_stop(history, event)) {
            continue;
        }
        let thread = history.thread(last);
        let id = history.trace().threads[thread as usize].clone();
        let until = stops.after(thread, history.local(last) + 1);
        steps.push(Step { thread: id, until });
    }
    steps
}

/// Finds where steps stop.
struct Stops<'h, 't> {
    history: &'h History<'t>,
    /// By thread: how many of its events were counted.
    counted: Vec<u32>,
    seen: HashMap<(u32, EventKind, u64), u32>,
}

impl<'h, 't> Stops<'h, 't> {
    fn new(history: &'h History<'t>) -> Stops<'h, 't> {
        Stops { history, counted: vec![0; history.threads()], seen: HashMap::new() }
    }

    /// The stop of a thread that has done its first `done` events, which are not fewer than at the last call.
    fn after(&mut self, thread: u32, done: u32) -> Until {
        let events = self.history.events_of(thread);
        for &event in &events[self.counted[thread as usize] as usize..done as usize] {
            if is_stop(self.history, event) {
                *self.seen.entry(self.key(self.history.event(event))).or_default() += 1;
            }
        }
        self.counted[thread as usize] = done;
        let next = events[done as usize..].iter().find(|&&event| is_stop(self.history, event));
        let next = next.map(|&event| self.key(self.history.event(event))).or_else(|| self.pending(thread));
        let Some(key @ (_, kind, address)) = next else { return Until::End };
        let occurrence = self.seen.get(&key).copied().unwrap_or(0) + 1;
        Until::Before { kind, address, occurrence }
    }

    fn key(&self, event: &Event) -> (u32, EventKind, u64) {
        (event.thread, event.kind, self.history.trace().locations[event.location as usize].address)
    }

    /// What the thread stood before when the trace ended.
    fn pending(&self, thread: u32) -> Option<(u32, EventKind, u64)> {
        let trace = self.history.trace();
        let pending = trace.pending.iter().find(|pending| pending.thread == thread)?;
        Some((thread, pending.kind, trace.locations[pending.location as usize].address))
    }
}

/// A thread can stand before the event: it is neither bookkeeping nor the second half of a wait.
pub fn is_stop(history: &History<'_>, event: u32) -> bool {
    let Event { thread, kind, location, .. } = *history.event(event);
    let before = history.local(event).checked_sub(1);
    let first_half = before.map(|local| history.event(history.events_of(thread)[local as usize]));
    let is_second_half = first_half.is_some_and(|first| {
        first.location == location
            && matches!(
                (first.kind, kind),
                (EventKind::Wait, EventKind::Unlock) | (EventKind::Wake, EventKind::Lock)
            )
    });
    !kind.is_silent() && !is_second_half
}
