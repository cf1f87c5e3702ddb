//! The functions that a program calls to read, to write, and to make and close pipes and sockets.

use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;

use super::channels::{self, Kind};
use super::descriptors::{bad_descriptor, is_the_tools};
use super::io::{self, Nature, is_modelled, may_block, nature};
use super::system;
use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::hooks::calls;
use crate::schedule::scheduler::{Operation, point};

/// Functions that are called once their descriptor is ready for some events.
macro_rules! when_ready {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $events:expr;)+) => { intercept! { $(
        fn $name(descriptor: c_int, $($arg: $ty),*; pc) -> $ret, when (is_modelled(descriptor)), calling call {
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            io::with(descriptor, $events, pc, || unsafe { call(descriptor, $($arg),*) } as isize) as $ret
        }
    )+ } };
}

when_ready! {
    readv(parts: *const libc::iovec, count: c_int) -> isize, libc::POLLIN;
    writev(parts: *const libc::iovec, count: c_int) -> isize, libc::POLLOUT;
    recvmsg(message: *mut libc::msghdr, flags: c_int) -> isize, libc::POLLIN;
    send(buffer: *const c_void, len: usize, flags: c_int) -> isize, libc::POLLOUT;
    sendmsg(message: *const libc::msghdr, flags: c_int) -> isize, libc::POLLOUT;
    accept(address: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int, libc::POLLIN;
    accept4(address: *mut libc::sockaddr, len: *mut libc::socklen_t, flags: c_int) -> c_int, libc::POLLIN;
    eventfd_read(value: *mut u64) -> c_int, libc::POLLIN;
    eventfd_write(value: u64) -> c_int, libc::POLLOUT;
}

/// Reads with `call`, once there is something to read.
///
/// # Safety
/// `call` writes no more to the buffer than the bytes whose number it returns.
unsafe fn read(descriptor: c_int, buffer: *mut c_void, pc: u64, call: impl FnOnce() -> isize) -> isize {
    let got = if is_modelled(descriptor) { io::with(descriptor, libc::POLLIN, pc, call) } else { call() };
    // SAFETY: the caller's promise.
    unsafe { io::received(buffer, got) }
}

intercept! {
    fn read(descriptor: c_int, buffer: *mut c_void, len: usize; pc) -> isize, when (true), calling call {
        // SAFETY: the program's arguments, as it passed them. The kernel writes as many bytes as it says.
        unsafe { read(descriptor, buffer, pc, || call(descriptor, buffer, len)) }
    }

    fn __read_chk(
        descriptor: c_int, buffer: *mut c_void, len: usize, room: usize; pc
    ) -> isize, when (true), calling call {
        // SAFETY: the program's arguments, as it passed them. The kernel writes as many bytes as it says.
        unsafe { read(descriptor, buffer, pc, || call(descriptor, buffer, len, room)) }
    }

    fn recv(
        descriptor: c_int, buffer: *mut c_void, len: usize, flags: c_int; pc
    ) -> isize, when (true), calling call {
        // SAFETY: the program's arguments, as it passed them. The kernel writes as many bytes as it says.
        unsafe { read(descriptor, buffer, pc, || call(descriptor, buffer, len, flags)) }
    }

    fn write(descriptor: c_int, buffer: *const u8, len: usize; pc) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe { write_all(descriptor, buffer, len, pc) }
    }

    /// Six arguments leave no register for a return address; the call's place is then that of its function.
    fn recvfrom(
        descriptor: c_int, buffer: *mut c_void, len: usize, flags: c_int,
        address: *mut libc::sockaddr, size: *mut libc::socklen_t
    ) -> isize, when (is_modelled(descriptor)), calling call {
        let pc = calls::innermost();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLIN, pc, || unsafe { call(descriptor, buffer, len, flags, address, size) })
    }

    fn sendto(
        descriptor: c_int, buffer: *const c_void, len: usize, flags: c_int,
        address: *const libc::sockaddr, size: libc::socklen_t
    ) -> isize, when (is_modelled(descriptor)), calling call {
        let pc = calls::innermost();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLOUT, pc, || unsafe { call(descriptor, buffer, len, flags, address, size) })
    }

    fn close(descriptor: c_int; pc) -> c_int, when (true), calling close {
        if is_the_tools(descriptor) {
            return bad_descriptor();
        }
        let modelled = is_modelled(descriptor);
        if active() {
            io::forget(|own| own == descriptor);
        }
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let result = unsafe { close(descriptor) };
        if modelled {
            let pc = users_call(pc);
            point(Operation::new(EventKind::Io, pc, 0));
            io::done(descriptor, pc);
        }
        result
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

/// Writes all of it, in pieces that do not block.
///
/// # Safety
/// There are `len` bytes.
unsafe fn write_all(descriptor: c_int, bytes: *const u8, len: usize, pc: u64) -> isize {
    if !may_block(descriptor) || nature(descriptor) == Nature::Event {
        // SAFETY: the caller promises so many bytes.
        let call = || unsafe { real!(write(descriptor => c_int, bytes => *const u8, len => usize) -> isize) };
        return io::with(descriptor, libc::POLLOUT, pc, call);
    }
    /// What a pipe that is ready takes at once.
    const PIECE: usize = 4096;
    let socket = nature(descriptor) == Nature::Socket;
    let mut written = 0;
    loop {
        let (rest, left) = (bytes.wrapping_add(written), len - written);
        // SAFETY: the rest of the bytes that the caller promises.
        let result = io::in_time(descriptor, libc::POLLOUT, pc, || unsafe {
            if socket {
                let flags = libc::MSG_DONTWAIT;
                real!(send(descriptor => c_int, rest => *const u8, left => usize, flags => c_int) -> isize)
            } else {
                real!(write(descriptor => c_int, rest => *const u8, left.min(PIECE) => usize) -> isize)
            }
        });
        match result {
            Some(..0) if system::errno() == libc::EAGAIN => {}
            None | Some(..0) if written > 0 => return written as isize,
            None => return system::fail(libc::EAGAIN) as isize,
            Some(error @ ..0) => return error,
            Some(count) => written += count as usize,
        }
        if written >= len {
            return written as isize;
        }
    }
}

/// Notes two descriptors that are the ends of the same thing.
fn made(kind: Kind, ends: [c_int; 2]) {
    ends.into_iter().for_each(io::owns);
    channels::made(kind, &ends);
}

intercept! {
    fn pipe(ends: *mut c_int) -> c_int, calling make {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let result = unsafe { make(ends) };
        if result == 0 {
            // SAFETY: the kernel has just written two descriptors there.
            made(Kind::Pipe, unsafe { [*ends, *ends.add(1)] });
        }
        result
    }

    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int, calling make {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let result = unsafe { make(ends, flags) };
        if result == 0 {
            // SAFETY: the kernel has just written two descriptors there.
            made(Kind::Pipe, unsafe { [*ends, *ends.add(1)] });
        }
        result
    }

    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int, calling make {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let result = unsafe { make(domain, kind, protocol, ends) };
        if result == 0 {
            // SAFETY: the kernel has just written two descriptors there.
            made(Kind::Pair { domain, kind, protocol }, unsafe { [*ends, *ends.add(1)] });
        }
        result
    }

    fn eventfd(value: u32, flags: c_int) -> c_int, calling make {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let descriptor = unsafe { make(value, flags) };
        if descriptor >= 0 {
            io::owns(descriptor);
            channels::made(Kind::Event { flags }, &[descriptor]);
        }
        descriptor
    }
}
