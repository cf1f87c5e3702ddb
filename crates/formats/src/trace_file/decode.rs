//! Bytes as a trace, in the order of the module's specification.

use super::bytes::Reader;
use super::{DETAIL, FormatError, Last, MAGIC, OLDEST_VERSION, OTHER_THREAD, VERSION};
use threadbare_trace::{
    End, EndKind, Event, EventKind, Failure, FailureKind, Frame, Location, LocationIndex, MemoryOrder,
    Object, ObjectIndex, ObjectName, Outcome, Pending, Related, Role, StackIndex, StackNode, ThreadId,
    ThreadIndex, Trace, TracePlace,
};

/// The fewest bytes that an entry of a list can take, by which a count is judged before it is believed.
mod min_bytes {
    pub const NUMBER: usize = 1;
    pub const TEXT: usize = 1;
    pub const THREAD: usize = 2;
    pub const LOCATION: usize = 2;
    pub const FRAME: usize = 4;
    pub const STACK: usize = 2;
    pub const OBJECT: usize = 2;
    pub const EVENT: usize = 6;
    pub const PENDING: usize = 7;
    pub const RELATED: usize = 4;
}

/// Reads a whole trace file.
pub fn read(bytes: &[u8]) -> Result<Trace, FormatError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(FormatError::NotATrace)?;
    let mut reader = Reader::new(bytes, bytes.len() - rest.len());
    let version = reader.byte("a version")?;
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(FormatError::Version { found: version });
    }
    let program = reader.text("the program's path")?;
    let arguments = reader.list("arguments", min_bytes::TEXT, |reader| reader.text("an argument"))?;
    let mut tables = Tables {
        threads: reader.list("threads", min_bytes::THREAD, read_thread)?,
        locations: read_locations(&mut reader)?,
        ..Tables::default()
    };
    tables.stacks = read_stacks(&mut reader, tables.locations.len())?;
    tables.objects = reader.list("objects", min_bytes::OBJECT, |reader| tables.object(reader))?;
    let mut lasts = vec![Last::default(); tables.threads.len()];
    let mut running = ThreadIndex::MAIN;
    let events =
        reader.list("events", min_bytes::EVENT, |reader| tables.event(reader, &mut running, &mut lasts))?;
    let pending = reader.list("pending operations", min_bytes::PENDING, |reader| tables.pending(reader))?;
    let end = tables.end(&mut reader, version)?;
    reader.finish()?;
    let Tables { threads, locations, stacks, objects } = tables;
    Ok(Trace { program, arguments, threads, objects, locations, stacks, events, pending, end })
}

fn read_thread(reader: &mut Reader<'_>) -> Result<ThreadId, FormatError> {
    let offset = reader.offset();
    let path =
        reader.list("a thread's path", min_bytes::NUMBER, |reader| reader.small("a part of a path"))?;
    ThreadId::from_path(&path).ok_or(FormatError::Unexpected {
        offset,
        expected: "a path that begins with the main thread",
        found: path.first().copied().unwrap_or_default().into(),
    })
}

fn read_locations(reader: &mut Reader<'_>) -> Result<Vec<Location>, FormatError> {
    let mut address: u64 = 0;
    reader.list("locations", min_bytes::LOCATION, |reader| {
        address = address.wrapping_add_signed(reader.signed("an address")?);
        let frames = reader.list("frames", min_bytes::FRAME, |reader| {
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
    reader.list("stacks", min_bytes::STACK, |reader| {
        let offset = reader.offset();
        let up = reader.small("a stack's parent")?;
        // Only the root is its own parent, so that every walk towards it ends.
        if up > index || (up == 0 && index > 0) {
            let expected = "a parent that comes before its child";
            return Err(FormatError::Unexpected { offset, expected, found: up.into() });
        }
        let parent = StackIndex::new(index - up);
        index += 1;
        let location = LocationIndex::new(reader.index("a stack's location", locations)?);
        Ok(StackNode { parent, location })
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
    fn thread(&self, reader: &mut Reader<'_>) -> Result<ThreadIndex, FormatError> {
        reader.index("a thread", self.threads.len()).map(ThreadIndex::new)
    }

    fn location(&self, reader: &mut Reader<'_>) -> Result<LocationIndex, FormatError> {
        reader.index("a location", self.locations.len()).map(LocationIndex::new)
    }

    fn stack(&self, reader: &mut Reader<'_>) -> Result<StackIndex, FormatError> {
        reader.index("a stack", self.stacks.len()).map(StackIndex::new)
    }

    fn object(&self, reader: &mut Reader<'_>) -> Result<Object, FormatError> {
        let name = match reader.tag("a kind of object", 5)? {
            0 => ObjectName::None,
            1 => ObjectName::Global { symbol: reader.text("a symbol")?, offset: reader.number("an offset")? },
            2 => ObjectName::Heap {
                site: self.stack(reader)?,
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
        running: &mut ThreadIndex,
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
        // There is always one, unless the trace has no threads: `running` is checked when it changes.
        let last = lasts.get_mut(running.index()).ok_or(FormatError::OutOfRange {
            offset,
            expected: "an event's thread",
            entries: 0,
        })?;
        *last = Last {
            location: LocationIndex::new(reader.index_near(
                "a location",
                last.location.number(),
                self.locations.len(),
            )?),
            stack: StackIndex::new(reader.index_near("a stack", last.stack.number(), self.stacks.len())?),
            object: ObjectIndex::new(reader.index_near(
                "an object",
                last.object.number(),
                self.objects.len(),
            )?),
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
        let kind = reader.known("an event kind", EventKind::from_byte)?;
        Ok(Pending {
            thread,
            kind,
            blocked: reader.tag("0 or 1", 1)? == 1,
            object: ObjectIndex::new(reader.index("an object", self.objects.len())?),
            location: self.location(reader)?,
            stack: self.stack(reader)?,
            holders: reader.list("holders", min_bytes::NUMBER, |reader| self.thread(reader))?,
        })
    }

    fn end(&self, reader: &mut Reader<'_>, version: u8) -> Result<End<TracePlace>, FormatError> {
        Ok(match reader.known("how the run ended", EndKind::from_byte)? {
            EndKind::Finished => End::Finished,
            EndKind::Failed => End::Failed(self.failure(reader, version)?),
            EndKind::EventBound => End::EventBound,
            EndKind::TimeLimit => End::TimeLimit { at: self.last_place(reader, version)? },
            EndKind::MemoryLimit => End::MemoryLimit,
            EndKind::Diverged => {
                End::Diverged { step: reader.small("a step")?, reason: reader.text("a reason")? }
            }
            EndKind::Unsupported => {
                End::Unsupported { message: reader.text("a message")?, at: self.place(reader, version)? }
            }
            EndKind::Exec => {
                End::Exec { program: reader.text("a program")?, at: self.place(reader, version)? }
            }
        })
    }

    fn failure(&self, reader: &mut Reader<'_>, version: u8) -> Result<Failure<TracePlace>, FormatError> {
        let kind = reader.known("a kind of failure", FailureKind::from_number)?;
        let kind = match kind.detail() {
            Some(_) => kind.with_detail(reader.small_signed("a signal or an exit code")?),
            None => kind,
        };
        let mut failure = Failure::new(kind, reader.text("a message")?, self.place(reader, version)?);
        if version > 1 {
            failure.related = reader.list("related places", min_bytes::RELATED, |reader| {
                let role = reader.known("a role", Role::from_byte)?;
                Ok(Related { role, at: self.place(reader, version)? })
            })?;
        }
        Ok(failure)
    }

    /// Where a run was that was stopped, if that is known.
    fn last_place(&self, reader: &mut Reader<'_>, version: u8) -> Result<Option<TracePlace>, FormatError> {
        if version == 1 || reader.tag("0 or 1 places", 1)? == 0 {
            return Ok(None);
        }
        self.place(reader, version).map(Some)
    }

    fn place(&self, reader: &mut Reader<'_>, version: u8) -> Result<TracePlace, FormatError> {
        Ok(TracePlace {
            thread: self.thread(reader)?,
            location: self.location(reader)?,
            stack: if version == 1 { StackIndex::EMPTY } else { self.stack(reader)? },
        })
    }
}

/// The event kind that a byte at `offset` stands for.
fn kind(byte: u8, offset: usize) -> Result<EventKind, FormatError> {
    let expected = "an event kind";
    EventKind::from_byte(byte).ok_or(FormatError::Unexpected { offset, expected, found: byte.into() })
}

fn read_detail(reader: &mut Reader<'_>) -> Result<(MemoryOrder, Outcome), FormatError> {
    reader.known("a memory order and an outcome", |detail| {
        MemoryOrder::from_byte(detail & 0xf).zip(Outcome::from_byte(detail >> 4))
    })
}
