//! The functions that a program calls to wait for any of several descriptors: `poll`, `select`, `epoll_wait`.

use std::ffi::c_int;

use super::io::{self, is_controlled};
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::hooks::calls;
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

/// A call with this limit waits: there is none, or it is not zero.
///
/// # Safety
/// It is null or a time.
unsafe fn waits(limit: Time) -> bool {
    // SAFETY: the caller's promise.
    unsafe { limit.as_ref() }.is_none_or(|limit| limit.tv_sec + limit.tv_nsec > 0)
}

/// `select`, where `look` sees what there is without waiting: reading, writing, exceptions.
///
/// # Safety
/// Each is a set, or null.
unsafe fn select_until(
    count: c_int,
    sets: [Set; 3],
    blocking: bool,
    deadline: Option<u64>,
    pc: u64,
    look: impl Fn() -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let asked = unsafe { sets.map(|set| set.as_ref().copied()) };
    let entry = |fd| {
        // SAFETY: it is a set.
        let has =
            |set: &Option<libc::fd_set>| set.as_ref().is_some_and(|set| unsafe { libc::FD_ISSET(fd, set) });
        let flags = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
        let events = asked.iter().zip(flags).filter(|(set, _)| has(set)).fold(0, |all, (_, flag)| all | flag);
        libc::pollfd { fd, events, revents: 0 }
    };
    let mut entries: Vec<libc::pollfd> = (0..count).map(entry).filter(|entry| entry.events != 0).collect();
    poll_until(&mut entries, blocking, deadline, pc, || {
        for (set, asked) in sets.into_iter().zip(asked) {
            if let Some(asked) = asked {
                // SAFETY: the program's set, which a look before this one may have emptied.
                unsafe { set.write(asked) };
            }
        }
        look()
    })
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
        let (slice, blocking, deadline) = unsafe { (slice(entries, count), waits(limit), clock::after(limit)) };
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(slice, blocking, deadline, pc, || unsafe { poll(entries, count, &none, mask) })
    }

    fn __ppoll_chk(
        entries: Entries, count: u64, limit: Time, mask: *const libc::sigset_t, room: usize; pc
    ) -> c_int, when (is_controlled()), calling poll {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the program promises libc an array of so many entries, and a time or null.
        let (slice, blocking, deadline) = unsafe { (slice(entries, count), waits(limit), clock::after(limit)) };
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(slice, blocking, deadline, pc, || unsafe { poll(entries, count, &none, mask, room) })
    }

    fn select(
        count: c_int, read: Set, write: Set, except: Set, limit: *mut libc::timeval; pc
    ) -> c_int, when (is_controlled()), calling select {
        // SAFETY: the program promises libc a time or null.
        let milliseconds = unsafe { limit.as_ref() }
            .map_or(-1, |limit| (limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000) as c_int);
        let deadline = after_milliseconds(milliseconds);
        // SAFETY: the program promises libc sets, or null.
        unsafe {
            select_until(count, [read, write, except], milliseconds != 0, deadline, pc, || {
                let mut none = libc::timeval { tv_sec: 0, tv_usec: 0 };
                select(count, read, write, except, &mut none)
            })
        }
    }

    /// Six arguments leave no register for a return address; the call's place is then that of its function.
    fn pselect(
        count: c_int, read: Set, write: Set, except: Set, limit: Time, mask: *const libc::sigset_t
    ) -> c_int, when (is_controlled()), calling select {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the program promises libc sets, or null, and a time or null.
        unsafe {
            let (blocking, deadline) = (waits(limit), clock::after(limit));
            select_until(count, [read, write, except], blocking, deadline, calls::innermost(), || {
                select(count, read, write, except, &none, mask)
            })
        }
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

    fn epoll_pwait2(
        descriptor: c_int, events: Events, max: c_int, limit: Time, mask: *const libc::sigset_t; pc
    ) -> c_int, when (is_controlled()), calling wait {
        let mut entry = [libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }];
        let (none, mask) = (libc::timespec { tv_sec: 0, tv_nsec: 0 }, std::ptr::null());
        // SAFETY: the program promises libc a time or null.
        let (blocking, deadline) = unsafe { (waits(limit), clock::after(limit)) };
        // SAFETY: the program promises libc that its arguments are valid; only its time is replaced, by none.
        poll_until(&mut entry, blocking, deadline, pc, || unsafe { wait(descriptor, events, max, &none, mask) })
    }
}
