//! The functions that a program calls to connect sockets, to send and to receive.
//!
//! A call waits unless the socket or a flag of the call says otherwise. The wait is the scheduler's, so the kernel is
//! always asked not to wait.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;

use super::io::{self, Call, is_modelled};
use super::parts::Parts;
use super::{raw_calls, system};
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::hooks::calls;
use crate::memory::gone;
use crate::schedule::scheduler::{self, Operation, point};
use crate::time::clock;

/// Flags of a call that never waits. The last two are for data that is there or is not.
const DO_NOT_WAIT: c_int = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE | libc::MSG_OOB;

/// An option of a socket that is a number.
fn option(descriptor: c_int, option: c_int) -> Option<c_int> {
    let (mut value, mut size) = (0 as c_int, size_of::<c_int>() as libc::socklen_t);
    let (place, size) = ((&raw mut value) as u64, (&raw mut size) as u64);
    let arguments = [descriptor as u64, libc::SOL_SOCKET as u64, option as u64, place, size, 0];
    // SAFETY: the kernel writes to the value, whose size it is told, and to the size.
    (unsafe { system::call(libc::SYS_getsockopt, arguments) } == 0).then_some(value)
}

/// Sends all parts to where `message` says, with what else is in it.
///
/// # Safety
/// The parts can be read. What `message` names, apart from its own parts, is there.
pub unsafe fn send_all(
    descriptor: c_int,
    mut parts: Parts,
    message: &libc::msghdr,
    flags: c_int,
    pc: u64,
) -> isize {
    let call = Call::new(descriptor, libc::POLLOUT, flags & DO_NOT_WAIT == 0, pc);
    let mut message = *message;
    parts.all(|parts| {
        message.msg_iov = parts.as_slice().as_ptr().cast_mut();
        message.msg_iovlen = parts.as_slice().len();
        let flags = flags | libc::MSG_DONTWAIT;
        let arguments = [descriptor as u64, (&raw const message) as u64, flags as u64, 0, 0, 0];
        let sent = call.until_done(|| {
            let parts = parts.as_slice().iter();
            parts.for_each(|part| gone::check_source(part.iov_base as u64, part.iov_len as u64, pc));
            // SAFETY: the caller's promise.
            raw_calls::result(unsafe { system::call(libc::SYS_sendmsg, arguments) }) as isize
        });
        // Descriptors and the like travel with the first piece.
        (message.msg_control, message.msg_controllen) = (std::ptr::null_mut(), 0);
        sent
    })
}

/// Receives into what `message` names.
///
/// # Safety
/// All that it names can be written to.
unsafe fn receive(descriptor: c_int, message: &mut libc::msghdr, flags: c_int, pc: u64) -> isize {
    let call = Call::new(descriptor, libc::POLLIN, flags & DO_NOT_WAIT == 0, pc);
    // SAFETY: the caller's promise.
    let mut parts = unsafe { Parts::new(message.msg_iov, message.msg_iovlen as c_int) };
    let wants_all = call.blocking
        && flags & libc::MSG_WAITALL != 0
        && option(descriptor, libc::SO_TYPE) == Some(libc::SOCK_STREAM);
    let looks = flags & libc::MSG_PEEK != 0;
    let wanted = if wants_all { parts.bytes() as isize } else { 0 };
    let flags = flags & !libc::MSG_WAITALL | libc::MSG_DONTWAIT;
    let mut ask = |parts: &Parts| {
        let mut asked = *message;
        asked.msg_iov = parts.as_slice().as_ptr().cast_mut();
        asked.msg_iovlen = parts.as_slice().len();
        let got = call.until_done(|| {
            let parts = parts.as_slice().iter();
            parts.for_each(|part| gone::check_target(part.iov_base as u64, part.iov_len as u64, pc));
            let arguments = [descriptor as u64, (&raw mut asked) as u64, flags as u64, 0, 0, 0];
            // SAFETY: the caller's promise.
            raw_calls::result(unsafe { system::call(libc::SYS_recvmsg, arguments) }) as isize
        });
        message.msg_namelen = asked.msg_namelen;
        message.msg_controllen = asked.msg_controllen;
        message.msg_flags = asked.msg_flags;
        got
    };
    match (wants_all, looks) {
        (false, _) => io::or_out_of_time(ask(&parts)),
        (true, false) => parts.all(ask),
        // To look takes nothing away, so it looks at the whole again.
        (true, true) => loop {
            match ask(&parts) {
                Some(got)
                    if (1..wanted).contains(&got) && !is_at_end(descriptor) && !call.waits_in_vain() => {}
                got => return io::or_out_of_time(got),
            }
        },
    }
}

/// Nothing more will be sent to this socket.
fn is_at_end(descriptor: c_int) -> bool {
    io::is_ready(&[Cell::new(libc::pollfd { fd: descriptor, events: libc::POLLRDHUP, revents: 0 })])
}

intercept! {
    fn recv(
        descriptor: c_int, buffer: *mut c_void, len: usize, flags: c_int; pc
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe { receive_from(descriptor, buffer, len, flags, Address::NONE, pc) }
    }

    fn __recv_chk(
        descriptor: c_int, buffer: *mut c_void, len: usize, room: usize, flags: c_int; pc
    ) -> isize, when (is_modelled(descriptor) && len <= room) {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe { receive_from(descriptor, buffer, len, flags, Address::NONE, pc) }
    }

    /// Six arguments leave no register for a return address; the call's place is then that of its function.
    fn recvfrom(
        descriptor: c_int, buffer: *mut c_void, len: usize, flags: c_int,
        address: *mut libc::sockaddr, size: *mut libc::socklen_t
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc a buffer of this length, and room for an address.
        unsafe { receive_from(descriptor, buffer, len, flags, Address { address, size }, calls::innermost()) }
    }

    fn recvmsg(
        descriptor: c_int, message: *mut libc::msghdr, flags: c_int; pc
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc a message.
        unsafe { receive(descriptor, &mut *message, flags, pc) }
    }

    fn recvmmsg(
        descriptor: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int, limit: *mut libc::timespec; pc
    ) -> c_int, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc so many messages, and a time or null.
        unsafe { receive_many(descriptor, messages, count, flags, clock::after(limit), pc) }
    }

    fn send(
        descriptor: c_int, buffer: *const c_void, len: usize, flags: c_int; pc
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc a buffer of this length. There is no address.
        unsafe { send_all(descriptor, Parts::one(buffer.cast(), len), &std::mem::zeroed(), flags, pc) }
    }

    fn sendto(
        descriptor: c_int, buffer: *const c_void, len: usize, flags: c_int,
        address: *const libc::sockaddr, size: libc::socklen_t
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: all zeroes is a message without anything.
        let to = unsafe {
            libc::msghdr { msg_name: address.cast_mut().cast(), msg_namelen: size, ..std::mem::zeroed() }
        };
        // SAFETY: the program promises libc a buffer of this length, and an address.
        unsafe { send_all(descriptor, Parts::one(buffer.cast(), len), &to, flags, calls::innermost()) }
    }

    fn sendmsg(
        descriptor: c_int, message: *const libc::msghdr, flags: c_int; pc
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc a message.
        unsafe { send_message(descriptor, &*message, flags, pc) }
    }

    fn sendmmsg(
        descriptor: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int; pc
    ) -> c_int, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc so many messages.
        unsafe {
            for_each_message(messages, count, |_, message| send_message(descriptor, message, flags, pc))
        }
    }

    fn accept(
        descriptor: c_int, address: *mut libc::sockaddr, size: *mut libc::socklen_t; pc
    ) -> c_int, when (is_modelled(descriptor)), calling call {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLIN, pc, || unsafe { call(descriptor, address, size) } as isize) as c_int
    }

    fn accept4(
        descriptor: c_int, address: *mut libc::sockaddr, size: *mut libc::socklen_t, flags: c_int; pc
    ) -> c_int, when (is_modelled(descriptor)), calling call {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLIN, pc, || unsafe { call(descriptor, address, size, flags) } as isize) as c_int
    }

    fn connect(
        descriptor: c_int, address: *const libc::sockaddr, size: libc::socklen_t; pc
    ) -> c_int, when (is_modelled(descriptor)), calling connect {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        connect_to(descriptor, pc, || unsafe { connect(descriptor, address, size) })
    }

    fn shutdown(descriptor: c_int, how: c_int; pc) -> c_int, when (is_modelled(descriptor)), calling shut {
        let pc = users_call(pc);
        point(Operation::new(EventKind::Io, pc, 0));
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let result = unsafe { shut(descriptor, how) };
        io::done(descriptor, pc);
        result
    }
}

/// Where the address of a sender goes.
struct Address {
    address: *mut libc::sockaddr,
    size: *mut libc::socklen_t,
}

impl Address {
    const NONE: Address = Address { address: std::ptr::null_mut(), size: std::ptr::null_mut() };
}

/// # Safety
/// There is room for so many bytes, and for an address if one is asked for.
unsafe fn receive_from(
    descriptor: c_int,
    buffer: *mut c_void,
    len: usize,
    flags: c_int,
    Address { address, size }: Address,
    pc: u64,
) -> isize {
    let mut part = libc::iovec { iov_base: buffer, iov_len: len };
    // SAFETY: all zeroes is a message without anything. The rest is the caller's promise: the kernel writes as many
    // bytes to the buffer as it says, but may say more of a message that is longer.
    unsafe {
        let room = if address.is_null() || size.is_null() { 0 } else { *size };
        let mut message = libc::msghdr {
            msg_name: address.cast(),
            msg_namelen: room,
            msg_iov: &raw mut part,
            msg_iovlen: 1,
            ..std::mem::zeroed()
        };
        let got = receive(descriptor, &mut message, flags, pc);
        if got >= 0 && !address.is_null() && !size.is_null() {
            *size = message.msg_namelen;
        }
        io::received(buffer, got.min(len as isize));
        got
    }
}

/// # Safety
/// It is a message.
unsafe fn send_message(descriptor: c_int, message: &libc::msghdr, flags: c_int, pc: u64) -> isize {
    // SAFETY: the caller's promise.
    unsafe {
        send_all(descriptor, Parts::new(message.msg_iov, message.msg_iovlen as c_int), message, flags, pc)
    }
}

/// Makes one call for each message, up to the first that fails. It fails itself only if that is the first.
///
/// # Safety
/// There are so many messages.
unsafe fn for_each_message(
    messages: *mut libc::mmsghdr,
    count: u32,
    mut call: impl FnMut(u32, &mut libc::msghdr) -> isize,
) -> c_int {
    for index in 0..count {
        // SAFETY: the caller's promise.
        let message = unsafe { &mut *messages.add(index as usize) };
        match call(index, &mut message.msg_hdr) {
            ..0 if index == 0 => return -1,
            ..0 => return index as c_int,
            bytes => message.msg_len = bytes as u32,
        }
    }
    count as c_int
}

/// `recvmmsg`. As in the kernel, the time is looked at only when a message has come.
///
/// # Safety
/// There are so many messages.
unsafe fn receive_many(
    descriptor: c_int,
    messages: *mut libc::mmsghdr,
    count: u32,
    flags: c_int,
    deadline: Option<u64>,
    pc: u64,
) -> c_int {
    let for_one = flags & libc::MSG_WAITFORONE != 0;
    let flags = flags & !libc::MSG_WAITFORONE;
    // SAFETY: the caller's promise.
    unsafe {
        for_each_message(messages, count, |index, message| {
            if index > 0 && deadline.is_some_and(|deadline| scheduler::now() >= deadline) {
                return -1;
            }
            let flags = if for_one && index > 0 { flags | libc::MSG_DONTWAIT } else { flags };
            receive(descriptor, message, flags, pc)
        })
    }
}

/// Connects with `connect`, and waits for that if the program's call does.
fn connect_to(descriptor: c_int, pc: u64, connect: impl Fn() -> c_int) -> c_int {
    let call = Call::new(descriptor, libc::POLLOUT, true, pc);
    if !call.blocking {
        return call.at_once(|| connect() as isize) as c_int;
    }
    let flags = system::fcntl(descriptor, libc::F_GETFL, 0);
    let connect = || {
        // No other thread runs until the flags are back.
        system::fcntl(descriptor, libc::F_SETFL, flags | i64::from(libc::O_NONBLOCK));
        let result = connect() as isize;
        system::fcntl(descriptor, libc::F_SETFL, flags);
        result
    };
    // A local socket whose other side has too many connections to accept says at once that it would have to wait.
    match call.again_until_done(connect) {
        Some(..0) if system::errno() == libc::EINPROGRESS => {}
        Some(result) => return result as c_int,
        None => return system::fail(libc::EAGAIN),
    }
    let outcome = || match option(descriptor, libc::SO_ERROR) {
        Some(0) | None => 0,
        Some(error) => system::fail(error) as isize,
    };
    call.once(outcome).map_or_else(|| system::fail(libc::EINPROGRESS), |result| result as c_int)
}
