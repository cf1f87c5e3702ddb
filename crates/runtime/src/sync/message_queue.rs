//! POSIX message queues.
//!
//! A queue is memory of the runtime's, and the kernel knows nothing of it. So each run has queues of its own: what one
//! run leaves in them, no other run finds. The price is that other processes cannot take part. A descriptor is that of
//! `/dev/null`, which gives it a number that nothing else in the process has.
//!
//! Each operation is input or output through a descriptor, and recorded as such.

use std::cell::Cell;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use super::{Patience, cancellation};
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::state;
use crate::schedule::wait::Wait;

/// A queue; it is never freed.
pub struct Queue {
    max_messages: usize,
    max_bytes: usize,
    /// In the order in which they are received.
    messages: Carrier<Vec<Message>>,
    /// Somebody is to be notified, in a way that nobody notices.
    has_notification: Cell<bool>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    pub priority: u32,
    pub bytes: Vec<u8>,
}

/// What `mq_open` gives out.
#[derive(Clone, Copy)]
struct Description {
    descriptor: c_int,
    queue: &'static Queue,
    /// Of `open`: the access mode, and `O_NONBLOCK`.
    flags: c_int,
}

/// Queues that have a name.
static NAMED: Carrier<Vec<(Vec<u8>, &'static Queue)>> = Carrier::new(Vec::new());
static OPEN: Carrier<Vec<Description>> = Carrier::new(Vec::new());

impl Queue {
    /// A queue for so many messages of so many bytes; `None` if the kernel would not make one.
    pub fn new(max_messages: i64, max_bytes: i64) -> Option<Queue> {
        /// The kernel's limits, which no setting raises.
        const MAX_MESSAGES: i64 = 65_536;
        const MAX_BYTES: i64 = 16 << 20;
        let is_possible = (1..=MAX_MESSAGES).contains(&max_messages) && (1..=MAX_BYTES).contains(&max_bytes);
        is_possible.then(|| Queue {
            max_messages: max_messages as usize,
            max_bytes: max_bytes as usize,
            messages: Carrier::new(Vec::new()),
            has_notification: Cell::new(false),
        })
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    pub fn len(&self) -> usize {
        self.messages.with(|messages| messages.len())
    }

    pub fn has_message(&self) -> bool {
        self.len() > 0
    }

    pub fn has_room(&self) -> bool {
        self.len() < self.max_messages
    }

    /// Puts a message behind those of the same priority or a higher one.
    fn put(&self, message: Message) {
        self.messages.with(|messages| {
            let place = messages.partition_point(|before| before.priority >= message.priority);
            messages.insert(place, message);
        });
    }

    fn take(&self) -> Option<Message> {
        self.messages.with(|messages| (!messages.is_empty()).then(|| messages.remove(0)))
    }
}

/// Operations fail with an error number.
type Result<T> = std::result::Result<T, c_int>;

fn find(descriptor: c_int) -> Result<Description> {
    let is_it = |open: &&Description| open.descriptor == descriptor;
    OPEN.with(|open| open.iter().find(is_it).copied()).ok_or(libc::EBADF)
}

/// Does something at once that other threads can notice: its result goes into the log.
fn at_once<T>(descriptor: c_int, pc: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let pc = users_call(pc);
    point(Operation::new(EventKind::Io, pc, 0));
    let result = work();
    let outcome = if result.is_ok() { Outcome::Done } else { Outcome::Error };
    Entry::new(EventKind::Io, pc, 0).outcome(outcome).value(descriptor as u64).write();
    result
}

/// A number that nothing else in the process has.
fn new_descriptor() -> Result<c_int> {
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
    // SAFETY: the path ends in a zero.
    let answer = unsafe { system::call(libc::SYS_open, [c"/dev/null".as_ptr() as u64, flags, 0, 0, 0, 0]) };
    if answer < 0 { Err(-answer as c_int) } else { Ok(answer as c_int) }
}

/// Opens the queue of this name. If there is none, it becomes `new`, if that is given.
pub fn open(name: &[u8], flags: c_int, new: Option<Queue>, pc: u64) -> Result<c_int> {
    at_once(-1, pc, || {
        let is_it = |(other, _): &&(Vec<u8>, &'static Queue)| other == name;
        let found = NAMED.with(|named| named.iter().find(is_it).map(|&(_, queue)| queue));
        let queue = match (found, new) {
            (Some(_), Some(_)) if flags & libc::O_EXCL != 0 => return Err(libc::EEXIST),
            (Some(queue), _) => queue,
            (None, None) => return Err(libc::ENOENT),
            (None, Some(new)) => {
                let queue: &'static Queue = Box::leak(Box::new(new));
                NAMED.with(|named| named.push((name.to_vec(), queue)));
                queue
            }
        };
        let descriptor = new_descriptor()?;
        OPEN.with(|open| open.push(Description { descriptor, queue, flags }));
        Ok(descriptor)
    })
}

pub fn close(descriptor: c_int, pc: u64) -> Result<()> {
    at_once(descriptor, pc, || {
        find(descriptor)?;
        OPEN.with(|open| open.retain(|open| open.descriptor != descriptor));
        system::close(descriptor);
        Ok(())
    })
}

/// Takes the name away. Whoever has the queue open keeps it.
pub fn unlink(name: &[u8], pc: u64) -> Result<()> {
    at_once(-1, pc, || {
        NAMED.with(|named| {
            let place = named.iter().position(|(other, _)| other == name).ok_or(libc::ENOENT)?;
            named.remove(place);
            Ok(())
        })
    })
}

/// Comes before a message is sent or received; the error if that cannot be done then.
fn wait(
    open: &Description,
    patience: Patience,
    wait: Wait,
    is_ready: fn(&Queue) -> bool,
    pc: u64,
) -> Result<()> {
    let is_patient = open.flags & libc::O_NONBLOCK == 0;
    let patience = if is_patient { patience } else { Patience::None };
    let timed_out = patience.point(Operation::new(EventKind::Io, pc, 0).cancellable(), wait);
    cancellation::act_at(EventKind::Io, pc, 0);
    let (outcome, error) = match (timed_out, is_ready(open.queue)) {
        (true, _) => (Outcome::TimedOut, libc::ETIMEDOUT),
        (false, false) => (Outcome::Failed, libc::EAGAIN),
        (false, true) => return Ok(()),
    };
    Entry::new(EventKind::Io, pc, 0).outcome(outcome).value(open.descriptor as u64).write();
    Err(error)
}

/// A message has been sent or received: whoever waits at the queue looks again.
fn done(open: &Description, pc: u64) {
    Entry::new(EventKind::Io, pc, 0).value(open.descriptor as u64).write();
    scheduler::released(open.queue.address());
}

pub fn send(descriptor: c_int, message: Message, patience: Patience, pc: u64) -> Result<()> {
    /// The first priority that is too high.
    const MAX_PRIORITY: u32 = 32_768;
    let open = find(descriptor)?;
    if open.flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(libc::EBADF);
    }
    if message.priority >= MAX_PRIORITY {
        return Err(libc::EINVAL);
    }
    if message.bytes.len() > open.queue.max_bytes {
        return Err(libc::EMSGSIZE);
    }
    let pc = users_call(pc);
    wait(&open, patience, Wait::Room(open.queue), Queue::has_room, pc)?;
    open.queue.put(message);
    done(&open, pc);
    Ok(())
}

/// Takes the oldest message of the highest priority. There must be room for any that fits into the queue.
pub fn receive(descriptor: c_int, room: usize, patience: Patience, pc: u64) -> Result<Message> {
    let open = find(descriptor)?;
    if open.flags & libc::O_ACCMODE == libc::O_WRONLY {
        return Err(libc::EBADF);
    }
    if room < open.queue.max_bytes {
        return Err(libc::EMSGSIZE);
    }
    let pc = users_call(pc);
    wait(&open, patience, Wait::Message(open.queue), Queue::has_message, pc)?;
    let message = open.queue.take().ok_or(libc::EAGAIN)?;
    done(&open, pc);
    state::learns(u64::from(message.priority));
    // SAFETY: the message owns these bytes.
    unsafe { state::learns_bytes(message.bytes.as_ptr() as u64, message.bytes.len() as u64) };
    Ok(message)
}

/// How a queue is set up, and how many messages are in it.
pub struct Attributes {
    pub flags: c_int,
    pub max_messages: usize,
    pub max_bytes: usize,
    pub messages: usize,
}

/// What the queue is like. If `nonblocking` is given, that holds for this descriptor from now on.
pub fn attributes(descriptor: c_int, nonblocking: Option<bool>, pc: u64) -> Result<Attributes> {
    at_once(descriptor, pc, || {
        let Description { queue, flags, .. } = find(descriptor)?;
        let new_flags = match nonblocking {
            None => flags,
            Some(false) => flags & !libc::O_NONBLOCK,
            Some(true) => flags | libc::O_NONBLOCK,
        };
        OPEN.with(|open| {
            let is_it = |open: &&mut Description| open.descriptor == descriptor;
            open.iter_mut().filter(is_it).for_each(|open| open.flags = new_flags);
        });
        let messages = queue.len();
        state::learns(messages as u64);
        let (max_messages, max_bytes) = (queue.max_messages, queue.max_bytes);
        Ok(Attributes { flags: flags & libc::O_NONBLOCK, max_messages, max_bytes, messages })
    })
}

/// Registers the process to be notified of a message, or takes that back. Nobody notices a notification: only
/// `SIGEV_NONE` is modelled.
pub fn notify(descriptor: c_int, is_wanted: bool, pc: u64) -> Result<()> {
    at_once(descriptor, pc, || {
        let has_notification = &find(descriptor)?.queue.has_notification;
        if is_wanted && has_notification.get() {
            return Err(libc::EBUSY);
        }
        has_notification.set(is_wanted);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(priority: u32, byte: u8) -> Message {
        Message { priority, bytes: vec![byte] }
    }

    /// The highest priority comes first, and among equals the oldest.
    #[test]
    fn messages_come_by_priority_and_age() {
        let queue = Queue::new(10, 1).expect("it is possible");
        for (priority, byte) in [(1, b'a'), (2, b'b'), (1, b'c'), (0, b'd'), (2, b'e')] {
            queue.put(message(priority, byte));
        }
        let received: Vec<u8> =
            std::iter::from_fn(|| queue.take()).flat_map(|message| message.bytes).collect();
        assert_eq!(received, b"beacd");
    }

    /// A full queue has no room, and an empty one no message: these are what threads wait for.
    #[test]
    fn room_and_messages() {
        let queue = Queue::new(1, 8).expect("it is possible");
        assert!(queue.has_room() && !queue.has_message());
        queue.put(message(0, 0));
        assert!(!queue.has_room() && queue.has_message());
        assert_eq!(queue.take(), Some(message(0, 0)));
        assert_eq!((queue.take(), queue.len()), (None, 0));
    }

    /// Sizes that the kernel refuses are refused.
    #[test]
    fn impossible_queues() {
        for (messages, bytes) in [(0, 8), (8, 0), (-1, 8), (65_537, 8), (8, (16 << 20) + 1)] {
            assert!(Queue::new(messages, bytes).is_none(), "{messages} {bytes}");
        }
    }
}
