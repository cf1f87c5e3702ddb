//! `splice`, `tee`, `vmsplice` and `sendfile`, which move bytes between descriptors.

use std::ffi::{c_int, c_uint};

use super::io::{self, Call, is_modelled};
use crate::entry::intercept::intercept;
use crate::hooks::calls;

const DO_NOT_WAIT: c_uint = libc::SPLICE_F_NONBLOCK;

/// Moves bytes with `call`, which does not wait, once there is something to read and room to write it.
fn moves(from: c_int, to: c_int, flags: c_uint, pc: u64, mut call: impl FnMut() -> isize) -> isize {
    let waits = flags & DO_NOT_WAIT == 0;
    let reading = Call::new(from, libc::POLLIN, waits && is_modelled(from), pc);
    let writing = Call::new(to, libc::POLLOUT, waits && is_modelled(to), pc);
    if !reading.blocking && !writing.blocking {
        return reading.at_once(call);
    }
    loop {
        if reading.blocking && reading.once(|| 0).is_none()
            || writing.blocking && writing.once(|| 0).is_none()
        {
            return io::or_out_of_time(None);
        }
        let moved = call();
        // The side that does not wait is not ready, or neither is ready for enough.
        let waits = io::would_block(moved) && reading.blocking && writing.blocking;
        if !waits || reading.waits_in_vain() {
            io::done(to, reading.pc());
            return moved;
        }
    }
}

fn are_modelled(from: c_int, to: c_int) -> bool {
    is_modelled(from) || is_modelled(to)
}

intercept! {
    /// Six arguments leave no register for a return address; the call's place is then that of its function.
    fn splice(
        from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, len: usize, flags: c_uint
    ) -> isize, when (are_modelled(from, to)), calling splice {
        // SAFETY: the program promises libc that its arguments are valid. The flag only keeps it from waiting.
        let call = || unsafe { splice(from, from_offset, to, to_offset, len, flags | DO_NOT_WAIT) };
        moves(from, to, flags, calls::innermost(), call)
    }

    fn tee(from: c_int, to: c_int, len: usize, flags: c_uint; pc) -> isize, when (are_modelled(from, to)), calling tee {
        // SAFETY: the program promises libc that its arguments are valid. The flag only keeps it from waiting.
        moves(from, to, flags, pc, || unsafe { tee(from, to, len, flags | DO_NOT_WAIT) })
    }

    /// One end of a pipe is read from, the other is written to.
    fn vmsplice(
        pipe: c_int, parts: *const libc::iovec, count: usize, flags: c_uint; pc
    ) -> isize, when (is_modelled(pipe)), calling vmsplice {
        let writes = super::system::fcntl(pipe, libc::F_GETFL, 0) & i64::from(libc::O_ACCMODE) != 0;
        let events = if writes { libc::POLLOUT } else { libc::POLLIN };
        let call = Call::new(pipe, events, flags & DO_NOT_WAIT == 0, pc);
        // SAFETY: the program promises libc that its arguments are valid. The flag only keeps it from waiting.
        io::or_out_of_time(call.until_done(|| unsafe { vmsplice(pipe, parts, count, flags | DO_NOT_WAIT) }))
    }
}

/// Sends in pieces for which there is room.
macro_rules! sendfile {
    ($($name:ident)+) => { intercept! { $(
        fn $name(
            to: c_int, from: c_int, offset: *mut i64, count: usize; pc
        ) -> isize, when (is_modelled(to)), calling sendfile {
            /// What a pipe or a socket that is ready takes at once.
            const PIECE: usize = 4096;
            let call = Call::new(to, libc::POLLOUT, true, pc);
            let mut sent = 0;
            loop {
                let piece = if call.blocking { (count - sent).min(PIECE) } else { count };
                // SAFETY: the program promises libc that its arguments are valid; only the count is smaller.
                match call.once(|| unsafe { sendfile(to, from, offset, piece) }) {
                    Some(bytes @ 1..) if call.blocking => sent += bytes as usize,
                    Some(0) | None | Some(..0) if sent > 0 => return sent as isize,
                    end => return io::or_out_of_time(end),
                }
                if sent >= count {
                    return sent as isize;
                }
            }
        }
    )+ } };
}
sendfile! { sendfile sendfile64 }
