//! What is wrong with a trace that cannot have happened.

use thiserror::Error;
use threadbare_trace::EventIndex;

/// A trace cannot be analysed. Events are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    #[error("event {event}: thread {thread} releases {lock}, which thread {holder} holds")]
    ForeignRelease { event: EventIndex, thread: String, lock: String, holder: String },
    #[error("event {event}: thread {thread} takes {lock}, which thread {holder} holds")]
    TakenTwice { event: EventIndex, thread: String, lock: String, holder: String },
    #[error("the trace has {events} events; at most {max_events} can be analysed")]
    TooLong { events: usize, max_events: usize },
}
