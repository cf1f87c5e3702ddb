//! The binary trace file, `.tbt`.
//!
//! A file is the [`MAGIC`], one byte of [`VERSION`], and then the parts of a [`Trace`](threadbare_trace::Trace) one
//! after the other, with nothing between or after them:
//!
//! ```text
//! file      = "TBTRACE\n" version program arguments threads locations stacks objects events pending end
//! program   = text
//! arguments = list of text
//! threads   = list of (list of number)         the path of creation, the main thread's 0 first
//! locations = list of (signed: address minus that of the location before, modulo 2^64; 0 before the first)
//!                     (list of frame)          innermost first
//! frame     = text: function   text: file   number: line   number: column
//! stacks    = list of (number: own index minus that of the parent; 0 for stack 0 only)
//!                     (number: location)
//! objects   = list of (name) (text: display)
//! name      = 0                                none
//!           | 1  text: symbol   number: offset                                       global
//!           | 2  number: stack   number: thread   number: ordinal   number: offset   heap
//!           | 3  number: thread   signed: offset                                     stack
//!           | 4  number: thread                                                      thread
//!           | 5  number: address                                                     memory
//! events    = list of event                    see below
//! pending   = list of (number: thread) (byte: kind) (byte: 1 if blocked, else 0)
//!                     (number: object) (number: location) (number: stack)
//!                     (list of number: holders)
//! end       = 0                                                                    Finished
//!           | 1  failure   text: message   place   (list of related)                 Failed
//!           | 2                                                                      EventBound
//!           | 3  (list of place: none, or one)                                       TimeLimit
//!           | 4                                                                      MemoryLimit
//!           | 5  number: step   text: reason                                         Diverged
//!           | 6  text: message   place                                               Unsupported
//!           | 7  text: program   place                                               Exec
//! place     = number: thread   number: location   number: stack
//! related   = role   place
//! role      = 1 Allocated | 2 Freed | 3 OtherAccess | 4 Destroyed | 5 Used
//! failure   = 1 Assertion | 2 Abort | 3 Signal, signed: its number | 4 Exception
//!           | 5 ExitCode, signed: the code | 6 Deadlock | 7 Livelock | 8 UseAfterFree | 9 DoubleFree
//!           | 10 InvalidFree | 11 HeapOverflow | 12 DataRace | 13 Panic | 14 UseAfterDestroy
//!           | 15 DestroyedInUse | 16 NotInitialised | 17 UseAfterReturn
//! list of x = number: how many   x x x …
//! text      = number: bytes   that many bytes of UTF-8
//! number    = 7 bits a byte, the lowest first; the top bit says that another byte follows (LEB128)
//! signed    = number: 2n for n ≥ 0, -2n - 1 for n < 0 (zig-zag)
//! ```
//!
//! Tags, kinds and versions are single bytes. Every table is written whole, with its entry 0.
//!
//! # Events
//!
//! Almost all of a file is events, so they are made of differences, which are small because tables are filled
//! in the order in which a run first meets their entries, and because a thread tends to stay where it is:
//!
//! ```text
//! event = byte: kind, plus 0x40 if another thread ran before, plus 0x80 if there is a detail
//!         number: thread                 only with 0x40
//!         byte: order + 16 · outcome     only with 0x80; without it the event is relaxed and done
//!         signed: location   signed: stack   signed: object
//!         number: size   number: value
//! ```
//!
//! "Before" is thread 0 for the first event. Location, stack and object are differences from this thread's
//! event before this one, or from 0. A store of a small number takes 6 bytes, one of an address 12.
//!
//! # Old reader, new data
//!
//! A reader refuses a version it does not know, at once and by name, and changes nothing in the file.
//! Whatever changes the bytes bumps [`VERSION`], and so does a new event kind, memory order, outcome, failure, role or
//! way to end: a file is then refused at its head and not somewhere in the middle. A newer reader keeps reading the
//! older versions:
//!
//! | version | differs from the next in |
//! |---|---|
//! | 1 | A place has no stack. A time limit has no place. A failure has no related places: its message names them, so what a person reads is the same. |
//! | 2 | It has no failure after 13, no role after 3, and no outcome after 3. |
//! | 3 | It has no event after 39. |
//! | 4 | This one. |
//!
//! # Damaged files
//!
//! [`read`] never panics and never allocates more than a fixed multiple of the file's length: a count is
//! believed only if the bytes left could hold that many. Each index is checked against its table, and a
//! stack's parent comes before it, so whoever holds a [`Trace`](threadbare_trace::Trace) that was read may index and
//! walk without care. There is no checksum: a file that was cut short is always refused, one with flipped
//! bits only if they make no sense.

mod bytes;
mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;

pub use self::decode::read;
pub use self::encode::write;
use threadbare_trace::{EventKind, LocationIndex, ObjectIndex, StackIndex};

/// The first bytes of every trace file.
pub const MAGIC: &[u8; 8] = b"TBTRACE\n";
/// The version that is written.
pub const VERSION: u8 = 5;
/// The oldest version that is read.
pub const OLDEST_VERSION: u8 = 1;

/// A file was not a trace that this build can read. Offsets are bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// It does not begin with [`MAGIC`].
    NotATrace,
    /// It is of a version that this build does not know.
    Version { found: u8 },
    /// It ends before it should.
    Truncated { offset: usize, expected: &'static str },
    /// A number has none of the values it may have here.
    Unexpected { offset: usize, expected: &'static str, found: u64 },
    /// An index points outside its table.
    OutOfRange { offset: usize, expected: &'static str, entries: usize },
    /// A text is not UTF-8.
    NotUtf8 { offset: usize, expected: &'static str },
    /// It goes on after the end of the trace.
    Excess { offset: usize },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::NotATrace => f.write_str("expected a Threadbare trace, found another kind of file"),
            FormatError::Version { found } => {
                write!(
                    f,
                    "expected version {OLDEST_VERSION} to {VERSION} of the trace format, found version {found}"
                )
            }
            FormatError::Truncated { offset, expected } => {
                write!(f, "expected {expected} at byte {offset}, found the end of the file")
            }
            FormatError::Unexpected { offset, expected, found } => {
                write!(f, "expected {expected} at byte {offset}, found {found}")
            }
            FormatError::OutOfRange { offset, expected, entries } => {
                write!(
                    f,
                    "expected {expected} at byte {offset}, found an index outside its table of {entries}"
                )
            }
            FormatError::NotUtf8 { offset, expected } => {
                write!(f, "expected {expected} at byte {offset}, found bytes that are not UTF-8")
            }
            FormatError::Excess { offset } => {
                write!(f, "expected the end of the file at byte {offset}, found more")
            }
        }
    }
}

impl std::error::Error for FormatError {}

/// The bits of an event's first byte that are not its kind.
const OTHER_THREAD: u8 = 0x40;
const DETAIL: u8 = 0x80;

const _: () = {
    let mut i = 0;
    while i < EventKind::ALL.len() {
        assert!((EventKind::ALL[i] as u8) < OTHER_THREAD, "a kind must leave room for the flags");
        i += 1;
    }
};

/// Where a thread was at its last event; the next one is written as the difference.
#[derive(Clone, Copy, Default)]
struct Last {
    location: LocationIndex,
    stack: StackIndex,
    object: ObjectIndex,
}
