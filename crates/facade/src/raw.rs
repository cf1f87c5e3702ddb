//! The functions of libc that the runtime stands in front of, and the objects they work on.
//!
//! An all-zero pthread object is a valid one that nobody uses, which makes constructors `const` and lets an
//! unused object be moved. The sizes are those of glibc on x86-64.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};
use std::time::Duration;

#[repr(C, align(8))]
pub struct Mutex([u64; 5]);

#[repr(C, align(8))]
pub struct Condition([u64; 6]);

#[repr(C, align(8))]
pub struct RwLock([u64; 7]);

#[repr(C)]
pub struct Time {
    seconds: i64,
    nanoseconds: c_long,
}

unsafe extern "C" {
    pub fn sched_yield() -> c_int;
    pub fn pthread_mutex_lock(mutex: *mut Mutex) -> c_int;
    pub fn pthread_mutex_trylock(mutex: *mut Mutex) -> c_int;
    pub fn pthread_mutex_unlock(mutex: *mut Mutex) -> c_int;
    pub fn pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex) -> c_int;
    pub fn pthread_cond_clockwait(
        condition: *mut Condition,
        mutex: *mut Mutex,
        clock: c_int,
        until: *const Time,
    ) -> c_int;
    pub fn pthread_cond_signal(condition: *mut Condition) -> c_int;
    pub fn pthread_cond_broadcast(condition: *mut Condition) -> c_int;
    pub fn pthread_rwlock_rdlock(lock: *mut RwLock) -> c_int;
    pub fn pthread_rwlock_tryrdlock(lock: *mut RwLock) -> c_int;
    pub fn pthread_rwlock_wrlock(lock: *mut RwLock) -> c_int;
    pub fn pthread_rwlock_trywrlock(lock: *mut RwLock) -> c_int;
    pub fn pthread_rwlock_unlock(lock: *mut RwLock) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
}

/// The clock that timed waits go by.
pub const MONOTONIC: c_int = 1;
pub const TIMED_OUT: c_int = 110;

/// A pthread object inside another.
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: the objects are made to be used by many threads, through the functions above alone.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: an object that can be moved is one that nobody uses.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    #[inline(always)]
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

impl Shared<Mutex> {
    pub const fn new() -> Self {
        Shared(UnsafeCell::new(Mutex([0; 5])))
    }
}

impl Shared<Condition> {
    pub const fn new() -> Self {
        Shared(UnsafeCell::new(Condition([0; 6])))
    }
}

impl Shared<RwLock> {
    /// Prefers writers, as `std`'s locks do: a thread that reads twice may wait for a writer in between. (glibc
    /// has the preference in the seventh word.)
    pub const fn new() -> Self {
        const PREFER_WRITER: u64 = 2;
        Shared(UnsafeCell::new(RwLock([0, 0, 0, 0, 0, 0, PREFER_WRITER])))
    }
}

/// The time after `duration`, as far as it can be said.
#[inline(never)]
pub fn after(duration: Duration) -> Time {
    const SECOND: i64 = 1_000_000_000;
    let mut now = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: writes the time into a variable of ours.
    unsafe { clock_gettime(MONOTONIC, &mut now) };
    let nanoseconds = now.nanoseconds + i64::from(duration.subsec_nanos());
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Time {
        seconds: now.seconds.saturating_add(seconds).saturating_add(nanoseconds / SECOND),
        nanoseconds: nanoseconds % SECOND,
    }
}
