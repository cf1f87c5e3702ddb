//! Locks on files: `flock`, `lockf`, and the locks of `fcntl`.
//!
//! The kernel keeps them. It is always asked not to wait: a thread that has to waits until somebody has done something
//! on a descriptor, and asks again. A lock may also be held by another process, so such a wait is never a deadlock.

use std::ffi::c_int;

use super::io::{Call, is_controlled};
use super::system;
use crate::entry::intercept::intercept;

/// Asks for a lock with `call`, which does not wait; again and again if the program's call `waits`.
fn lock(descriptor: c_int, waits: bool, pc: u64, mut call: impl FnMut() -> c_int) -> c_int {
    let asked = Call::on_file(descriptor, waits, pc).again_until_done(|| {
        let result = call();
        // `fcntl` may give either error for a lock that somebody else has.
        if waits && result < 0 && system::errno() == libc::EACCES {
            system::set_errno(libc::EAGAIN);
        }
        result as isize
    });
    asked.map_or(-1, |result| result as c_int)
}

intercept! {
    fn flock(descriptor: c_int, operation: c_int; pc) -> c_int, when (is_controlled()), calling flock {
        let waits = operation & (libc::LOCK_NB | libc::LOCK_UN) == 0;
        // SAFETY: the program promises libc that its arguments are valid. The flag only keeps it from waiting.
        lock(descriptor, waits, pc, || unsafe { flock(descriptor, operation | libc::LOCK_NB) })
    }
}

macro_rules! lockf {
    ($($name:ident)+) => { intercept! { $(
        fn $name(descriptor: c_int, command: c_int, len: i64; pc) -> c_int, when (is_controlled()), calling lockf {
            let waits = command == libc::F_LOCK;
            let command = if waits { libc::F_TLOCK } else { command };
            // SAFETY: the program promises libc that its arguments are valid. The other command only does not wait.
            lock(descriptor, waits, pc, || unsafe { lockf(descriptor, command, len) })
        }
    )+ } };
}
lockf! { lockf lockf64 }

/// The command of `fcntl` that asks for the same lock and does not wait.
fn without_waiting(command: c_int) -> c_int {
    match command {
        libc::F_SETLKW => libc::F_SETLK,
        libc::F_OFD_SETLKW => libc::F_OFD_SETLK,
        other => other,
    }
}

fn is_lock(command: c_int) -> bool {
    matches!(without_waiting(command), libc::F_SETLK | libc::F_OFD_SETLK)
}

/// The third argument, where there is one, is a number or a pointer.
macro_rules! fcntl {
    ($($name:ident)+) => { intercept! { $(
        fn $name(
            descriptor: c_int, command: c_int, argument: usize; pc
        ) -> c_int, when (is_lock(command) && is_controlled()), calling fcntl {
            let asked = without_waiting(command);
            // SAFETY: the program promises libc that its arguments are valid. The other command only does not wait.
            lock(descriptor, asked != command, pc, || unsafe { fcntl(descriptor, asked, argument) })
        }
    )+ } };
}
fcntl! { fcntl fcntl64 }
