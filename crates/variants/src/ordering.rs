//! Operations on locks, conditions and the like that may go another way in another order (section IV.C).
//!
//! A notification finds a thread that waits or is lost, a try finds a lock free or taken, one of several threads is the
//! first at a `once`. What an operation found out decides where its thread goes, as the value of a read does. Here are the
//! other orders that it could have come in.

use threadbare_search::reorder::schedule::{Generator, Reordering, Target};
use threadbare_search::reorder::{History, seeing};
use threadbare_trace::EventKind::{
    FutexWait, FutexWake, Io, Lock, NotifyAll, NotifyOne, OnceEnter, ReadLock, ReadUnlock, SemPost, SemWait,
    Unlock, Wait, Wake,
};
use threadbare_trace::{EventIndex, EventKind, ObjectIndex};

use rustc_hash::FxHashMap;

/// Where an operation is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Before(EventIndex),
    After(EventIndex),
    /// While the other thread holds the lock that it took there.
    Inside(EventIndex),
}

impl Place {
    pub fn other(self) -> EventIndex {
        match self {
            Place::Before(other) | Place::After(other) | Place::Inside(other) => other,
        }
    }
}

/// The operations of a run whose order may decide something, by object.
pub struct Orders<'h> {
    history: &'h History,
    by_object: FxHashMap<ObjectIndex, Vec<EventIndex>>,
}

impl<'h> Orders<'h> {
    pub fn of(history: &'h History) -> Orders<'h> {
        let mut by_object: FxHashMap<ObjectIndex, Vec<EventIndex>> = FxHashMap::default();
        for (index, event) in history.trace().indexed_events() {
            if event.kind.is_stateful() || event.kind.lock_effect().is_some() {
                by_object.entry(event.object).or_default().push(index);
            }
        }
        Orders { history, by_object }
    }

    /// The other places for an operation, next to the nearest operations of each other thread that it depends on.
    /// `is_try` says that it does not wait for its object.
    pub fn places(&self, operation: EventIndex, is_try: bool) -> Vec<Place> {
        let history = self.history;
        let event = history.event(operation);
        let all = self.by_object.get(&event.object).map_or(&[][..], Vec::as_slice);
        let at = all.partition_point(|&other| other < operation);
        let is_partner = |&&other: &&EventIndex| {
            history.thread(other) != event.thread && depends(event.kind, history.event(other).kind, is_try)
        };
        let mut places: Vec<Place> = Vec::new();
        let mut add = |place: Place| {
            let other = place.other();
            let same = |known: &Place| {
                std::mem::discriminant(known) == std::mem::discriminant(&place)
                    && history.thread(known.other()) == history.thread(other)
            };
            if !places.iter().any(same) && !self.is_fixed(operation, other) {
                places.push(place);
            }
        };
        for &other in all[..at].iter().rev().filter(is_partner) {
            add(Place::Before(other));
        }
        for &other in all[at..].iter().filter(is_partner) {
            add(Place::After(other));
        }
        let takes = |&&other: &&EventIndex| {
            let is_done = history.event(other).outcome == threadbare_trace::Outcome::Done;
            history.thread(other) != event.thread
                && matches!(history.event(other).kind, Lock | ReadLock)
                && is_done
        };
        if is_try && matches!(event.kind, Lock | ReadLock) {
            for &other in all.iter().filter(takes) {
                add(Place::Inside(other));
            }
        }
        places
    }

    /// No schedule can exchange the two.
    fn is_fixed(&self, one: EventIndex, other: EventIndex) -> bool {
        let segment = |event: EventIndex| self.history.segment(event);
        !self.history.order().independent(segment(one), segment(other))
    }
}

/// How the first operation goes may depend on whether the second comes before it. Of two operations of which each depends
/// on the other, one is enough.
fn depends(one: EventKind, other: EventKind, is_try: bool) -> bool {
    match one {
        Wait => matches!(other, NotifyOne | NotifyAll),
        FutexWait => other == FutexWake,
        Wake => other == Wake,
        OnceEnter => other == OnceEnter,
        Io => other == Io,
        SemWait => is_try && matches!(other, SemPost | SemWait),
        Lock | ReadLock => is_try && matches!(other, Lock | ReadLock | Unlock | ReadUnlock),
        _ => false,
    }
}

/// A schedule that ends with the operation, in this place.
pub fn schedule(
    generator: &Generator,
    history: &History,
    operation: EventIndex,
    place: Place,
) -> Option<Reordering> {
    let target = match place {
        Place::Before(other) => Target::sequence(&[operation, other]),
        Place::After(other) => Target::sequence(&[other, operation]),
        Place::Inside(taken) => {
            let next = history.events_of(history.thread(taken)).get(history.local(taken).next().index())?;
            Target { stand: vec![*next, operation], sequence: Vec::new() }
        }
    };
    let is_there = |schedule: &Reordering| match place {
        Place::Before(other) => !schedule.contains(&other),
        Place::After(other) => schedule.contains(&other),
        Place::Inside(_) => true,
    };
    let end = |mut schedule: Reordering| {
        match schedule.iter().position(|&event| event == operation) {
            Some(position) => schedule.truncate(position + 1),
            None => schedule.push(operation),
        }
        schedule
    };
    seeing::best(generator, history.thread(operation), generator.schedules(&target).map(end).filter(is_there))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use threadbare_formats::import;
    use threadbare_search::reorder::reads::Reads;

    use super::*;

    /// The lines of a schedule, for the trace in which `kinds` are done to an object at lines 1, 2, …
    fn schedule_of(
        operations: &str,
        line: u32,
        place: fn(EventIndex) -> Place,
        other: u32,
    ) -> Option<Vec<u32>> {
        let forks = "T0|fork(T1)|100\nT0|fork(T2)|101\n";
        let lines = operations.split_whitespace().map(|operation| operation.replace(':', "|") + "\n");
        let text = forks.to_owned() + &lines.collect::<String>();
        let trace = import::std(text.as_bytes()).expect("the trace is well formed");
        let history = Arc::new(History::new(trace).expect("it can be analysed"));
        let label =
            |event: EventIndex| history.trace().location(history.event(event).location).frames[0].line;
        let at = |line: u32| {
            let mut all = EventIndex::first(history.trace().events.len());
            all.find(|&event| label(event) == line).expect("there is such a line")
        };
        let generator = Generator::new(Arc::clone(&history), Arc::new(Reads::of(&history)));
        let schedule = schedule(&generator, &history, at(line), place(at(other)))?;
        Some(schedule.into_iter().map(label).filter(|&line| line < 100).collect())
    }

    /// A try succeeds in the trace. It fails while the other thread has the lock.
    #[test]
    fn a_try_comes_while_the_lock_is_taken() {
        let trace = "T1:acq(l):1 T1:rel(l):2 T2:acq(l):3 T2:w(x):4 T2:rel(l):5";
        assert_eq!(schedule_of(trace, 1, Place::Inside, 3), Some(vec![3, 1]));
        assert_eq!(schedule_of(trace, 3, Place::Before, 1), Some(vec![3]));
        assert_eq!(schedule_of(trace, 1, Place::After, 5), Some(vec![3, 4, 5, 1]));
    }
}
