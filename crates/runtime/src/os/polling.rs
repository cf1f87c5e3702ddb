//! The functions that a program calls to wait for any of several descriptors: `poll`, `select`, `epoll_wait`.

use std::ffi::c_int;

use super::io::{self, is_controlled};
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::schedule::scheduler;
use crate::time::clock;

type Entries = *mut libc::pollfd;
type Time = *const libc::timespec;
type Set = *mut libc::fd_set;
type Events = *mut libc::epoll_event;

/// The virtual time so many milliseconds from now; none for a negative number.
fn after_milliseconds(milliseconds: c_int) -> Option<u64> {
    let milliseconds = u64::try_from(milliseconds).ok()?;
    Some(scheduler::now().saturating_add(milliseconds * 1_000_000))
}

/// Waits for any of `entries`, then lets `look` see what is there without waiting; again if it finds nothing.
fn poll_until(
    entries: &mut [libc::pollfd],
    blocking: bool,
    deadline: Option<u64>,
    pc: u64,
    mut look: impl FnMut() -> c_int,
) -> c_int {
    let pc = users_call(pc);
    loop {
        let timed_out = io::wait(entries, blocking, deadline, pc);
        let found = look();
        if found == 0 && !blocking {
            io::looked_in_vain();
        }
        io::done(entries.first().map_or(-1, |entry| entry.fd), pc);
        if found != 0 || timed_out || !blocking {
            return found;
        }
    }
}

/// The program's array of `count` entries.
///
/// # Safety
/// It is one, or empty. Nobody else uses it while the program's call lasts.
unsafe fn slice<'a>(entries: Entries, count: u64) -> &'a mut [libc::pollfd] {
    match count {
        0 => &mut [],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts_mut(entries, count as usize) },
    }
}

intercept! {
    fn poll(
        entries: Entries, count: u64, milliseconds: c_int; pc
    ) -> c_int, when (is_controlled()), calling poll {
        // SAFETY: the program promises libc an array of so many entries, which no other thread uses.
        let slice = unsafe { slice(entries, count) };
        let deadline = after_milliseconds(milliseconds);
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(slice, milliseconds != 0, deadline, pc, || unsafe { poll(entries, count, 0) })
    }

    fn __poll_chk(
        entries: Entries, count: u64, milliseconds: c_int, room: usize; pc
    ) -> c_int, when (is_controlled()), calling poll {
        // SAFETY: the program promises libc an array of so many entries, which no other thread uses.
        let slice = unsafe { slice(entries, count) };
        let deadline = after_milliseconds(milliseconds);
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(slice, milliseconds != 0, deadline, pc, || unsafe { poll(entries, count, 0, room) })
    }

    fn ppoll(
        entries: Entries, count: u64, limit: Time, mask: *const libc::sigset_t; pc
    ) -> c_int, when (is_controlled()), calling poll {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the program promises libc an array of so many entries, and a time or null.
        let (slice, blocking, deadline) = unsafe {
            let blocking = limit.as_ref().is_none_or(|limit| limit.tv_sec + limit.tv_nsec > 0);
            (slice(entries, count), blocking, clock::after(limit))
        };
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(slice, blocking, deadline, pc, || unsafe { poll(entries, count, &none, mask) })
    }

    fn select(
        count: c_int, read: Set, write: Set, except: Set, limit: *mut libc::timeval; pc
    ) -> c_int, when (is_controlled()), calling select {
        // SAFETY: the program promises libc sets, or null, and a time or null.
        let (mut entries, asked, limit) = unsafe {
            let has = |set: Set, descriptor| !set.is_null() && libc::FD_ISSET(descriptor, set);
            let entry = |fd| {
                let flag = |set: Set, events: i16| if has(set, fd) { events } else { 0 };
                let events = flag(read, libc::POLLIN) | flag(write, libc::POLLOUT) | flag(except, libc::POLLPRI);
                libc::pollfd { fd, events, revents: 0 }
            };
            let entries: Vec<libc::pollfd> = (0..count).map(entry).filter(|entry| entry.events != 0).collect();
            (entries, [read, write, except].map(|set| set.as_ref().copied()), limit.as_ref())
        };
        let milliseconds =
            limit.map_or(-1, |limit| (limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000) as c_int);
        let deadline = after_milliseconds(milliseconds);
        poll_until(&mut entries, milliseconds != 0, deadline, pc, || {
            for (set, asked) in [read, write, except].into_iter().zip(asked) {
                if let Some(asked) = asked {
                    // SAFETY: the program's set, which a look before this one may have emptied.
                    unsafe { set.write(asked) };
                }
            }
            let mut none = libc::timeval { tv_sec: 0, tv_usec: 0 };
            // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
            unsafe { select(count, read, write, except, &mut none) }
        })
    }

    fn epoll_wait(
        descriptor: c_int, events: Events, max: c_int, milliseconds: c_int; pc
    ) -> c_int, when (is_controlled()), calling wait {
        let mut entry = [libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }];
        let deadline = after_milliseconds(milliseconds);
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(&mut entry, milliseconds != 0, deadline, pc, || unsafe { wait(descriptor, events, max, 0) })
    }

    fn epoll_pwait(
        descriptor: c_int, events: Events, max: c_int, milliseconds: c_int, mask: *const libc::sigset_t; pc
    ) -> c_int, when (is_controlled()), calling wait {
        let mut entry = [libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }];
        let (deadline, mask) = (after_milliseconds(milliseconds), std::ptr::null());
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(&mut entry, milliseconds != 0, deadline, pc, || unsafe { wait(descriptor, events, max, 0, mask) })
    }
}
