//! The functions that a program calls to read, to write, and to make and close pipes and sockets. Those that only
//! sockets have are in `socket_calls`.

use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;

use super::channels::{self, Kind};
use super::descriptors::{bad_descriptor, is_the_tools};
use super::io::{self, Call, Nature, is_modelled, nature};
use super::parts::Parts;
use super::{raw_calls, socket_calls, system};
use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::memory::gone;
use crate::schedule::scheduler::{Operation, point};

intercept! {
    fn readv(
        descriptor: c_int, parts: *const libc::iovec, count: c_int; pc
    ) -> isize, when (is_modelled(descriptor)), calling call {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLIN, pc, || unsafe { call(descriptor, parts, count) })
    }

    fn writev(
        descriptor: c_int, parts: *const libc::iovec, count: c_int; pc
    ) -> isize, when (is_modelled(descriptor)) {
        // SAFETY: the program promises libc so many parts.
        unsafe { write_all(descriptor, Parts::new(parts, count), true, pc) }
    }

    fn eventfd_read(descriptor: c_int, value: *mut u64; pc) -> c_int, when (is_modelled(descriptor)), calling call {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLIN, pc, || unsafe { call(descriptor, value) } as isize) as c_int
    }

    fn eventfd_write(descriptor: c_int, value: u64; pc) -> c_int, when (is_modelled(descriptor)), calling call {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        io::with(descriptor, libc::POLLOUT, pc, || unsafe { call(descriptor, value) } as isize) as c_int
    }
}

/// Reads and writes with flags of their own. A channel has no offset: -1 stands for none.
macro_rules! with_flags {
    ($($read:ident $write:ident)+) => { intercept! { $(
        fn $read(
            descriptor: c_int, parts: *const libc::iovec, count: c_int, offset: i64, flags: c_int; pc
        ) -> isize, when (is_modelled(descriptor)), calling call {
            let transfer = Call::new(descriptor, libc::POLLIN, flags & libc::RWF_NOWAIT == 0, pc);
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            io::or_out_of_time(transfer.once(|| unsafe { call(descriptor, parts, count, offset, flags) }))
        }

        fn $write(
            descriptor: c_int, parts: *const libc::iovec, count: c_int, offset: i64, flags: c_int; pc
        ) -> isize, when (is_modelled(descriptor)), calling call {
            let waits = flags & libc::RWF_NOWAIT == 0;
            if offset == -1 && waits {
                // SAFETY: the program promises libc so many parts.
                return unsafe { write_all(descriptor, Parts::new(parts, count), true, pc) };
            }
            let transfer = Call::new(descriptor, libc::POLLOUT, false, pc);
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            io::or_out_of_time(transfer.once(|| unsafe { call(descriptor, parts, count, offset, flags) }))
        }
    )+ } };
}
with_flags! { preadv2 pwritev2 preadv64v2 pwritev64v2 }

/// Reads with `call`, once there is something to read.
///
/// # Safety
/// `call` writes no more to the buffer than the bytes whose number it returns.
unsafe fn read(
    descriptor: c_int,
    buffer: *mut c_void,
    len: usize,
    pc: u64,
    call: impl FnOnce() -> isize,
) -> isize {
    let call = || {
        gone::check_target(buffer as u64, len as u64, pc);
        call()
    };
    let got = if is_modelled(descriptor) { io::with(descriptor, libc::POLLIN, pc, call) } else { call() };
    // SAFETY: the caller's promise.
    unsafe { io::received(buffer, got) }
}

intercept! {
    fn read(descriptor: c_int, buffer: *mut c_void, len: usize; pc) -> isize, when (true), calling call {
        // SAFETY: the program's arguments, as it passed them. The kernel writes as many bytes as it says.
        unsafe { read(descriptor, buffer, len, pc, || call(descriptor, buffer, len)) }
    }

    fn __read_chk(
        descriptor: c_int, buffer: *mut c_void, len: usize, room: usize; pc
    ) -> isize, when (true), calling call {
        // SAFETY: the program's arguments, as it passed them. The kernel writes as many bytes as it says.
        unsafe { read(descriptor, buffer, len, pc, || call(descriptor, buffer, len, room)) }
    }

    fn write(descriptor: c_int, buffer: *const u8, len: usize; pc) -> isize, when (true), calling call {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe {
            if is_modelled(descriptor) {
                return write_all(descriptor, Parts::one(buffer, len), true, pc);
            }
            gone::check_source(buffer as u64, len as u64, pc);
            call(descriptor, buffer, len)
        }
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
}

/// Writes all of it, in pieces that do not block.
///
/// # Safety
/// The parts can be read.
unsafe fn write_all(descriptor: c_int, mut parts: Parts, waits: bool, pc: u64) -> isize {
    if nature(descriptor) == Nature::Socket {
        // SAFETY: the caller's promise. There is no address.
        return unsafe { socket_calls::send_all(descriptor, parts, &std::mem::zeroed(), 0, pc) };
    }
    let call = Call::new(descriptor, libc::POLLOUT, waits, pc);
    /// What a pipe that is ready takes at once.
    const PIECE: usize = 4096;
    let piece = if call.blocking && nature(descriptor) == Nature::Pipe { PIECE } else { usize::MAX };
    parts.all(|parts| {
        let parts = parts.up_to(piece);
        let arguments = [descriptor as u64, parts.as_ptr() as u64, parts.len() as u64, 0, 0, 0];
        call.until_done(|| {
            parts.iter().for_each(|part| gone::check_source(part.iov_base as u64, part.iov_len as u64, pc));
            // SAFETY: the caller's promise.
            raw_calls::result(unsafe { system::call(libc::SYS_writev, arguments) }) as isize
        })
    })
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
