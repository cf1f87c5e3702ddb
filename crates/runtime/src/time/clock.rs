//! Virtual time: it stands still while threads run, jumps when all of them sleep, and moves a little whenever
//! it is looked at, so that a loop that waits for a time to come ends.

use std::ffi::{c_int, c_long, c_uint, c_void};

use threadbare_trace::EventKind;

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::schedule::scheduler::{Operation, point};
use crate::schedule::wait::Wait;
use crate::schedule::{scheduler, state};
use crate::sync::cancellation;

pub type Clock = libc::clockid_t;
type Time = *const libc::timespec;
type TimeOut = *mut libc::timespec;

pub const SECOND: u64 = 1_000_000_000;
/// What the wall clock says when a program starts: 1 January 2024, 00:00 UTC.
const WALL_START: u64 = 1_704_067_200 * SECOND;
/// What a monotonic clock says then.
const MONOTONIC_START: u64 = 1000 * SECOND;
/// Each look at a clock takes this long.
const LOOK: u64 = 1000;

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
pub fn deadline(until: Time) -> Option<u64> {
    // SAFETY: null, or the program's time.
    let until = nanoseconds(unsafe { until.as_ref() }?);
    Some(if until >= WALL_START / 2 {
        until.saturating_sub(WALL_START)
    } else {
        until.saturating_sub(MONOTONIC_START)
    })
}

/// The virtual time so much after now.
pub fn after(duration: Time) -> Option<u64> {
    // SAFETY: null, or the program's time.
    let duration = nanoseconds(unsafe { duration.as_ref() }?);
    Some(scheduler::get().now.saturating_add(duration))
}

fn look(start: u64) -> u64 {
    let sched = scheduler::get();
    sched.advance_to(sched.now.saturating_add(LOOK));
    state::learns(sched.now);
    start.saturating_add(sched.now)
}

/// What a clock says when a program starts.
pub fn start_of(clock: Clock) -> u64 {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => WALL_START,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => 0,
        _ => MONOTONIC_START,
    }
}

#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: Clock, time: TimeOut) -> c_int {
    if !active() {
        return real!(clock_gettime(clock => Clock, time => TimeOut) -> c_int);
    }
    let now = look(start_of(clock));
    // SAFETY: the program's place for the time.
    unsafe { time.write(timespec(now)) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn timespec_get(time: TimeOut, base: c_int) -> c_int {
    const TIME_UTC: c_int = 1;
    if !active() {
        return real!(timespec_get(time => TimeOut, base => c_int) -> c_int);
    }
    if base != TIME_UTC {
        return 0;
    }
    clock_gettime(libc::CLOCK_REALTIME, time);
    base
}

#[unsafe(no_mangle)]
extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut c_void) -> c_int {
    if !active() {
        return real!(gettimeofday(time => *mut libc::timeval, zone => *mut c_void) -> c_int);
    }
    let now = look(WALL_START);
    // SAFETY: the program's place for the time.
    unsafe {
        time.write(libc::timeval { tv_sec: (now / SECOND) as i64, tv_usec: (now % SECOND / 1000) as c_long });
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn time(result: *mut libc::time_t) -> libc::time_t {
    if !active() {
        return real!(time(result => *mut libc::time_t) -> libc::time_t);
    }
    let now = (look(WALL_START) / SECOND) as libc::time_t;
    if !result.is_null() {
        // SAFETY: the program's place for the time.
        unsafe { result.write(now) };
    }
    now
}

#[unsafe(no_mangle)]
extern "C" fn clock() -> c_long {
    if !active() {
        return real!(clock() -> c_long);
    }
    (look(0) / 1000) as c_long
}

intercept! {
    sched_yield/0 => sched_yield_;
    pthread_yield/0 => sched_yield_;
    sleep/1 => sleep_;
    usleep/1 => usleep_;
    nanosleep/2 => nanosleep_;
    clock_nanosleep/4 => clock_nanosleep_;
}

/// Lets others go first.
pub fn give_way(pc: u64) {
    let pc = users_call(pc);
    point(Operation::new(EventKind::Yield, pc, 0));
    Entry::new(EventKind::Yield, pc, 0).write();
}

/// Sleeps until a virtual time: until nobody else can run, and everybody whose time comes earlier has had it.
fn sleep_until(time: u64, pc: u64) {
    let pc = users_call(pc);
    let deadline = Some(time.max(scheduler::get().now));
    point(Operation::new(EventKind::Sleep, pc, 0).waiting(Wait::Sleep).until(deadline).cancellable());
    cancellation::act_at(EventKind::Sleep, pc, 0);
    Entry::new(EventKind::Sleep, pc, 0).write();
}

fn sleep_for(duration: u64, pc: u64) {
    sleep_until(scheduler::get().now.saturating_add(duration), pc);
}

pub extern "C" fn sched_yield_(pc: u64) -> c_int {
    if !active() {
        return real!(sched_yield() -> c_int);
    }
    give_way(pc);
    0
}

extern "C" fn sleep_(seconds: c_uint, pc: u64) -> c_uint {
    if !active() {
        return real!(sleep(seconds => c_uint) -> c_uint);
    }
    sleep_for(u64::from(seconds) * SECOND, pc);
    0
}

extern "C" fn usleep_(microseconds: c_uint, pc: u64) -> c_int {
    if !active() {
        return real!(usleep(microseconds => c_uint) -> c_int);
    }
    sleep_for(u64::from(microseconds) * 1000, pc);
    0
}

pub extern "C" fn nanosleep_(duration: Time, rest: TimeOut, pc: u64) -> c_int {
    if !active() {
        return real!(nanosleep(duration => Time, rest => TimeOut) -> c_int);
    }
    if let Some(time) = after(duration) {
        sleep_until(time, pc);
    }
    0
}

extern "C" fn clock_nanosleep_(clock: Clock, flags: c_int, time: Time, rest: TimeOut, pc: u64) -> c_int {
    if !active() {
        return real!(clock_nanosleep(
            clock => Clock, flags => c_int, time => Time, rest => TimeOut
        ) -> c_int);
    }
    let until = if flags & libc::TIMER_ABSTIME != 0 { deadline(time) } else { after(time) };
    if let Some(until) = until {
        sleep_until(until, pc);
    }
    0
}
