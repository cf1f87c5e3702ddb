//! The functions of message queues that a program calls. What they do is in [`message_queue`].

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::Patience;
use super::message_queue::{self, Attributes, Message, Queue};
use crate::entry::intercept::intercept;
use crate::entry::process;
use crate::os::system::fail;
use crate::time::clock;

type Name = *const c_char;
type Time = *const libc::timespec;
type AttributesIn = *const libc::mq_attr;
type AttributesOut = *mut libc::mq_attr;

/// A name, checked as libc and the kernel do.
///
/// # Safety
/// `name` is a string.
unsafe fn checked<'a>(name: Name) -> Result<&'a [u8], c_int> {
    const MAX_NAME: usize = 255;
    // SAFETY: the caller's promise.
    match unsafe { CStr::from_ptr(name) }.to_bytes().strip_prefix(b"/") {
        None => Err(libc::EINVAL),
        Some([]) => Err(libc::ENOENT),
        Some(rest) if rest.contains(&b'/') => Err(libc::EACCES),
        Some(rest) if rest.len() > MAX_NAME => Err(libc::ENAMETOOLONG),
        Some(rest) => Ok(rest),
    }
}

/// What `mq_open` does.
///
/// # Safety
/// `name` is a string. With `O_CREAT` in the flags, `attributes` is null or can be read.
unsafe fn open(name: Name, flags: c_int, attributes: AttributesIn, pc: u64) -> Result<c_int, c_int> {
    /// What the kernel makes of no attributes.
    const DEFAULT: (i64, i64) = (10, 8192);
    // SAFETY: the caller's promise.
    let name = unsafe { checked(name) }?;
    let new = if flags & libc::O_CREAT == 0 {
        None
    } else {
        // SAFETY: the caller's promise.
        let wanted = unsafe { attributes.as_ref() };
        let (messages, bytes) = wanted.map_or(DEFAULT, |wanted| (wanted.mq_maxmsg, wanted.mq_msgsize));
        Some(Queue::new(messages, bytes).ok_or(libc::EINVAL)?)
    };
    message_queue::open(name, flags, new, pc)
}

/// Patience until a time; endless without one.
///
/// # Safety
/// `time` is null or points to a time.
unsafe fn patience(time: Time) -> Result<Patience, c_int> {
    // SAFETY: the caller's promise.
    match unsafe { time.as_ref() } {
        None => Ok(Patience::Endless),
        Some(time) if !clock::is_valid(time) => Err(libc::EINVAL),
        // SAFETY: the caller's promise.
        Some(_) => Ok(unsafe { clock::until(time) }),
    }
}

/// # Safety
/// `bytes` has `len` bytes, and `time` is null or points to a time.
unsafe fn send(
    queue: c_int,
    bytes: *const u8,
    len: usize,
    priority: c_uint,
    time: Time,
    pc: u64,
) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    let (bytes, patience) = unsafe { (std::slice::from_raw_parts(bytes, len).to_vec(), patience(time)?) };
    message_queue::send(queue, Message { priority, bytes }, patience, pc)
}

/// # Safety
/// `buffer` has room for `len` bytes, `priority` is null or can be written to, and `time` is null or points to a time.
unsafe fn receive(
    queue: c_int,
    buffer: *mut u8,
    len: usize,
    priority: *mut c_uint,
    time: Time,
    pc: u64,
) -> Result<isize, c_int> {
    // SAFETY: the caller's promise.
    let patience = unsafe { patience(time) }?;
    let message = message_queue::receive(queue, len, patience, pc)?;
    // SAFETY: the caller's promise; a message is no longer than there is room for.
    unsafe {
        buffer.copy_from_nonoverlapping(message.bytes.as_ptr(), message.bytes.len());
        if !priority.is_null() {
            priority.write(message.priority);
        }
    }
    Ok(message.bytes.len() as isize)
}

/// Tells the program what a queue is, or was, like.
///
/// # Safety
/// `place` is null or can be written to.
unsafe fn tell(attributes: &Attributes, place: AttributesOut) {
    if !place.is_null() {
        // SAFETY: the caller's promise; all zeroes are attributes.
        unsafe {
            place.write(std::mem::zeroed());
            (*place).mq_flags = attributes.flags.into();
            (*place).mq_maxmsg = attributes.max_messages as i64;
            (*place).mq_msgsize = attributes.max_bytes as i64;
            (*place).mq_curmsgs = attributes.messages as i64;
        }
    }
}

/// As functions of libc's say that something was done.
fn result(done: Result<(), c_int>) -> c_int {
    done.map_or_else(fail, |()| 0)
}

intercept! {
    /// The last two arguments are there only with `O_CREAT`.
    fn mq_open(name: Name, flags: c_int, mode: c_uint, attributes: AttributesIn; pc) -> c_int {
        // SAFETY: the program promises libc a string, and attributes or null.
        unsafe { open(name, flags, attributes, pc) }.unwrap_or_else(fail)
    }

    /// What headers make of `mq_open` with two arguments, when they check what they can.
    fn __mq_open_2(name: Name, flags: c_int; pc) -> c_int {
        // SAFETY: the program's name; nothing is created.
        unsafe { open(name, flags & !libc::O_CREAT, std::ptr::null(), pc) }.unwrap_or_else(fail)
    }

    fn mq_close(queue: c_int; pc) -> c_int {
        result(message_queue::close(queue, pc))
    }

    fn mq_unlink(name: Name; pc) -> c_int {
        // SAFETY: the program promises libc a string.
        result(unsafe { checked(name) }.and_then(|name| message_queue::unlink(name, pc)))
    }

    fn mq_send(queue: c_int, bytes: *const u8, len: usize, priority: c_uint; pc) -> c_int {
        // SAFETY: the program promises libc so many bytes.
        result(unsafe { send(queue, bytes, len, priority, std::ptr::null(), pc) })
    }

    fn mq_timedsend(queue: c_int, bytes: *const u8, len: usize, priority: c_uint, time: Time; pc) -> c_int {
        // SAFETY: the program promises libc so many bytes, and a time or null.
        result(unsafe { send(queue, bytes, len, priority, time, pc) })
    }

    fn mq_receive(queue: c_int, buffer: *mut u8, len: usize, priority: *mut c_uint; pc) -> isize {
        // SAFETY: the program's buffer and place for the priority.
        unsafe { receive(queue, buffer, len, priority, std::ptr::null(), pc) }.unwrap_or_else(|error| fail(error) as isize)
    }

    fn mq_timedreceive(
        queue: c_int, buffer: *mut u8, len: usize, priority: *mut c_uint, time: Time; pc
    ) -> isize {
        // SAFETY: the program's buffer, place for the priority, and time.
        unsafe { receive(queue, buffer, len, priority, time, pc) }.unwrap_or_else(|error| fail(error) as isize)
    }

    fn mq_getattr(queue: c_int, attributes: AttributesOut; pc) -> c_int {
        let found = message_queue::attributes(queue, None, pc);
        // SAFETY: the program promises libc a place for the attributes.
        result(found.map(|found| unsafe { tell(&found, attributes) }))
    }

    fn mq_setattr(queue: c_int, new: AttributesIn, old: AttributesOut; pc) -> c_int {
        // SAFETY: the program promises libc attributes, or null.
        let flags = unsafe { new.as_ref() }.map(|new| new.mq_flags);
        let nonblocking = i64::from(libc::O_NONBLOCK);
        if flags.is_some_and(|flags| flags & !nonblocking != 0) {
            return fail(libc::EINVAL);
        }
        let before = message_queue::attributes(queue, flags.map(|flags| flags & nonblocking != 0), pc);
        // SAFETY: the program promises libc a place for the attributes.
        result(before.map(|before| unsafe { tell(&before, old) }))
    }

    fn mq_notify(queue: c_int, event: *const libc::sigevent; pc) -> c_int {
        // SAFETY: the program promises libc a description of what it wants, or null.
        let event = unsafe { event.as_ref() };
        if event.is_some_and(|event| event.sigev_notify != libc::SIGEV_NONE) {
            let what = "a message queue that sends a signal or starts a thread (mq_notify) is not supported";
            process::unsupported(what, pc);
        }
        result(message_queue::notify(queue, event.is_some(), pc))
    }
}
