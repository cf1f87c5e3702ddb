//! What each read saw in the trace, and what it would see if events came in another order.

use threadbare_trace::{Event, EventIndex, EventKind};

use super::dependence::sees_last_write;
use super::history::History;

/// No write: the variable is as it was before the trace.
const NONE: EventIndex = EventIndex::new(u32::MAX);

/// By event, which write it saw.
#[derive(Debug)]
pub struct Reads {
    seen: Vec<EventIndex>,
    /// Traces of other tools say nothing of values.
    has_values: bool,
}

impl Reads {
    pub fn of(history: &History) -> Reads {
        let events = &history.trace().events;
        let mut seen = vec![NONE; events.len()];
        let mut memory = Memory::new(history);
        for event in EventIndex::first(events.len()) {
            if let Some(write) = memory.seen_by(event) {
                seen[event.index()] = write;
            }
            memory.step(event);
        }
        let has_values = events.iter().any(|event| event.kind.is_access() && event.value != 0);
        Reads { seen, has_values }
    }

    /// The event reads nothing, or, with `memory` as it is now, what it read in the trace.
    pub fn is_same(&self, memory: &Memory<'_>, event: EventIndex) -> bool {
        let Some(write) = memory.seen_by(event) else { return true };
        let same_value = || {
            let history = memory.history;
            !history.variables().is_mixed(history.variable(event))
                && write != NONE
                && reads_value_of(history.event(event), history.event(write))
        };
        self.seen[event.index()] == write || self.has_values && same_value()
    }
}

/// What was written is what was read, as far as their values are known.
fn reads_value_of(read: &Event, write: &Event) -> bool {
    let simple = matches!(read.kind, EventKind::Read | EventKind::AtomicLoad)
        && matches!(write.kind, EventKind::Write | EventKind::AtomicStore);
    simple && read.size == write.size && read.size <= 8 && read.value == write.value
}

/// Who wrote each variable last, as events happen.
pub struct Memory<'h> {
    history: &'h History,
    /// By variable.
    last: Vec<EventIndex>,
}

impl<'h> Memory<'h> {
    pub fn new(history: &'h History) -> Memory<'h> {
        Memory { history, last: vec![NONE; history.variables().count()] }
    }

    /// The write that the event would see now; `None` if it sees none.
    fn seen_by(&self, event: EventIndex) -> Option<EventIndex> {
        if !self.history.event(event).kind.is_access() {
            return None;
        }
        let variable = self.history.variable(event);
        sees_last_write(self.history, event, variable).then(|| self.last[variable.index()])
    }

    /// The last write to the variable of `event`; `None` if nothing was written to it.
    pub fn last_write(&self, event: EventIndex) -> Option<EventIndex> {
        Some(self.last[self.history.variable(event).index()]).filter(|&write| write != NONE)
    }

    pub fn step(&mut self, event: EventIndex) {
        if self.history.event(event).kind.is_access() && self.history.writes(event) {
            self.last[self.history.variable(event).index()] = event;
        }
    }
}
