//! A run, as data.

use crate::{End, Event, EventKind, Location, Object, Step, ThreadId, TracePlace, Until};

/// Everything one run did, in the order it happened.
///
/// Events point into the tables. Entry 0 of `objects`, `locations` and `stacks` means "none", entry 0 of
/// `threads` is the main thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Path of the program.
    pub program: String,
    pub arguments: Vec<String>,
    pub threads: Vec<ThreadId>,
    pub objects: Vec<Object>,
    pub locations: Vec<Location>,
    pub stacks: Vec<StackNode>,
    pub events: Vec<Event>,
    /// What each thread that had not ended was about to do, in the order of thread indices.
    pub pending: Vec<Pending>,
    pub end: End<TracePlace>,
}

/// A call stack as a path to the root of a tree: the call at `location`, made from the stack `parent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackNode {
    pub parent: u32,
    pub location: u32,
}

/// The operation a thread stood before when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub thread: u32,
    pub kind: EventKind,
    pub object: u32,
    pub location: u32,
    pub stack: u32,
    /// It could not go on.
    pub blocked: bool,
    /// The threads that hold what it waits for, where that is known.
    pub holders: Vec<u32>,
}

impl Trace {
    /// How often the running thread changed.
    pub fn switches(&self) -> usize {
        self.schedule_points()
            .zip(self.schedule_points().skip(1))
            .filter(|(a, b)| a.thread != b.thread)
            .count()
    }

    /// The events a plan can stop before.
    pub fn schedule_points(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|event| !event.kind.is_silent())
    }

    /// The schedule of this run as forced steps: one for each time the running thread changed, and one to the
    /// end.
    ///
    /// A thread that is switched away from stands before its own next event; that event, with the number of
    /// times the thread did the same thing at the same place before, is where its step stops.
    pub fn steps(&self) -> Vec<Step> {
        steps_of(
            self.threads.len(),
            self.schedule_points().map(|event| self.point(event.thread, event.kind, event.location)),
            self.pending.iter().map(|pending| self.point(pending.thread, pending.kind, pending.location)),
            usize::MAX,
        )
        .into_iter()
        .map(|(thread, until)| Step { thread: self.threads[thread as usize].clone(), until })
        .collect()
    }

    fn point(&self, thread: u32, kind: EventKind, location: u32) -> (u32, EventKind, u64) {
        (thread, kind, self.locations[location as usize].address)
    }
}

/// The steps that force the schedule `points` (thread, kind, address), after which each thread with an entry
/// in `pending` stands before that operation. A thread that stands before none has ended, or ended the run.
/// Only switches among the first `forced` points become steps.
pub fn steps_of(
    threads: usize,
    points: impl Iterator<Item = (u32, EventKind, u64)>,
    pending: impl Iterator<Item = (u32, EventKind, u64)>,
    forced: usize,
) -> Vec<(u32, Until)> {
    use std::collections::HashMap;
    let mut steps: Vec<(u32, Until)> = Vec::new();
    // For each thread that was switched away from: the step whose stop is still to be learnt.
    let mut open: Vec<Option<usize>> = vec![None; threads];
    let mut seen: HashMap<(u32, EventKind, u64), u32> = HashMap::new();
    let mut running: Option<u32> = None;
    let mut count = 0;
    for (number, (thread, kind, address)) in points.enumerate() {
        if let Some(previous) = running.filter(|&previous| previous != thread && number < forced) {
            open[previous as usize] = Some(steps.len());
            steps.push((previous, Until::End));
        }
        count = number + 1;
        if number < forced {
            running = Some(thread);
        }
        let occurrence = seen.entry((thread, kind, address)).or_default();
        *occurrence += 1;
        if let Some(step) = open[thread as usize].take() {
            steps[step].1 = Until::Before { kind, address, occurrence: *occurrence };
        }
    }
    if let Some(last) = running.filter(|_| count <= forced) {
        open[last as usize] = Some(steps.len());
        steps.push((last, Until::End));
    }
    for (thread, kind, address) in pending {
        if let Some(step) = open[thread as usize].take() {
            let done = seen.get(&(thread, kind, address)).copied().unwrap_or(0);
            steps[step].1 = Until::Before { kind, address, occurrence: done + 1 };
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_becomes_one_step_a_switch() {
        use EventKind::{End, Read, Write};
        let points =
            [(0, Write, 10), (0, Write, 10), (1, Read, 20), (0, Write, 10), (1, End, 0), (0, Read, 11)];
        let before = |kind, address, occurrence| Until::Before { kind, address, occurrence };
        let steps = steps_of(2, points.into_iter(), [(0, Read, 11)].into_iter(), usize::MAX);
        assert_eq!(
            steps,
            [
                (0, before(Write, 10, 3)),
                (1, before(End, 0, 1)),
                (0, before(Read, 11, 1)),
                (1, Until::End),
                (0, before(Read, 11, 2)),
            ]
        );
    }

    #[test]
    fn a_thread_left_standing_stops_before_what_it_was_about_to_do() {
        use EventKind::{Lock, Write};
        let points = [(0, Lock, 1), (1, Write, 2)];
        let steps = steps_of(2, points.into_iter(), [(0, Lock, 1), (1, Lock, 3)].into_iter(), usize::MAX);
        let before_lock = |address, occurrence| Until::Before { kind: Lock, address, occurrence };
        assert_eq!(steps, [(0, before_lock(1, 2)), (1, before_lock(3, 1))]);
    }
}
