//! A trace as lines of JSON.

use std::fmt;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use threadbare_trace::{
    End, EndKind, Event, EventKind, FailureKind, Location, LocationIndex, MemoryOrder, ObjectIndex, Outcome,
    Pending, Role, ThreadId, Trace, TracePlace,
};

/// Writes the trace as JSON, one object a line.
///
/// The first line describes the run, the last one its end, and each line between them an event:
///
/// ```json
/// {"program":"./account","arguments":["2"],"threads":["0","0.1"],"events":1}
/// {"thread":"0.1","kind":"write","object":"accounts[1].amount","location":"account.c:42","function":"transfer","size":4,"value":"0x64","outcome":"done"}
/// {"end":"failed","failure":"assertion failed","message":"sum == 200","thread":"0","location":"account.c:60","function":"main","pending":[]}
/// ```
///
/// - Threads, objects and locations have the names a person knows them by. `location` is that of the
///   innermost frame, `function` its function.
/// - `value` is a text, in hexadecimal: not every reader of JSON keeps 64 bits of a number.
/// - A key is left out where it would say nothing: `object`, `location` and `function` where there is none,
///   `size` where it is 0, `order` (the memory order) of anything but atomics and fences.
/// - `end` is `finished`, `failed` (with `failure` and `message`), `event-bound`, `time-limit`, `memory-limit`,
///   `diverged` (with `step` and `message`) or `unsupported` (with `message`). Where it is known where the run
///   ended, `thread`, `location` and `function` say so.
/// - `related` lists the places that explain a failure, if there are any: `role` (`allocated`, `freed` or
///   `other-access`), `thread`, `location`, `function`.
/// - `pending` lists what threads were about to do: `thread`, `kind`, `object`, `location`, `function`, whether it
///   was `blocked`, and by which threads (`holders`).
pub fn json(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    write_line(out, &RunLine::of(trace))?;
    for event in &trace.events {
        write_line(out, &EventLine::of(trace, event))?;
    }
    write_line(out, &EndLine::of(trace))
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// A value by the text that a person knows it by.
struct Text<T>(T);

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[derive(Serialize)]
struct RunLine<'t> {
    program: &'t str,
    arguments: &'t [String],
    threads: Vec<Text<&'t ThreadId>>,
    events: usize,
}

impl<'t> RunLine<'t> {
    fn of(trace: &'t Trace) -> RunLine<'t> {
        RunLine {
            program: &trace.program,
            arguments: &trace.arguments,
            threads: trace.threads.iter().map(Text).collect(),
            events: trace.events.len(),
        }
    }
}

#[derive(Serialize)]
struct EventLine<'t> {
    thread: Text<&'t ThreadId>,
    kind: Text<EventKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'t str>,
    #[serde(flatten)]
    location: LocationFields<'t>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    value: Text<Hexadecimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Text<MemoryOrder>>,
    outcome: Text<Outcome>,
}

impl<'t> EventLine<'t> {
    fn of(trace: &'t Trace, event: &Event) -> EventLine<'t> {
        EventLine {
            thread: Text(trace.thread(event.thread)),
            kind: Text(event.kind),
            object: object(trace, event.object),
            location: LocationFields::of(trace, event.location),
            size: Some(event.size).filter(|&size| size != 0),
            value: Text(Hexadecimal(event.value)),
            order: event.kind.has_memory_order().then_some(Text(event.order)),
            outcome: Text(event.outcome),
        }
    }
}

struct Hexadecimal(u64);

impl fmt::Display for Hexadecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[derive(Serialize)]
struct EndLine<'t> {
    end: Text<EndKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Text<FailureKind>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(flatten)]
    at: Option<PlaceFields<'t>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<RelatedFields<'t>>,
    pending: Vec<PendingFields<'t>>,
}

impl<'t> EndLine<'t> {
    fn of(trace: &'t Trace) -> EndLine<'t> {
        let (step, message) = match &trace.end {
            End::Failed(_) => (None, trace.failure_message()),
            End::Diverged { step, reason } => (Some(*step), Some(reason.clone())),
            End::Unsupported { message, .. } => (None, Some(message.clone())),
            End::Exec { program, .. } => (None, Some(program.clone())),
            End::Finished | End::EventBound | End::TimeLimit { .. } | End::MemoryLimit => (None, None),
        };
        let related = trace.end.failure().map_or(&[][..], |failure| &failure.related);
        EndLine {
            end: Text(trace.end.kind()),
            failure: trace.end.failure_kind().map(Text),
            step,
            message,
            at: trace.end.at().map(|at| PlaceFields::of(trace, at)),
            related: related
                .iter()
                .map(|related| RelatedFields {
                    role: Text(related.role),
                    at: PlaceFields::of(trace, &related.at),
                })
                .collect(),
            pending: trace.pending.iter().map(|pending| PendingFields::of(trace, pending)).collect(),
        }
    }
}

#[derive(Serialize)]
struct RelatedFields<'t> {
    role: Text<Role>,
    #[serde(flatten)]
    at: PlaceFields<'t>,
}

#[derive(Serialize)]
struct PendingFields<'t> {
    thread: Text<&'t ThreadId>,
    kind: Text<EventKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'t str>,
    #[serde(flatten)]
    location: LocationFields<'t>,
    blocked: bool,
    holders: Vec<Text<&'t ThreadId>>,
}

impl<'t> PendingFields<'t> {
    fn of(trace: &'t Trace, pending: &Pending) -> PendingFields<'t> {
        PendingFields {
            thread: Text(trace.thread(pending.thread)),
            kind: Text(pending.kind),
            object: object(trace, pending.object),
            location: LocationFields::of(trace, pending.location),
            blocked: pending.blocked,
            holders: pending.holders.iter().map(|&holder| Text(trace.thread(holder))).collect(),
        }
    }
}

#[derive(Serialize)]
struct PlaceFields<'t> {
    thread: Text<&'t ThreadId>,
    #[serde(flatten)]
    location: LocationFields<'t>,
}

impl<'t> PlaceFields<'t> {
    fn of(trace: &'t Trace, place: &TracePlace) -> PlaceFields<'t> {
        PlaceFields {
            thread: Text(trace.thread(place.thread)),
            location: LocationFields::of(trace, place.location),
        }
    }
}

/// Nothing at all where the location is not known.
#[derive(Serialize)]
struct LocationFields<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Text<&'t Location>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'t str>,
}

impl<'t> LocationFields<'t> {
    fn of(trace: &'t Trace, location: LocationIndex) -> LocationFields<'t> {
        let location = (!location.is_none()).then(|| trace.location(location));
        let frame = location.and_then(|location| location.frames.first());
        LocationFields {
            location: location.map(Text),
            function: frame.map(|frame| frame.function.as_str()).filter(|function| !function.is_empty()),
        }
    }
}

fn object(trace: &Trace, object: ObjectIndex) -> Option<&str> {
    Some(trace.object(object).display.as_str()).filter(|display| !display.is_empty())
}
