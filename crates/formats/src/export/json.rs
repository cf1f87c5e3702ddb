//! A trace as lines of JSON.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use threadbare_trace::{
    End, Event, EventKind, LocationIndex, ObjectIndex, Pending, ThreadIndex, Trace, TracePlace,
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
    let mut line = Line::default();
    line.text("program", &trace.program);
    line.list("arguments", &trace.arguments, |line, argument| line.value(argument));
    line.list("threads", &trace.threads, |line, thread| line.value(thread));
    line.raw("events", trace.events.len());
    line.write(out)?;
    for event in &trace.events {
        describe_event(&mut line, trace, event);
        line.write(out)?;
    }
    describe_end(&mut line, trace);
    line.write(out)
}

fn describe_event(line: &mut Line, trace: &Trace, event: &Event) {
    line.thread(trace, event.thread);
    line.text("kind", event.kind);
    line.object(trace, event.object);
    line.location(trace, event.location);
    if event.size != 0 {
        line.raw("size", event.size);
    }
    line.text("value", format_args!("{:#x}", event.value));
    if matches!(
        event.kind,
        EventKind::AtomicLoad | EventKind::AtomicStore | EventKind::AtomicRmw | EventKind::Fence
    ) {
        line.text("order", event.order);
    }
    line.text("outcome", event.outcome);
}

fn describe_end(line: &mut Line, trace: &Trace) {
    line.text("end", trace.end.kind());
    match &trace.end {
        End::Failed(failure) => {
            line.text("failure", failure.kind);
            line.text("message", trace.failure_message().unwrap_or_default());
        }
        End::Diverged { step, reason } => {
            line.raw("step", step);
            line.text("message", reason);
        }
        End::Unsupported { message, .. } => line.text("message", message),
        End::Finished | End::EventBound | End::TimeLimit { .. } | End::MemoryLimit => {}
    }
    trace.end.at().into_iter().for_each(|at| line.place(trace, at));
    let related = trace.end.failure().map_or(&[][..], |failure| &failure.related);
    if !related.is_empty() {
        line.list("related", related, |line, related| {
            line.open('{');
            line.text("role", related.role);
            line.place(trace, &related.at);
            line.close('}');
        });
    }
    line.list("pending", &trace.pending, |line, pending| describe_pending(line, trace, pending));
}

fn describe_pending(line: &mut Line, trace: &Trace, pending: &Pending) {
    line.open('{');
    line.thread(trace, pending.thread);
    line.text("kind", pending.kind);
    line.object(trace, pending.object);
    line.location(trace, pending.location);
    line.raw("blocked", pending.blocked);
    line.list("holders", &pending.holders, |line, &holder| line.value(trace.thread(holder)));
    line.close('}');
}

/// An object under construction. Writing to a `String` cannot fail, so results of that are dropped here.
#[derive(Default)]
struct Line(String);

impl Line {
    /// Ends the object and hands it on; the next one begins.
    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.0.as_bytes())?;
        out.write_all(b"}\n")?;
        self.0.clear();
        Ok(())
    }

    /// What must stand before the next key or value.
    fn separate(&mut self) {
        match self.0.as_bytes().last() {
            None => self.0.push('{'),
            Some(b'{' | b'[' | b':') => {}
            Some(_) => self.0.push(','),
        }
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.0.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.0.push(bracket);
    }

    fn key(&mut self, key: &str) {
        self.value(key);
        self.0.push(':');
    }

    /// A value that needs no quotes.
    fn raw(&mut self, key: &str, value: impl fmt::Display) {
        self.key(key);
        let _ = write!(self.0, "{value}");
    }

    fn text(&mut self, key: &str, value: impl fmt::Display) {
        self.key(key);
        self.value(value);
    }

    fn list<T>(&mut self, key: &str, items: &[T], each: impl Fn(&mut Line, &T)) {
        self.key(key);
        self.open('[');
        for item in items {
            each(self, item);
        }
        self.close(']');
    }

    fn thread(&mut self, trace: &Trace, thread: ThreadIndex) {
        self.text("thread", trace.thread(thread));
    }

    fn place(&mut self, trace: &Trace, place: &TracePlace) {
        self.thread(trace, place.thread);
        self.location(trace, place.location);
    }

    fn object(&mut self, trace: &Trace, object: ObjectIndex) {
        let object = trace.object(object);
        if !object.display.is_empty() {
            self.text("object", object);
        }
    }

    fn location(&mut self, trace: &Trace, location: LocationIndex) {
        if location.is_none() {
            return;
        }
        let location = trace.location(location);
        self.text("location", location);
        if let Some(frame) = location.frames.first().filter(|frame| !frame.function.is_empty()) {
            self.text("function", &frame.function);
        }
    }

    /// A quoted text.
    fn value(&mut self, value: impl fmt::Display) {
        self.separate();
        self.0.push('"');
        let _ = write!(Escaped(&mut self.0), "{value}");
        self.0.push('"');
    }
}

/// Takes text and passes it on with JSON's escapes.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                // Below the space JSON demands it; the line separators end a line for some readers.
                '\0'..' ' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                    write!(self.0, "\\u{:04x}", u32::from(c))?;
                }
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}
