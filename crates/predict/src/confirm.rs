//! Confirmation (section 6.3): did the anomaly happen in the run that was to show it?
//!
//! That run has to be the schedule, event by event. The anomaly is then looked for in its trace, by what each event of
//! the prediction is in every run of the same build: the n-th time that its thread does this at this place.

use std::collections::{BTreeMap, BTreeSet};

use threadbare_trace::{Event, EventIndex, EventKind, FailureKind, Pending, ThreadId, Trace};

use crate::prediction::Prediction;
use threadbare_search::reorder::history::{History, writes};
use threadbare_search::reorder::schedule::{Target, permutations};
use threadbare_search::reorder::variable::Variables;

/// An event of a prediction, as it can be found in another run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Awaited {
    thread: ThreadId,
    kind: EventKind,
    address: u64,
    /// How often the thread did the same before.
    before: usize,
}

/// What to look for in the run of a prediction's plan.
#[derive(Clone, Debug)]
pub struct Sighting {
    stand: Vec<Awaited>,
    sequence: Vec<Awaited>,
    /// Which events of the sequence access the same memory.
    meeting: Vec<(usize, usize)>,
}

impl Sighting {
    pub fn of(history: &History, target: &Target) -> Sighting {
        let awaited = |&event: &EventIndex| awaited(history, event);
        let events = &target.sequence;
        let variables = history.variables();
        let meet =
            |&(a, b): &(usize, usize)| variables.overlap(history.event(events[a]), history.event(events[b]));
        let pairs = (0..events.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        Sighting {
            stand: target.stand.iter().map(awaited).collect(),
            sequence: events.iter().map(awaited).collect(),
            meeting: pairs.filter(meet).collect(),
        }
    }

    /// The anomaly is in this trace.
    pub fn is_in(&self, trace: &Trace) -> bool {
        if self.sequence.is_empty() { self.is_deadlock(trace) } else { self.is_sequence(trace) }
    }

    fn is_sequence(&self, trace: &Trace) -> bool {
        let found: Vec<EventIndex> = self.sequence.iter().map_while(|awaited| awaited.find(trace)).collect();
        let variables = Variables::of(trace);
        let meets = |&(a, b): &(usize, usize)| {
            b >= found.len() || variables.overlap(trace.event(found[a]), trace.event(found[b]))
        };
        found.is_sorted_by(|a, b| a < b)
            && self.meeting.iter().all(meets)
            && (self.stand.is_empty() || is_uninterrupted(trace, &found))
            && self.is_complete(trace, &found)
    }

    /// All events are there. If the run failed because of the first of them, the rest may be missing: of a race, the
    /// second event if its thread stands before it; of units of work, what the interrupted unit had still to do.
    fn is_complete(&self, trace: &Trace, found: &[EventIndex]) -> bool {
        let missing = &self.sequence[found.len()..];
        let Some(next) = missing.first() else { return true };
        let end = EventIndex::at(trace.events.len());
        if !self.stand.is_empty() {
            return next.is_pending(trace)
                && found.last().is_some_and(|&last| is_uninterrupted(trace, &[last, end]));
        }
        let begun = &self.sequence[..found.len()];
        let interrupted = begun.iter().any(|awaited| awaited.thread == next.thread)
            && begun.iter().any(|awaited| awaited.thread != next.thread);
        let stands = |pending: &Pending| *trace.thread(pending.thread) == next.thread;
        interrupted
            && missing.iter().all(|awaited| awaited.thread == next.thread)
            && trace.end.failure().is_some()
            && trace.pending.iter().any(stands)
    }

    fn is_deadlock(&self, trace: &Trace) -> bool {
        let waits = |awaited: &Awaited| {
            trace.pending.iter().any(|pending| {
                pending.blocked
                    && *trace.thread(pending.thread) == awaited.thread
                    && trace.location(pending.location).address == awaited.address
            })
        };
        trace.end.failure_kind() == Some(FailureKind::Deadlock) && self.stand.iter().all(waits)
    }
}

fn awaited(history: &History, event: EventIndex) -> Awaited {
    let trace = history.trace();
    let address = |event: EventIndex| trace.location(history.event(event).location).address;
    let (thread, kind) = (history.thread(event), history.event(event).kind);
    let same = |&&other: &&EventIndex| history.event(other).kind == kind && address(other) == address(event);
    let earlier = &history.events_of(thread)[..history.local(event).index()];
    Awaited {
        thread: trace.thread(thread).clone(),
        kind,
        address: address(event),
        before: earlier.iter().filter(same).count(),
    }
}

impl Awaited {
    /// Where it is in the trace of another run.
    fn find(&self, trace: &Trace) -> Option<EventIndex> {
        self.same(trace).nth(self.before)
    }

    /// The same thing done by the same thread at the same place.
    fn same(&self, trace: &Trace) -> impl Iterator<Item = EventIndex> {
        let is_same =
            |(_, event): &(EventIndex, &Event)| what(trace, event) == (&self.thread, self.kind, self.address);
        trace.indexed_events().filter(is_same).map(|(at, _)| at)
    }

    /// Its thread stands before it at the end of the run.
    fn is_pending(&self, trace: &Trace) -> bool {
        let stands = trace.pending.iter().any(|pending| {
            *trace.thread(pending.thread) == self.thread
                && pending.kind == self.kind
                && trace.location(pending.location).address == self.address
        });
        stands && self.same(trace).count() == self.before
    }
}

/// Nothing but bookkeeping lies between these events.
fn is_uninterrupted(trace: &Trace, found: &[EventIndex]) -> bool {
    let between = |pair: &[EventIndex]| {
        let between = pair[0].next().index()..pair[1].index();
        trace.events[between].iter().all(|event| event.kind.is_silent())
    };
    found.windows(2).all(between)
}

/// The run went as the schedule says, event by event, to the end of the schedule or to its own.
pub fn follows(history: &History, schedule: &[EventIndex], run: &Trace) -> bool {
    let is_event = |event: &&Event| !event.kind.is_silent();
    let planned = schedule.iter().map(|&event| history.event(event)).filter(is_event);
    let mut done = run.events.iter().filter(is_event).zip(planned);
    done.all(|(done, planned)| what(run, done) == what(history.trace(), planned))
}

/// What an event is in every run: who does what, and where.
fn what<'t>(trace: &'t Trace, event: &Event) -> (&'t ThreadId, EventKind, u64) {
    let thread = trace.thread(event.thread);
    (thread, event.kind, trace.location(event.location).address)
}

/// The serial orders of the units of work in a prediction: one after the other, whole, in every order.
pub fn serial_orders(history: &History, prediction: &Prediction) -> Vec<Target> {
    let mut units: Vec<Vec<EventIndex>> = Vec::new();
    for &event in &prediction.target.sequence {
        let thread = history.thread(event);
        match units.iter_mut().find(|unit| history.thread(unit[0]) == thread) {
            Some(unit) => unit.push(event),
            None => units.push(vec![event]),
        }
    }
    let orders = permutations(&(0..units.len()).collect::<Vec<_>>());
    let whole = |order: &Vec<usize>| order.iter().flat_map(|&unit| units[unit].clone()).collect::<Vec<_>>();
    orders.iter().map(|order| Target::sequence(&whole(order))).collect()
}

/// The last value written to each variable of a prediction, by the name that it has in every run.
pub fn final_values(history: &History, prediction: &Prediction, run: &Trace) -> BTreeMap<String, u64> {
    let name = |event: &EventIndex| &history.trace().object(history.event(*event).object).display;
    let names: BTreeSet<&String> = prediction.events.iter().map(name).collect();
    let mut values = BTreeMap::new();
    for event in run.events.iter().filter(|event| writes(event)) {
        let object = &run.object(event.object).display;
        if names.contains(object) {
            values.insert(object.clone(), event.value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use threadbare_formats::import;

    use super::*;

    /// Protects against taking a run that went its own way for one that showed the prediction.
    #[test]
    fn a_run_follows_a_schedule_to_the_end_of_either() {
        let trace = |text: &str| import::std(text.as_bytes()).expect("the trace is well formed");
        let recorded = trace("T0|fork(T1)|1\nT0|w(x)|2\nT1|w(x)|3\nT1|r(y)|4\n");
        let history = History::new(recorded.clone()).expect("it can be analysed");
        let follows = |run: &str| follows(&history, &[0, 2, 1].map(EventIndex::new), &trace(run));
        assert!(follows("T0|fork(T1)|1\nT1|w(x)|3\nT0|w(x)|2\nT1|r(z)|5\n"));
        assert!(follows("T0|fork(T1)|1\nT1|w(x)|3\n"));
        assert!(!follows("T0|fork(T1)|1\nT0|w(x)|2\nT1|w(x)|3\n"));
        assert!(!follows("T0|fork(T1)|1\nT1|r(x)|3\nT0|w(x)|2\n"));
    }
}
