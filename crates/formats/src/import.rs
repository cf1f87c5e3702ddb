//! Traces from other tools: STD and CSV as the race detector RAPID reads them.
//!
//! [`export`](crate::export) describes both formats. Of what RAPID knows, all is read: `r`, `w`, `acq`, `rel`, `fork`
//! (`start` in CSV), `join`, `begin` and `end`; `branch` is passed over. The first thread of a file is the main
//! thread; one that nobody forks counts as its child.
//!
//! STD has a number for the location of each operation, shown as `location:7`. CSV has none: there an operation is
//! its own location, so that the same operation is at the same place each time.
//!
//! A file that cannot be the trace of a run is refused, with the line (from 1) at which it goes wrong.

use std::collections::HashMap;
use std::fmt;

use threadbare_trace::{
    End, Event, EventKind, Frame, Location, LocationIndex, MemoryOrder, Object, ObjectIndex, ObjectName,
    Outcome, StackIndex, StackNode, ThreadId, ThreadIndex, Trace,
};

/// The most events that are read: they are numbered with 32 bits.
pub const MAX_EVENTS: u64 = u32::MAX as u64 - 1;

/// The operations of both formats, for messages.
pub const OPERATIONS: &str = "r, w, acq, rel, fork (in CSV also start), join, begin, end and branch";

/// A file is not a trace. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    pub line: u64,
    pub wrong: Wrong,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    NotUtf8,
    /// Not `T1|acq(lock)|7`, or not `acq(lock)`.
    Form {
        expected: &'static str,
        found: String,
    },
    /// The file ends in the middle of an operation.
    Truncated {
        expected: &'static str,
    },
    UnknownOperation(String),
    Location(String),
    /// A line of CSV has no operation, or several.
    Cells(usize),
    ForeignRelease {
        thread: String,
        lock: String,
        holder: Option<String>,
    },
    TakenTwice {
        thread: String,
        lock: String,
        holder: String,
    },
    ForkedTwice(String),
    TooManyEvents,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.wrong)
    }
}

impl std::error::Error for ImportError {}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::NotUtf8 => f.write_str("not text in UTF-8"),
            Wrong::Form { expected, found } => write!(f, "expected {expected}, found `{found}`"),
            Wrong::Truncated { expected } => write!(f, "the file ends where {expected} is expected"),
            Wrong::UnknownOperation(found) => write!(f, "unknown operation `{found}`"),
            Wrong::Location(found) => write!(f, "expected a location number below 2^32, found `{found}`"),
            Wrong::Cells(cells) => write!(f, "expected one operation in the line, found {cells}"),
            Wrong::ForeignRelease { thread, lock, holder: Some(holder) } => {
                write!(f, "{thread} releases {lock}, which {holder} holds")
            }
            Wrong::ForeignRelease { thread, lock, holder: None } => {
                write!(f, "{thread} releases {lock}, which nobody holds")
            }
            Wrong::TakenTwice { thread, lock, holder } => {
                write!(f, "{thread} takes {lock}, which {holder} holds")
            }
            Wrong::ForkedTwice(thread) => write!(f, "{thread} is forked, but it exists already"),
            Wrong::TooManyEvents => write!(f, "more than {MAX_EVENTS} events"),
        }
    }
}

/// Reads a trace in RAPID's STD format.
pub fn std(bytes: &[u8]) -> Result<Trace, ImportError> {
    read(bytes, MAX_EVENTS, |builder, line| {
        const EXPECTED: &str = "an operation such as T1|acq(lock)|7";
        let mut parts = line.split('|');
        let (Some(thread), Some(operation), Some(place), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Wrong::Form { expected: EXPECTED, found: line.to_owned() });
        };
        let number: u32 = place.trim().parse().map_err(|_| Wrong::Location(place.to_owned()))?;
        let (verb, operand) = operation_of(operation, EXPECTED)?;
        let location = builder.location(Frame { file: "location".into(), line: number, ..Frame::default() });
        builder.operation(thread.trim(), verb, operand, location)
    })
}

/// Reads a trace in RAPID's CSV format.
pub fn csv(bytes: &[u8]) -> Result<Trace, ImportError> {
    read(bytes, MAX_EVENTS, |builder, line| {
        let cells: Vec<(usize, &str)> =
            line.split(',').map(str::trim).enumerate().filter(|(_, cell)| !cell.is_empty()).collect();
        let [(column, operation)] = cells[..] else { return Err(Wrong::Cells(cells.len())) };
        let (verb, operand) = operation_of(operation, "an operation such as acq(lock)")?;
        let verb = if verb == "start" { "fork" } else { verb };
        let location = builder.location(Frame { file: operation.to_owned(), ..Frame::default() });
        builder.operation(&format!("T{column}"), verb, operand, location)
    })
}

/// `verb(operand)`, taken apart.
fn operation_of<'l>(text: &'l str, expected: &'static str) -> Result<(&'l str, &'l str), Wrong> {
    let form = || Wrong::Form { expected, found: text.to_owned() };
    let (verb, rest) = text.trim().split_once('(').ok_or_else(form)?;
    let operand = rest.strip_suffix(')').ok_or_else(form)?;
    Ok((verb.trim(), operand.trim()))
}

/// Reads `bytes` line by line. A last line that does not end and cannot be read was cut short.
fn read(
    bytes: &[u8],
    max_events: u64,
    mut take: impl FnMut(&mut Builder, &str) -> Result<(), Wrong>,
) -> Result<Trace, ImportError> {
    let mut builder = Builder::new();
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let at = |wrong| ImportError { line: number as u64 + 1, wrong };
        let text = str::from_utf8(line).map_err(|_| at(Wrong::NotUtf8))?.trim_end_matches('\r');
        if text.trim().is_empty() {
            continue;
        }
        if builder.trace.events.len() as u64 >= max_events {
            return Err(at(Wrong::TooManyEvents));
        }
        let end = line.as_ptr_range().end == bytes.as_ptr_range().end;
        take(&mut builder, text).map_err(|wrong| match wrong {
            Wrong::Form { expected, .. } if end => at(Wrong::Truncated { expected }),
            other => at(other),
        })?;
    }
    Ok(builder.trace)
}

/// A trace as it is read.
struct Builder {
    trace: Trace,
    threads: HashMap<String, ThreadIndex>,
    /// Names as in the file, by thread.
    names: Vec<String>,
    /// Children so far, by thread.
    children: Vec<u32>,
    objects: HashMap<String, ObjectIndex>,
    thread_objects: HashMap<ThreadIndex, ObjectIndex>,
    locations: HashMap<Frame, LocationIndex>,
    /// Who holds each lock, and how often.
    holders: HashMap<ObjectIndex, (ThreadIndex, u32)>,
}

impl Builder {
    fn new() -> Builder {
        let trace = Trace {
            program: String::new(),
            arguments: Vec::new(),
            threads: Vec::new(),
            objects: vec![Object::none()],
            locations: vec![Location::default()],
            stacks: vec![StackNode::default()],
            events: Vec::new(),
            pending: Vec::new(),
            end: End::Finished,
        };
        Builder {
            trace,
            threads: HashMap::new(),
            names: Vec::new(),
            children: Vec::new(),
            objects: HashMap::new(),
            thread_objects: HashMap::new(),
            locations: HashMap::new(),
            holders: HashMap::new(),
        }
    }

    fn operation(
        &mut self,
        thread: &str,
        verb: &str,
        operand: &str,
        location: LocationIndex,
    ) -> Result<(), Wrong> {
        let thread = self.thread(thread, ThreadIndex::MAIN);
        let (kind, object) = match verb {
            "r" => (EventKind::Read, self.object(operand)),
            "w" => (EventKind::Write, self.object(operand)),
            "acq" => (EventKind::Lock, self.acquire(thread, operand)?),
            "rel" => (EventKind::Unlock, self.release(thread, operand)?),
            "fork" => (EventKind::Fork, self.fork(thread, operand)?),
            "join" => {
                let child = self.thread(operand, ThreadIndex::MAIN);
                (EventKind::Join, self.thread_object(child))
            }
            "begin" => (EventKind::Begin, ObjectIndex::NONE),
            "end" => (EventKind::End, ObjectIndex::NONE),
            "branch" => return Ok(()),
            _ => return Err(Wrong::UnknownOperation(verb.to_owned())),
        };
        self.trace.events.push(Event {
            thread,
            kind,
            order: MemoryOrder::Relaxed,
            outcome: Outcome::Done,
            size: 0,
            object,
            location,
            stack: StackIndex::EMPTY,
            value: 0,
        });
        Ok(())
    }

    /// The thread of this name; a new one is a child of `parent`.
    fn thread(&mut self, name: &str, parent: ThreadIndex) -> ThreadIndex {
        if let Some(&thread) = self.threads.get(name) {
            return thread;
        }
        let id = match self.children.get_mut(parent.index()) {
            Some(children) => {
                *children += 1;
                self.trace.thread(parent).child(*children)
            }
            None => ThreadId::main(),
        };
        let thread = ThreadIndex::at(self.trace.threads.len());
        self.trace.threads.push(id);
        self.children.push(0);
        self.names.push(name.to_owned());
        self.threads.insert(name.to_owned(), thread);
        thread
    }

    fn fork(&mut self, parent: ThreadIndex, child: &str) -> Result<ObjectIndex, Wrong> {
        if self.threads.contains_key(child) {
            return Err(Wrong::ForkedTwice(child.to_owned()));
        }
        let child = self.thread(child, parent);
        Ok(self.thread_object(child))
    }

    fn thread_object(&mut self, thread: ThreadIndex) -> ObjectIndex {
        let Builder { trace, thread_objects, .. } = self;
        *thread_objects.entry(thread).or_insert_with(|| {
            let display = format!("thread {}", trace.thread(thread));
            trace.objects.push(Object { name: ObjectName::Thread(thread), display });
            ObjectIndex::at(trace.objects.len() - 1)
        })
    }

    fn object(&mut self, name: &str) -> ObjectIndex {
        if let Some(&object) = self.objects.get(name) {
            return object;
        }
        let object = ObjectIndex::at(self.trace.objects.len());
        let stable = ObjectName::Global { symbol: name.to_owned(), offset: 0 };
        self.trace.objects.push(Object { name: stable, display: name.to_owned() });
        self.objects.insert(name.to_owned(), object);
        object
    }

    fn location(&mut self, frame: Frame) -> LocationIndex {
        let Builder { trace, locations, .. } = self;
        *locations.entry(frame).or_insert_with_key(|frame| {
            trace.locations.push(Location { address: 0, frames: vec![frame.clone()] });
            LocationIndex::at(trace.locations.len() - 1)
        })
    }

    fn acquire(&mut self, thread: ThreadIndex, name: &str) -> Result<ObjectIndex, Wrong> {
        let lock = self.object(name);
        let (holder, depth) = self.holders.entry(lock).or_insert((thread, 0));
        if *depth > 0 && *holder != thread {
            return Err(Wrong::TakenTwice {
                thread: self.names[thread.index()].clone(),
                lock: name.to_owned(),
                holder: self.names[holder.index()].clone(),
            });
        }
        (*holder, *depth) = (thread, *depth + 1);
        Ok(lock)
    }

    fn release(&mut self, thread: ThreadIndex, name: &str) -> Result<ObjectIndex, Wrong> {
        let lock = self.object(name);
        match self.holders.get_mut(&lock).filter(|(_, depth)| *depth > 0) {
            Some((holder, depth)) if *holder == thread => *depth -= 1,
            other => {
                return Err(Wrong::ForeignRelease {
                    thread: self.names[thread.index()].clone(),
                    lock: name.to_owned(),
                    holder: other.map(|(holder, _)| self.names[holder.index()].clone()),
                });
            }
        }
        Ok(lock)
    }
}

#[cfg(test)]
mod tests;
