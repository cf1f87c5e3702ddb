//! The program's file descriptors. Two descriptors are the tool's: the program can neither close nor replace them.

use std::ffi::c_int;

use threadbare_wire::{MEMORY_FD, SOCKET_FD};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::real::real;
use crate::os::{io, system};

pub fn is_the_tools(descriptor: c_int) -> bool {
    active() && matches!(descriptor, MEMORY_FD | SOCKET_FD)
}

/// Fails as for a descriptor that is not open.
pub fn bad_descriptor() -> c_int {
    system::fail(libc::EBADF)
}

/// The program's descriptors.
pub fn all() -> Vec<c_int> {
    let directory = system::open_to_read(c"/proc/self/fd");
    let mut numbers = Vec::new();
    system::for_each_name(directory, |name| {
        let number = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        numbers.extend(number.filter(|&number| number != directory && !is_the_tools(number)));
    });
    system::close(directory);
    numbers
}

/// Both numbers mean the same open file.
pub fn are_same(one: c_int, other: c_int) -> bool {
    one == other || system::is_same_file(one, other)
}

/// `new` is about to become a duplicate of `old`.
fn take_over(old: c_int, new: c_int) {
    if old != new && system::fcntl(old, libc::F_GETFD, 0) >= 0 {
        io::forget(|own| own == new);
    }
}

/// Closes the descriptors from `first` to `last`, but not the tool's.
fn close_all(first: u32, last: u32, flags: c_int) -> c_int {
    const CLOSE_ON_EXEC: c_int = 4;
    let close = |first: u32, last: u32| match first <= last {
        // SAFETY: the program wants these descriptors closed. The runtime keeps nothing in memory that rests on them.
        true => unsafe { real!(close_range(first => u32, last => u32, flags => c_int) -> c_int) },
        false => 0,
    };
    if flags & CLOSE_ON_EXEC == 0 {
        io::forget(|own| (first..=last).contains(&(own as u32)));
    }
    let (low, high) = (MEMORY_FD as u32, SOCKET_FD as u32);
    if last < low || first > high {
        return close(first, last);
    }
    close(first, last.min(low - 1)) | close(first.max(high + 1), last)
}

intercept! {
    fn dup2(old: c_int, new: c_int) -> c_int, calling duplicate {
        if is_the_tools(new) {
            return bad_descriptor();
        }
        take_over(old, new);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { duplicate(old, new) }
    }

    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int, calling duplicate {
        if is_the_tools(new) {
            return bad_descriptor();
        }
        take_over(old, new);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { duplicate(old, new, flags) }
    }

    fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
        close_all(first, last, flags)
    }

    fn closefrom(first: c_int) {
        close_all(first.max(0) as u32, u32::MAX, 0);
    }
}
