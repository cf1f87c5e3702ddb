//! `flockfile`: a lock on a stream that a thread may hold for longer than one call.
//!
//! The lock is modelled beside the stream and libc's own is not taken, because a thread that holds it may be
//! switched away from. Threads that lock the stream exclude each other; a thread that only writes to it does
//! not wait for them.

use std::ffi::c_int;

use crate::active;
use crate::carrier::Carrier;
use crate::entry::intercept;
use crate::locks;
use crate::real::real;
use crate::wait::Mutex;

type Stream = *mut libc::FILE;

/// A recursive mutex for each stream that was ever locked.
static LOCKS: Carrier<Vec<(Stream, *mut libc::pthread_mutex_t)>> = Carrier::new(Vec::new());

fn lock_of(stream: Stream) -> *mut libc::pthread_mutex_t {
    if let Some(&(_, lock)) = LOCKS.get().iter().find(|(other, _)| *other == stream) {
        return lock;
    }
    // SAFETY: all zeroes is a mutex that nobody holds; it is never freed.
    let lock: *mut libc::pthread_mutex_t = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
    Mutex::at(lock as u64).kind = Mutex::RECURSIVE;
    LOCKS.get().push((stream, lock));
    lock
}

intercept! {
    flockfile/1 => lock;
    ftrylockfile/1 => try_lock;
    funlockfile/1 => unlock;
}

extern "C" fn lock(stream: Stream, pc: u64) {
    if !active() {
        return real!(flockfile(stream => Stream));
    }
    locks::mutex_lock(lock_of(stream), pc);
}

extern "C" fn try_lock(stream: Stream, pc: u64) -> c_int {
    if !active() {
        return real!(ftrylockfile(stream => Stream) -> c_int);
    }
    locks::mutex_try_lock(lock_of(stream), pc)
}

extern "C" fn unlock(stream: Stream, pc: u64) {
    if !active() {
        return real!(funlockfile(stream => Stream));
    }
    locks::mutex_unlock(lock_of(stream), pc);
}
