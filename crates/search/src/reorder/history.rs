//! A trace with the attributes that section 4.1 gives each event: its thread's order, its locks, its region, and
//! what it is ordered with.

use std::collections::HashMap;
use std::sync::Arc;

use threadbare_trace::{Event, EventIndex, EventKind, ObjectName, Outcome, ThreadIndex, Trace, index_types};

use super::communication::{self, Edge};
use super::error::TraceError;
use super::lockset::{Lockset, Locksets};
use super::order::{Order, Segment};
use super::region::{self, Region, Tier};
use super::variable::{Variable, Variables};

index_types! {
    /// A source line, as an index that is the same for all code of that line.
    Line;
    /// The position of an event among the events of its thread, from 0; also how many events come before it.
    LocalIndex;
}

/// The most events that can be analysed: an index has 32 bits, and one number is kept free.
pub const MAX_EVENTS: usize = u32::MAX as usize - 1;

/// A trace and everything that is known of its events. Events are indices into the trace.
#[derive(Debug)]
pub struct History {
    trace: Arc<Trace>,
    locksets: Locksets,
    edges: Vec<Edge>,
    order: Order,
    regions: Vec<Region>,
    variables: Variables,
    /// Each thread's events.
    threads: Vec<Vec<EventIndex>>,
    /// By event: its position among its thread's.
    local: Vec<LocalIndex>,
    /// By location.
    lines: Vec<Line>,
    /// Each thread's acquisitions and releases that count, by position among its events.
    lock_events: Vec<Vec<LocalIndex>>,
}

impl History {
    pub fn new(trace: impl Into<Arc<Trace>>) -> Result<History, TraceError> {
        let trace = trace.into();
        check_length(trace.events.len())?;
        let locksets = Locksets::of(&trace)?;
        let edges = communication::edges(&trace, &locksets);
        let partial: Vec<Edge> = edges.iter().copied().filter(|edge| !edge.observed).collect();
        let order = Order::new(&trace, &partial);
        let regions = region::regions(&trace, &locksets, &order);
        let variables = Variables::of(&trace);
        let (threads, local) = by_thread(&trace);
        let lock_events = lock_events(&locksets, &local, threads.len());
        let lines = lines(&trace);
        Ok(History { trace, locksets, edges, order, regions, variables, threads, local, lines, lock_events })
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn event(&self, event: EventIndex) -> &Event {
        self.trace.event(event)
    }

    pub fn thread(&self, event: EventIndex) -> ThreadIndex {
        self.event(event).thread
    }

    /// The events of a thread, in order.
    pub fn events_of(&self, thread: ThreadIndex) -> &[EventIndex] {
        &self.threads[thread.index()]
    }

    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The event's position among its thread's.
    pub fn local(&self, event: EventIndex) -> LocalIndex {
        self.local[event.index()]
    }

    pub fn locksets(&self) -> &Locksets {
        &self.locksets
    }

    /// What the event's thread held just before it.
    pub fn lockset(&self, event: EventIndex) -> Lockset {
        self.locksets.before(event)
    }

    pub fn order(&self) -> &Order {
        &self.order
    }

    pub fn segment(&self, event: EventIndex) -> Segment {
        self.order.segment(event)
    }

    /// Thread communication, and what else is kept as it was observed.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The thread communication that lets `event` happen.
    pub fn incoming(&self, event: EventIndex) -> impl Iterator<Item = Edge> {
        let start = self.edges.partition_point(|edge| edge.to < event);
        let to_event = self.edges[start..].iter().take_while(move |edge| edge.to == event);
        to_event.copied().filter(|edge| !edge.observed)
    }

    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    pub fn variable(&self, event: EventIndex) -> Variable {
        self.variables.variable(self.event(event))
    }

    pub fn line(&self, event: EventIndex) -> Line {
        self.lines[self.event(event).location.index()]
    }

    /// The thread that the event creates.
    pub fn forked(&self, event: EventIndex) -> Option<ThreadIndex> {
        let event = self.event(event);
        match self.trace.object(event.object).name {
            ObjectName::Thread(child) if event.kind == EventKind::Fork && event.outcome == Outcome::Done => {
                Some(child)
            }
            _ => None,
        }
    }

    /// The event writes memory, rather than only reading it.
    pub fn writes(&self, event: EventIndex) -> bool {
        writes(self.event(event))
    }

    /// The region of the first tier that the event is in.
    pub fn region(&self, event: EventIndex) -> Region {
        self.regions[event.index()]
    }

    /// What makes `a` and a later event `b` of the same thread one unit of work, if anything does.
    pub fn unit(&self, a: EventIndex, b: EventIndex) -> Option<Tier> {
        let region = self.regions[a.index()];
        if region != Region::NONE && region == self.regions[b.index()] {
            Some(Tier::CriticalSection)
        } else if self.segment(a) == self.segment(b) && region::same_pass(&self.trace, a, b) {
            Some(Tier::Function)
        } else {
            None
        }
    }

    /// The acquisitions and releases of `thread` after its event at `from` and before the one at `to`.
    pub fn lock_events(&self, thread: ThreadIndex, from: LocalIndex, to: LocalIndex) -> &[LocalIndex] {
        let all = &self.lock_events[thread.index()];
        let start = all.partition_point(|&local| local <= from);
        let end = all.partition_point(|&local| local < to);
        &all[start..end.max(start)]
    }
}

/// The event changes memory: a compare-exchange that failed does not.
pub fn writes(event: &Event) -> bool {
    event.kind.is_write() && event.outcome == Outcome::Done
}

fn check_length(events: usize) -> Result<(), TraceError> {
    if events > MAX_EVENTS {
        return Err(TraceError::TooLong { events, max_events: MAX_EVENTS });
    }
    Ok(())
}

fn by_thread(trace: &Trace) -> (Vec<Vec<EventIndex>>, Vec<LocalIndex>) {
    let mut threads: Vec<Vec<EventIndex>> = vec![Vec::new(); trace.threads.len()];
    let mut local = Vec::with_capacity(trace.events.len());
    for (index, event) in trace.indexed_events() {
        let events = &mut threads[event.thread.index()];
        local.push(LocalIndex::at(events.len()));
        events.push(index);
    }
    (threads, local)
}

fn lock_events(locksets: &Locksets, local: &[LocalIndex], threads: usize) -> Vec<Vec<LocalIndex>> {
    let mut events: Vec<Vec<LocalIndex>> = vec![Vec::new(); threads];
    for section in locksets.sections() {
        let both = std::iter::once(section.acquire).chain(section.release);
        events[section.thread.index()].extend(both.map(|event| local[event.index()]));
    }
    for events in &mut events {
        events.sort_unstable();
    }
    events
}

/// Locations of the same file and line are one line; one without a line stands for itself.
fn lines(trace: &Trace) -> Vec<Line> {
    let mut known: HashMap<(&str, u32), Line> = HashMap::new();
    let mut lines = Vec::with_capacity(trace.locations.len());
    for (index, location) in trace.locations.iter().enumerate() {
        let own = Line::at(index);
        lines.push(match location.frames.first() {
            Some(frame) if frame.line != 0 => *known.entry((&frame.file, frame.line)).or_insert(own),
            _ => own,
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_more_events_than_numbers_is_refused() {
        assert_eq!(check_length(MAX_EVENTS), Ok(()));
        let error = check_length(1 << 32).unwrap_err();
        assert_eq!(error.to_string(), "the trace has 4294967296 events; at most 4294967294 can be analysed");
    }
}
