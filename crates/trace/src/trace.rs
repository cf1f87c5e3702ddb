//! A run, as data.

use crate::{
    End, Event, EventIndex, EventKind, Location, LocationIndex, Object, ObjectIndex, StackIndex, Step,
    ThreadId, ThreadIndex, TracePlace, Until,
};

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
    pub parent: StackIndex,
    pub location: LocationIndex,
}

/// The operation a thread stood before when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub thread: ThreadIndex,
    pub kind: EventKind,
    pub object: ObjectIndex,
    pub location: LocationIndex,
    pub stack: StackIndex,
    /// It could not go on.
    pub blocked: bool,
    /// The threads that hold what it waits for, where that is known.
    pub holders: Vec<ThreadIndex>,
}

impl Trace {
    pub fn thread(&self, thread: ThreadIndex) -> &ThreadId {
        &self.threads[thread.index()]
    }

    /// The program started no thread, so that there is only one schedule.
    pub fn has_one_thread(&self) -> bool {
        self.threads.len() == 1 && self.events.iter().all(|event| event.thread == ThreadIndex::MAIN)
    }

    pub fn object(&self, object: ObjectIndex) -> &Object {
        &self.objects[object.index()]
    }

    pub fn location(&self, location: LocationIndex) -> &Location {
        &self.locations[location.index()]
    }

    pub fn stack(&self, stack: StackIndex) -> StackNode {
        self.stacks[stack.index()]
    }

    pub fn event(&self, event: EventIndex) -> &Event {
        &self.events[event.index()]
    }

    /// All events, each with its index.
    pub fn indexed_events(
        &self,
    ) -> impl DoubleEndedIterator<Item = (EventIndex, &Event)> + ExactSizeIterator {
        self.events.iter().enumerate().map(|(position, event)| (EventIndex::at(position), event))
    }

    /// The locations of a call and of the calls that led to it, innermost first.
    pub fn calls(&self, location: LocationIndex, stack: StackIndex) -> impl Iterator<Item = LocationIndex> {
        let caller = |stack: StackIndex| (!stack.is_empty()).then(|| self.stack(stack));
        let callers = std::iter::successors(caller(stack), move |inner| caller(inner.parent));
        std::iter::once(location).chain(callers.map(|call| call.location))
    }

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
        .map(|(thread, until)| Step { thread: self.thread(thread).clone(), until })
        .collect()
    }

    fn point(
        &self,
        thread: ThreadIndex,
        kind: EventKind,
        location: LocationIndex,
    ) -> (ThreadIndex, EventKind, u64) {
        (thread, kind, self.location(location).address)
    }
}

/// The steps that force the schedule `points` (thread, kind, address), after which each thread with an entry
/// in `pending` stands before that operation. A thread that stands before none has ended, or ended the run.
/// Only switches among the first `forced` points become steps.
pub fn steps_of(
    threads: usize,
    points: impl Iterator<Item = (ThreadIndex, EventKind, u64)>,
    pending: impl Iterator<Item = (ThreadIndex, EventKind, u64)>,
    forced: usize,
) -> Vec<(ThreadIndex, Until)> {
    use std::collections::HashMap;
    let mut steps: Vec<(ThreadIndex, Until)> = Vec::new();
    // For each thread that was switched away from: the step whose stop is still to be learnt.
    let mut open: Vec<Option<usize>> = vec![None; threads];
    let mut seen: HashMap<(ThreadIndex, EventKind, u64), u32> = HashMap::new();
    let mut running: Option<ThreadIndex> = None;
    let mut count = 0;
    for (number, (thread, kind, address)) in points.enumerate() {
        if let Some(previous) = running.filter(|&previous| previous != thread && number < forced) {
            open[previous.index()] = Some(steps.len());
            steps.push((previous, Until::End));
        }
        count = number + 1;
        if number < forced {
            running = Some(thread);
        }
        let occurrence = seen.entry((thread, kind, address)).or_default();
        *occurrence += 1;
        if let Some(step) = open[thread.index()].take() {
            steps[step].1 = Until::Before { kind, address, occurrence: *occurrence };
        }
    }
    if let Some(last) = running.filter(|_| count <= forced) {
        open[last.index()] = Some(steps.len());
        steps.push((last, Until::End));
    }
    for (thread, kind, address) in pending {
        if let Some(step) = open[thread.index()].take() {
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
        let [a, b] = [0, 1].map(ThreadIndex::new);
        let points =
            [(a, Write, 10), (a, Write, 10), (b, Read, 20), (a, Write, 10), (b, End, 0), (a, Read, 11)];
        let before = |kind, address, occurrence| Until::Before { kind, address, occurrence };
        let steps = steps_of(2, points.into_iter(), [(a, Read, 11)].into_iter(), usize::MAX);
        assert_eq!(
            steps,
            [
                (a, before(Write, 10, 3)),
                (b, before(End, 0, 1)),
                (a, before(Read, 11, 1)),
                (b, Until::End),
                (a, before(Read, 11, 2)),
            ]
        );
    }

    #[test]
    fn a_thread_left_standing_stops_before_what_it_was_about_to_do() {
        use EventKind::{Lock, Write};
        let [a, b] = [0, 1].map(ThreadIndex::new);
        let points = [(a, Lock, 1), (b, Write, 2)];
        let steps = steps_of(2, points.into_iter(), [(a, Lock, 1), (b, Lock, 3)].into_iter(), usize::MAX);
        let before_lock = |address, occurrence| Until::Before { kind: Lock, address, occurrence };
        assert_eq!(steps, [(a, before_lock(1, 2)), (b, before_lock(3, 1))]);
    }
}
