//! Timers that send a signal, in virtual time: `alarm`, `setitimer` and `timer_create`.
//!
//! Most of them guard a program that might hang, or end one that would go on. Time passes when nobody can run, so
//! neither happens while somebody can. Where the signal would merely kill the program, it is never sent: what such a
//! timer guards against, the runtime sees for itself.

use std::ffi::{c_int, c_long, c_uint, c_void};

use threadbare_wire::Ending;

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Scheduler, finish};
use crate::signals::handlers;
use crate::time::clock;
use crate::time::clock::{Clock, SECOND, from_timeval};
use crate::time::countdown::Countdown;

struct Alarm {
    id: usize,
    /// 0 for none.
    signal: c_int,
    /// What the program wants to be told with it.
    value: u64,
    clock: Clock,
    countdown: Countdown,
}

static ALARMS: Carrier<Vec<Alarm>> = Carrier::new(Vec::new());
/// The last number that an alarm was given.
static LAST: Carrier<usize> = Carrier::new(OF_PROCESS);

/// The number of the one that every process has.
const OF_PROCESS: usize = 0;

const MICROSECOND: u64 = 1000;

/// Some alarm is running.
pub fn are_running() -> bool {
    ALARMS.get().iter().any(|alarm| alarm.countdown.deadline.is_some())
}

/// When the next one is over that would do something. One whose signal nobody has had yet would not.
pub fn next(sched: &Scheduler) -> Option<u64> {
    let is_new = |alarm: &&Alarm| !sched.is_sent(alarm.signal) && is_wanted(sched, alarm.signal);
    ALARMS.get().iter().filter(is_new).filter_map(|alarm| alarm.countdown.deadline).min()
}

/// What the program wants to be told with this signal, if it is one of a timer's.
pub fn value_of(signal: c_int) -> Option<u64> {
    ALARMS.get().iter().find(|alarm| alarm.signal == signal).map(|alarm| alarm.value)
}

/// The program does something about this signal.
fn is_wanted(sched: &Scheduler, signal: c_int) -> bool {
    signal != 0 && (handlers::has_handler(signal) || sched.is_waited_for(signal))
}

/// Sends the signals of those that are over by now.
pub fn fire_due(sched: &mut Scheduler) {
    for alarm in ALARMS.get() {
        if alarm.countdown.times_over(sched.now) > 0 && is_wanted(sched, alarm.signal) {
            sched.send_to_process(alarm.signal);
        }
    }
}

fn find(id: usize) -> Option<&'static mut Alarm> {
    ALARMS.get().iter_mut().find(|alarm| alarm.id == id)
}

fn of_process() -> &'static mut Alarm {
    if find(OF_PROCESS).is_none() {
        ALARMS.get().push(Alarm::new(OF_PROCESS, libc::SIGALRM, 0, libc::CLOCK_REALTIME));
    }
    find(OF_PROCESS).expect("it was just put there")
}

impl Alarm {
    fn new(id: usize, signal: c_int, value: u64, clock: Clock) -> Alarm {
        Alarm { id, signal, value, clock, countdown: Countdown::default() }
    }

    /// Is over after so many nanoseconds, or not at all if there are none. What was left before.
    fn set(&mut self, value: u64, interval: u64) -> u64 {
        let left = self.countdown.left();
        let now = scheduler::get().now;
        self.countdown = Countdown { deadline: (value > 0).then(|| now.saturating_add(value)), interval };
        left
    }
}

#[unsafe(no_mangle)]
extern "C" fn alarm(seconds: c_uint) -> c_uint {
    if !active() {
        return real!(alarm(seconds => c_uint) -> c_uint);
    }
    of_process().set(u64::from(seconds) * SECOND, 0).div_ceil(SECOND) as c_uint
}

#[unsafe(no_mangle)]
extern "C" fn ualarm(value: c_uint, interval: c_uint) -> c_uint {
    if !active() {
        return real!(ualarm(value => c_uint, interval => c_uint) -> c_uint);
    }
    let [value, interval] = [value, interval].map(|time| u64::from(time) * MICROSECOND);
    of_process().set(value, interval).div_ceil(MICROSECOND) as c_uint
}

fn timeval(nanoseconds: u64) -> libc::timeval {
    let microseconds = nanoseconds.div_ceil(MICROSECOND);
    libc::timeval { tv_sec: (microseconds / 1_000_000) as i64, tv_usec: (microseconds % 1_000_000) as c_long }
}

type Interval = *const libc::itimerval;
type IntervalOut = *mut libc::itimerval;

#[unsafe(no_mangle)]
extern "C" fn setitimer(which: c_int, new: Interval, old: IntervalOut) -> c_int {
    if !active() {
        return real!(setitimer(which => c_int, new => Interval, old => IntervalOut) -> c_int);
    }
    // SAFETY: null, or the program's setting.
    let new = unsafe { new.as_ref() }.map(|new| (from_timeval(new.it_value), from_timeval(new.it_interval)));
    let (Some(value), Some(interval)) = new.unwrap_or((Some(0), Some(0))) else {
        return system::fail(libc::EINVAL);
    };
    if !old.is_null() && getitimer(which, old) != 0 {
        return -1;
    }
    match which {
        libc::ITIMER_REAL => {
            of_process().set(value, interval);
            0
        }
        // They count the processor's time, of which none ever passes.
        libc::ITIMER_VIRTUAL | libc::ITIMER_PROF => 0,
        _ => system::fail(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
extern "C" fn getitimer(which: c_int, setting: IntervalOut) -> c_int {
    if !active() {
        return real!(getitimer(which => c_int, setting => IntervalOut) -> c_int);
    }
    let (left, interval) = match which {
        libc::ITIMER_REAL => (of_process().countdown.left(), of_process().countdown.interval),
        libc::ITIMER_VIRTUAL | libc::ITIMER_PROF => (0, 0),
        _ => return system::fail(libc::EINVAL),
    };
    if setting.is_null() {
        return system::fail(libc::EFAULT);
    }
    // SAFETY: the program's place for it.
    unsafe { setting.write(libc::itimerval { it_interval: timeval(interval), it_value: timeval(left) }) };
    0
}

intercept! {
    timer_create/3 => create;
}

type Id = *mut c_void;
type Setting = *const libc::itimerspec;
type SettingOut = *mut libc::itimerspec;

extern "C" fn create(clock: Clock, event: *const libc::sigevent, id: *mut Id, pc: u64) -> c_int {
    if !active() {
        return real!(timer_create(clock => Clock, event => *const libc::sigevent, id => *mut Id) -> c_int);
    }
    // SAFETY: null, or the program's wish.
    let signal = match unsafe { event.as_ref() } {
        None => libc::SIGALRM,
        Some(event) if event.sigev_notify == libc::SIGEV_NONE => 0,
        Some(event) if event.sigev_notify == libc::SIGEV_THREAD => {
            let what = "a timer that starts a thread (timer_create with SIGEV_THREAD) is not supported";
            finish(Ending::Unsupported, 0, users_call(pc), what)
        }
        Some(event) if (1..=64).contains(&event.sigev_signo) => event.sigev_signo,
        Some(_) => return system::fail(libc::EINVAL),
    };
    let number = LAST.get();
    *number += 1;
    // SAFETY: null, or the program's wish.
    let value = unsafe { event.as_ref() }.map_or(*number as u64, |event| event.sigev_value.sival_ptr as u64);
    ALARMS.get().push(Alarm::new(*number, signal, value, clock));
    // SAFETY: the program's place for it.
    unsafe { id.write(*number as Id) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn timer_settime(id: Id, flags: c_int, new: Setting, old: SettingOut) -> c_int {
    if !active() {
        return real!(timer_settime(id => Id, flags => c_int, new => Setting, old => SettingOut) -> c_int);
    }
    // SAFETY: null, or the program's setting.
    let (Some(alarm), Some(new)) = (find(id as usize), unsafe { new.as_ref() }) else {
        return system::fail(libc::EINVAL);
    };
    if !clock::is_valid(&new.it_value) || !clock::is_valid(&new.it_interval) {
        return system::fail(libc::EINVAL);
    }
    if !old.is_null() {
        timer_gettime(id, old);
    }
    let value = clock::nanoseconds(&new.it_value);
    let is_absolute = flags & libc::TIMER_ABSTIME != 0 && value > 0;
    let passed = clock::start_of(alarm.clock).saturating_add(scheduler::get().now);
    let value = if is_absolute { value.saturating_sub(passed).max(1) } else { value };
    alarm.set(value, clock::nanoseconds(&new.it_interval));
    0
}

#[unsafe(no_mangle)]
extern "C" fn timer_gettime(id: Id, setting: SettingOut) -> c_int {
    if !active() {
        return real!(timer_gettime(id => Id, setting => SettingOut) -> c_int);
    }
    let Some(alarm) = find(id as usize) else { return system::fail(libc::EINVAL) };
    // SAFETY: the program's place for it.
    unsafe { setting.write(alarm.countdown.setting()) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn timer_getoverrun(id: Id) -> c_int {
    if !active() {
        return real!(timer_getoverrun(id => Id) -> c_int);
    }
    if find(id as usize).is_some() { 0 } else { system::fail(libc::EINVAL) }
}

#[unsafe(no_mangle)]
extern "C" fn timer_delete(id: Id) -> c_int {
    if !active() {
        return real!(timer_delete(id => Id) -> c_int);
    }
    if find(id as usize).is_none() {
        return system::fail(libc::EINVAL);
    }
    ALARMS.get().retain(|alarm| alarm.id != id as usize);
    0
}
