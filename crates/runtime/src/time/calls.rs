//! The functions that a program calls about time: clocks, sleeping, timers.

use std::ffi::{c_int, c_long, c_uint, c_void};

use threadbare_trace::EventKind;

use super::clock::{self, Clock, SECOND, WALL_START, from_timeval, timespec};
use super::{alarms, sleep, timers, work};
use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::entry::process;
use crate::entry::real::real;
use crate::os::{io, system};
use crate::schedule::scheduler::{Operation, point};

type Time = *const libc::timespec;
type TimeOut = *mut libc::timespec;

intercept! {
    fn clock_gettime(clock: Clock, time: TimeOut) -> c_int {
        let now = clock::read_by_number(clock);
        // SAFETY: the program promises libc a place for the time.
        unsafe { time.write(timespec(now)) };
        0
    }

    fn timespec_get(time: TimeOut, base: c_int) -> c_int {
        const TIME_UTC: c_int = 1;
        if base != TIME_UTC {
            return 0;
        }
        let now = clock::read(WALL_START);
        // SAFETY: the program promises libc a place for the time.
        unsafe { time.write(timespec(now)) };
        base
    }

    fn gettimeofday(time: *mut libc::timeval, zone: *mut c_void) -> c_int {
        let now = clock::read(WALL_START);
        let (tv_sec, tv_usec) = ((now / SECOND) as i64, (now % SECOND / 1000) as c_long);
        // SAFETY: the program promises libc a place for the time.
        unsafe { time.write(libc::timeval { tv_sec, tv_usec }) };
        0
    }

    fn time(result: *mut libc::time_t) -> libc::time_t {
        let now = (clock::read(WALL_START) / SECOND) as libc::time_t;
        if !result.is_null() {
            // SAFETY: the program promises libc a place for the time.
            unsafe { result.write(now) };
        }
        now
    }

    fn clock() -> c_long {
        (clock::read_processor_time() / MICROSECOND) as c_long
    }
}

/// Ticks of the clock of `times` in a second.
const TICKS: u64 = 100;

intercept! {
    fn getrusage(who: c_int, usage: *mut libc::rusage) -> c_int, calling pass_on {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let result = unsafe { pass_on(who, usage) };
        if result == 0 {
            let (user, system) = (timeval(clock::read_processor_time()), timeval(0));
            // SAFETY: the kernel has just written there.
            unsafe { ((*usage).ru_utime, (*usage).ru_stime) = (user, system) };
        }
        result
    }

    fn times(usage: *mut libc::tms) -> libc::clock_t {
        let ticks = |nanoseconds: u64| (nanoseconds / (SECOND / TICKS)) as libc::clock_t;
        let now = clock::read(clock::start_of(libc::CLOCK_MONOTONIC));
        if !usage.is_null() {
            let tms_utime = ticks(work::nanoseconds());
            // SAFETY: the program promises libc a place for the times.
            unsafe { usage.write(libc::tms { tms_utime, tms_stime: 0, tms_cutime: 0, tms_cstime: 0 }) };
        }
        ticks(now)
    }
}

intercept! {
    fn sched_yield(; pc) -> c_int {
        sleep::give_way(pc);
        0
    }

    /// glibc no longer has it.
    fn pthread_yield(; pc) -> c_int, otherwise (real!(sched_yield() -> c_int)) {
        sleep::give_way(pc);
        0
    }

    fn sleep(seconds: c_uint; pc) -> c_uint {
        sleep::for_nanoseconds(u64::from(seconds) * SECOND, pc);
        0
    }

    fn usleep(microseconds: c_uint; pc) -> c_int {
        sleep::for_nanoseconds(u64::from(microseconds) * 1000, pc);
        0
    }

    fn nanosleep(duration: Time, rest: TimeOut; pc) -> c_int {
        // SAFETY: the program promises libc a time, or null.
        unsafe { sleep::for_duration(duration, pc) };
        0
    }

    fn clock_nanosleep(clock: Clock, flags: c_int, time: Time, rest: TimeOut; pc) -> c_int {
        let is_absolute = flags & libc::TIMER_ABSTIME != 0;
        // SAFETY: the program promises libc a time, or null.
        let until = unsafe { if is_absolute { clock::deadline(time) } else { clock::after(time) } };
        if let Some(until) = until {
            sleep::until(until, pc);
        }
        0
    }
}

type Setting = *const libc::itimerspec;
type SettingOut = *mut libc::itimerspec;

intercept! {
    fn timerfd_create(clock: Clock, flags: c_int) -> c_int, calling create {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let descriptor = unsafe { create(clock, flags) };
        if descriptor < 0 {
            return descriptor;
        }
        system::close(descriptor);
        // The flags that both have are the same.
        // SAFETY: both are numbers.
        let descriptor = unsafe { real!(eventfd(0 => u32, flags => c_int) -> c_int) };
        if descriptor >= 0 {
            timers::add(descriptor, clock, flags);
        }
        descriptor
    }

    fn timerfd_settime(
        descriptor: c_int, flags: c_int, new: Setting, old: SettingOut; pc
    ) -> c_int, when (active() && !new.is_null() && timers::is_one(descriptor)), calling pass_on {
        // SAFETY: the program promises libc a setting.
        let libc::itimerspec { it_interval, it_value } = unsafe { new.read() };
        let known_flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
        if flags & !known_flags != 0 || !clock::is_valid(&it_interval) || !clock::is_valid(&it_value) {
            return system::fail(libc::EINVAL);
        }
        let pc = users_call(pc);
        point(Operation::new(EventKind::Io, pc, 0));
        // Another thread may have closed it by now.
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let Some(before) = timers::setting(descriptor) else { return unsafe { pass_on(descriptor, flags, new, old) } };
        if !old.is_null() {
            // SAFETY: the program promises libc a place for the setting.
            unsafe { old.write(before) };
        }
        let is_absolute = flags & libc::TFD_TIMER_ABSTIME != 0;
        let (value, interval) = (clock::nanoseconds(&it_value), clock::nanoseconds(&it_interval));
        timers::set(descriptor, is_absolute, value, interval);
        io::done(descriptor, pc);
        0
    }

    fn timerfd_gettime(
        descriptor: c_int, setting: SettingOut
    ) -> c_int, when (active() && timers::is_one(descriptor)), calling pass_on {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let Some(is_set) = timers::setting(descriptor) else { return unsafe { pass_on(descriptor, setting) } };
        if setting.is_null() {
            return system::fail(libc::EFAULT);
        }
        // SAFETY: the program promises libc a place for the setting.
        unsafe { setting.write(is_set) };
        0
    }
}

const MICROSECOND: u64 = 1000;

fn timeval(nanoseconds: u64) -> libc::timeval {
    let microseconds = nanoseconds.div_ceil(MICROSECOND);
    libc::timeval { tv_sec: (microseconds / 1_000_000) as i64, tv_usec: (microseconds % 1_000_000) as c_long }
}

type Interval = *const libc::itimerval;
type IntervalOut = *mut libc::itimerval;

/// How a timer of the process is set; `None` if there is no such timer.
fn interval_timer(which: c_int) -> Option<libc::itimerval> {
    let (left, interval) = match which {
        libc::ITIMER_REAL => alarms::of_process().left_and_interval(),
        // They count the processor's time, of which none ever passes.
        libc::ITIMER_VIRTUAL | libc::ITIMER_PROF => (0, 0),
        _ => return None,
    };
    Some(libc::itimerval { it_interval: timeval(interval), it_value: timeval(left) })
}

intercept! {
    fn alarm(seconds: c_uint) -> c_uint {
        alarms::of_process().set(u64::from(seconds) * SECOND, 0).div_ceil(SECOND) as c_uint
    }

    fn ualarm(value: c_uint, interval: c_uint) -> c_uint {
        let [value, interval] = [value, interval].map(|time| u64::from(time) * MICROSECOND);
        alarms::of_process().set(value, interval).div_ceil(MICROSECOND) as c_uint
    }

    fn setitimer(which: c_int, new: Interval, old: IntervalOut) -> c_int {
        // SAFETY: the program promises libc a setting, or null.
        let new = unsafe { new.as_ref() }.map(|new| (from_timeval(new.it_value), from_timeval(new.it_interval)));
        let (Some(value), Some(interval)) = new.unwrap_or((Some(0), Some(0))) else {
            return system::fail(libc::EINVAL);
        };
        let Some(before) = interval_timer(which) else { return system::fail(libc::EINVAL) };
        if !old.is_null() {
            // SAFETY: the program promises libc a place for it.
            unsafe { old.write(before) };
        }
        if which == libc::ITIMER_REAL {
            alarms::of_process().set(value, interval);
        }
        0
    }

    fn getitimer(which: c_int, setting: IntervalOut) -> c_int {
        let Some(is_set) = interval_timer(which) else { return system::fail(libc::EINVAL) };
        if setting.is_null() {
            return system::fail(libc::EFAULT);
        }
        // SAFETY: the program promises libc a place for it.
        unsafe { setting.write(is_set) };
        0
    }
}

type Id = *mut c_void;

intercept! {
    fn timer_create(clock: Clock, event: *const libc::sigevent, id: *mut Id; pc) -> c_int {
        // SAFETY: the program promises libc a description of what it wants, or null.
        let event = unsafe { event.as_ref() };
        let signal = match event {
            None => libc::SIGALRM,
            Some(event) if event.sigev_notify == libc::SIGEV_NONE => 0,
            Some(event) if event.sigev_notify == libc::SIGEV_THREAD => {
                let what = "a timer that starts a thread (timer_create with SIGEV_THREAD) is not supported";
                process::unsupported(what, pc)
            }
            Some(event) if (1..=64).contains(&event.sigev_signo) => event.sigev_signo,
            Some(_) => return system::fail(libc::EINVAL),
        };
        let value = event.map(|event| event.sigev_value.sival_ptr as u64);
        let number = alarms::create(clock, signal, value);
        // SAFETY: the program promises libc a place for it.
        unsafe { id.write(number as Id) };
        0
    }

    fn timer_settime(id: Id, flags: c_int, new: Setting, old: SettingOut) -> c_int {
        // SAFETY: the program promises libc a setting, or null.
        let (Some(alarm), Some(new)) = (alarms::find(id as usize), unsafe { new.as_ref() }) else {
            return system::fail(libc::EINVAL);
        };
        if !clock::is_valid(&new.it_value) || !clock::is_valid(&new.it_interval) {
            return system::fail(libc::EINVAL);
        }
        if !old.is_null() {
            // SAFETY: the program promises libc a place for it.
            unsafe { old.write(alarm.setting()) };
        }
        let value = clock::nanoseconds(&new.it_value);
        let is_absolute = flags & libc::TIMER_ABSTIME != 0 && value > 0;
        let value = if is_absolute { value.saturating_sub(alarm.clock_time()).max(1) } else { value };
        alarm.set(value, clock::nanoseconds(&new.it_interval));
        0
    }

    fn timer_gettime(id: Id, setting: SettingOut) -> c_int {
        let Some(alarm) = alarms::find(id as usize) else { return system::fail(libc::EINVAL) };
        // SAFETY: the program promises libc a place for it.
        unsafe { setting.write(alarm.setting()) };
        0
    }

    fn timer_getoverrun(id: Id) -> c_int {
        if alarms::find(id as usize).is_some() { 0 } else { system::fail(libc::EINVAL) }
    }

    fn timer_delete(id: Id) -> c_int {
        if alarms::find(id as usize).is_none() {
            return system::fail(libc::EINVAL);
        }
        alarms::delete(id as usize);
        0
    }
}
