//! What clocks say, and times as programs write them.

use std::ffi::c_long;

use super::{alarms, timers, work};
use crate::schedule::{scheduler, state};
use crate::sync::Patience;

pub type Clock = libc::clockid_t;
type Time = *const libc::timespec;

pub const SECOND: u64 = 1_000_000_000;
/// What the wall clock says when a program starts: 1 January 2024, 00:00 UTC.
pub const WALL_START: u64 = 1_704_067_200 * SECOND;
/// What a monotonic clock says then.
const MONOTONIC_START: u64 = 1000 * SECOND;

pub fn nanoseconds(time: &libc::timespec) -> u64 {
    (time.tv_sec.max(0) as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec.max(0) as u64)
}

/// The nanoseconds of a time in microseconds; `None` if it is not one.
pub fn from_timeval(time: libc::timeval) -> Option<u64> {
    let is_time = time.tv_sec >= 0 && (0..1_000_000).contains(&time.tv_usec);
    is_time.then(|| (time.tv_sec as u64).saturating_mul(SECOND).saturating_add(time.tv_usec as u64 * 1000))
}

pub fn is_valid(time: &libc::timespec) -> bool {
    time.tv_sec >= 0 && (0..1_000_000_000).contains(&time.tv_nsec)
}

pub fn timespec(nanoseconds: u64) -> libc::timespec {
    libc::timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as c_long }
}

/// The virtual time of an absolute time, whichever clock it is of: the two start far apart.
fn since_start(time: u64) -> u64 {
    let start = if time >= WALL_START / 2 { WALL_START } else { MONOTONIC_START };
    time.saturating_sub(start)
}

/// The virtual time at which the running thread's clock says so much since the start.
pub fn virtual_time(time: u64) -> u64 {
    time.saturating_sub(work::nanoseconds())
}

/// The virtual time of an absolute time on the running thread's clock; none for none.
///
/// # Safety
/// `time` is null or points to a time.
pub unsafe fn deadline(time: Time) -> Option<u64> {
    // SAFETY: the caller's promise.
    unsafe { time.as_ref() }.map(|time| virtual_time(since_start(nanoseconds(time))))
}

/// Patience until an absolute time; without one, endless.
///
/// # Safety
/// `time` is null or points to a time.
pub unsafe fn until(time: Time) -> Patience {
    // SAFETY: the caller's promise.
    Patience::Until(unsafe { deadline(time) })
}

/// The virtual time so much after now; none for none.
///
/// # Safety
/// `duration` is null or points to a time.
pub unsafe fn after(duration: Time) -> Option<u64> {
    // SAFETY: the caller's promise.
    let duration = nanoseconds(unsafe { duration.as_ref() }?);
    Some(scheduler::now().saturating_add(duration))
}

/// Reads a clock that said `start` when the program started. Every look at a time comes here.
pub fn read(start: u64) -> u64 {
    look();
    let time = scheduler::now().saturating_add(work::nanoseconds());
    state::learns(time);
    start.saturating_add(time)
}

/// Reads a clock of the processor, which stands still while a thread sleeps.
pub fn read_processor_time() -> u64 {
    look();
    let time = work::nanoseconds();
    state::learns(time);
    time
}

/// The running thread looks at a clock, which takes time. While a timer runs, that time passes for everybody, so that
/// the timer is over for a thread that does nothing else.
fn look() {
    let took = work::look();
    if timers::are_running() || alarms::are_running() {
        scheduler::with(|sched| sched.advance_to(sched.now.saturating_add(took)));
    } else {
        work::has_looked_for(took);
    }
    scheduler::with(|sched| sched.follower.clock_moves());
}

/// Reads a clock by its number.
pub fn read_by_number(clock: Clock) -> u64 {
    // Those of other threads and processes have negative numbers.
    match clock {
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID | ..0 => read_processor_time(),
        _ => read(start_of(clock)),
    }
}

/// What a clock says when a program starts.
pub fn start_of(clock: Clock) -> u64 {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => WALL_START,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => 0,
        _ => MONOTONIC_START,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs give deadlines on either clock, and the function they give them to may not say which.
    #[test]
    fn absolute_times_are_told_apart_by_their_size() {
        assert_eq!(since_start(WALL_START + 5), 5);
        assert_eq!(since_start(MONOTONIC_START + 7), 7);
        assert_eq!(since_start(0), 0);
    }

    /// Times that are not valid must not overflow.
    #[test]
    fn times_are_converted_and_checked() {
        let time = timespec(3 * SECOND + 5);
        assert_eq!((time.tv_sec, time.tv_nsec, nanoseconds(&time)), (3, 5, 3 * SECOND + 5));
        assert!(is_valid(&time));
        assert!(!is_valid(&libc::timespec { tv_sec: 0, tv_nsec: 1_000_000_000 }));
        assert_eq!(nanoseconds(&libc::timespec { tv_sec: i64::MAX, tv_nsec: 0 }), u64::MAX);
        assert_eq!(nanoseconds(&libc::timespec { tv_sec: -1, tv_nsec: -1 }), 0);
        assert_eq!(from_timeval(libc::timeval { tv_sec: 1, tv_usec: 2 }), Some(SECOND + 2000));
        assert_eq!(from_timeval(libc::timeval { tv_sec: 0, tv_usec: 1_000_000 }), None);
    }
}
