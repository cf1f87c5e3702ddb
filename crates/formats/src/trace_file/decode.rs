//! Bytes as a trace, in the order of the module's specification.

use super::bytes::Reader;
use super::{DETAIL, FormatError, Last, MAGIC, OTHER_THREAD, VERSION};
use threadbare_trace::{
    End, Event, EventKind, FailureKind, Frame, Location, MemoryOrder, Object, ObjectName, Outcome, Pending,
    StackNode, ThreadId, Trace,
};

/// The fewest bytes that an entry of a list can take, by which a count is judged before it is believed.
mod least {
    pub const NUMBER: usize = 1;
    pub const TEXT: usize = 1;
    pub const THREAD: usize = 2;
    pub const LOCATION: usize = 2;
    pub const FRAME: usize = 4;
    pub const STACK: usize = 2;
    pub const OBJECT: usize = 2;
    pub const EVENT: usize = 6;
    pub const PENDING: usize = 7;
}

/// Reads a whole trace file.
pub fn read(bytes: &[u8]) -> Result<Trace, FormatError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(FormatError::NotATrace)?;
    let mut reader = Reader::new(bytes, bytes.len() - rest.len());
    match reader.byte("a version")? {
        VERSION => {}
        found => return Err(FormatError::Version { found }),
    }
    let program = reader.text("the program's path")?;
    let arguments = reader.list("arguments", least::TEXT, |reader| reader.text("an argument"))?;
    let mut tables = Tables {
        threads: reader.list("threads", least::THREAD, read_thread)?,
        locations: read_locations(&mut reader)?,
        ..Tables::default()
    };
    tables.stacks = read_stacks(&mut reader, tables.locations.len())?;
    tables.objects = reader.list("objects", least::OBJECT, |reader| tables.object(reader))?;
    let mut lasts = vec![Last::default(); tables.threads.len()];
    let mut running = 0;
    let events =
        reader.list("events", least::EVENT, |reader| tables.event(reader, &mut running, &mut lasts))?;
    let pending = reader.list("pending operations", least::PENDING, |reader| tables.pending(reader))?;
    let end = tables.end(&mut reader)?;
    reader.finish()?;
    let Tables { threads, locations, stacks, objects } = tables;
    Ok(Trace { program, arguments, threads, objects, locations, stacks, events, pending, end })
}

fn read_thread(reader: &mut Reader<'_>) -> Result<ThreadId, FormatError> {
    let offset = reader.offset();
    let path = reader.list("a thread's path", least::NUMBER, |reader| reader.small("a part of a path"))?;
    ThreadId::from_path(&path).ok_or(FormatError::Unexpected {
        offset,
        expected: "a path that begins with the main thread",
        found: path.first().copied().unwrap_or_default().into(),
    })
}

fn read_locations(reader: &mut Reader<'_>) -> Result<Vec<Location>, FormatError> {
    let mut address: u64 = 0;
    reader.list("locations", least::LOCATION, |reader| {
        address = address.wrapping_add_signed(reader.signed("an address")?);
        let frames = reader.list("frames", least::FRAME, |reader| {
            Ok(Frame {
                function: reader.text("a function")?,
                file: reader.text("a file")?,
                line: reader.small("a line")?,
                column: reader.small("a column")?,
            })
        })?;
        Ok(Location { address, frames })
    })
}

fn read_stacks(reader: &mut Reader<'_>, locations: usize) -> Result<Vec<StackNode>, FormatError> {
    let mut index = 0;
    reader.list("stacks", least::STACK, |reader| {
        let offset = reader.offset();
        let up = reader.small("a stack's parent")?;
        // Only the root is its own parent, so that every walk towards it ends.
        if up > index || (up == 0 && index > 0) {
            let expected = "a parent that comes before its child";
            return Err(FormatError::Unexpected { offset, expected, found: up.into() });
        }
        let parent = index - up;
        index += 1;
        Ok(StackNode { parent, location: reader.index("a stack's location", locations)? })
    })
}

/// What has been read of the tables, against which indices are checked.
#[derive(Default)]
struct Tables {
    threads: Vec<ThreadId>,
    locations: Vec<Location>,
    stacks: Vec<StackNode>,
    objects: Vec<Object>,
}

impl Tables {
    fn thread(&self, reader: &mut Reader<'_>) -> Result<u32, FormatError> {
        reader.index("a thread", self.threads.len())
    }

    fn location(&self, reader: &mut Reader<'_>) -> Result<u32, FormatError> {
        reader.index("a location", self.locations.len())
    }

    fn object(&self, reader: &mut Reader<'_>) -> Result<Object, FormatError> {
        let name = match reader.tag("a kind of object", 5)? {
            0 => ObjectName::None,
            1 => ObjectName::Global { symbol: reader.text("a symbol")?, offset: reader.number("an offset")? },
            2 => ObjectName::Heap {
                site: reader.index("a stack", self.stacks.len())?,
                thread: self.thread(reader)?,
                ordinal: reader.small("an ordinal")?,
                offset: reader.number("an offset")?,
            },
            3 => ObjectName::Stack { thread: self.thread(reader)?, offset: reader.signed("an offset")? },
            4 => ObjectName::Thread(self.thread(reader)?),
            _ => ObjectName::Memory { address: reader.number("an address")? },
        };
        Ok(Object { name, display: reader.text("an object's name")? })
    }

    fn event(
        &self,
        reader: &mut Reader<'_>,
        running: &mut u32,
        lasts: &mut [Last],
    ) -> Result<Event, FormatError> {
        let offset = reader.offset();
        let head = reader.byte("an event")?;
        let kind = kind(head & !(OTHER_THREAD | DETAIL), offset)?;
        if head & OTHER_THREAD != 0 {
            *running = self.thread(reader)?;
        }
        let (order, outcome) =
            if head & DETAIL != 0 { read_detail(reader)? } else { (MemoryOrder::Relaxed, Outcome::Done) };
        // Only without any thread can there be none: `running` starts at 0 and is checked when it changes.
        let last = lasts.get_mut(*running as usize).ok_or(FormatError::OutOfRange {
            offset,
            expected: "an event's thread",
            entries: 0,
        })?;
        *last = Last {
            location: reader.index_near("a location", last.location, self.locations.len())?,
            stack: reader.index_near("a stack", last.stack, self.stacks.len())?,
            object: reader.index_near("an object", last.object, self.objects.len())?,
        };
        Ok(Event {
            thread: *running,
            kind,
            order,
            outcome,
            size: reader.small("a size")?,
            object: last.object,
            location: last.location,
            stack: last.stack,
            value: reader.number("a value")?,
        })
    }

    fn pending(&self, reader: &mut Reader<'_>) -> Result<Pending, FormatError> {
        let thread = self.thread(reader)?;
        let offset = reader.offset();
        let kind = kind(reader.byte("an event kind")?, offset)?;
        Ok(Pending {
            thread,
            kind,
            blocked: reader.tag("0 or 1", 1)? == 1,
            object: reader.index("an object", self.objects.len())?,
            location: self.location(reader)?,
            stack: reader.index("a stack", self.stacks.len())?,
            holders: reader.list("holders", least::NUMBER, |reader| self.thread(reader))?,
        })
    }

    fn end(&self, reader: &mut Reader<'_>) -> Result<End, FormatError> {
        Ok(match reader.tag("how the run ended", 6)? {
            0 => End::Finished,
            1 => End::Failed {
                kind: read_failure(reader)?,
                message: reader.text("a message")?,
                thread: self.thread(reader)?,
                location: self.location(reader)?,
            },
            2 => End::EventBound,
            3 => End::TimeLimit,
            4 => End::MemoryLimit,
            5 => End::Diverged { step: reader.small("a step")?, reason: reader.text("a reason")? },
            _ => End::Unsupported {
                message: reader.text("a message")?,
                thread: self.thread(reader)?,
                location: self.location(reader)?,
            },
        })
    }
}

fn kind(byte: u8, offset: usize) -> Result<EventKind, FormatError> {
    let expected = "an event kind";
    EventKind::from_byte(byte).ok_or(FormatError::Unexpected { offset, expected, found: byte.into() })
}

fn read_detail(reader: &mut Reader<'_>) -> Result<(MemoryOrder, Outcome), FormatError> {
    let offset = reader.offset();
    let detail = reader.byte("a memory order and an outcome")?;
    MemoryOrder::from_byte(detail & 0xf).zip(Outcome::from_byte(detail >> 4)).ok_or(FormatError::Unexpected {
        offset,
        expected: "a memory order and an outcome",
        found: detail.into(),
    })
}

fn read_failure(reader: &mut Reader<'_>) -> Result<FailureKind, FormatError> {
    let offset = reader.offset();
    Ok(match reader.byte("a kind of failure")? {
        1 => FailureKind::Assertion,
        2 => FailureKind::Abort,
        3 => FailureKind::Signal(reader.small_signed("a signal")?),
        4 => FailureKind::Exception,
        5 => FailureKind::ExitCode(reader.small_signed("an exit code")?),
        6 => FailureKind::Deadlock,
        7 => FailureKind::Livelock,
        8 => FailureKind::UseAfterFree,
        9 => FailureKind::DoubleFree,
        10 => FailureKind::InvalidFree,
        11 => FailureKind::HeapOverflow,
        12 => FailureKind::DataRace,
        13 => FailureKind::Panic,
        found => {
            let expected = "a kind of failure";
            return Err(FormatError::Unexpected { offset, expected, found: found.into() });
        }
    })
}
