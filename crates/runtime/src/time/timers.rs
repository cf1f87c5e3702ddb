//! Timer descriptors, in virtual time.
//!
//! To the kernel each is an event descriptor: a counter that can be waited for. What a read of a timer gives, how often
//! it was over since the last one, is such a count. Whenever virtual time moves, the timers that are over by then are
//! counted up ([`fire_due`]).

use std::ffi::c_int;

use threadbare_trace::EventKind;

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::os::channels::Kind;
use crate::os::{channels, descriptors, io, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, point};
use crate::time::clock;
use crate::time::clock::Clock;
use crate::time::countdown::Countdown;

struct Timer {
    descriptor: c_int,
    clock: Clock,
    countdown: Countdown,
}

static TIMERS: Carrier<Vec<Timer>> = Carrier::new(Vec::new());

type Setting = *const libc::itimerspec;
type SettingOut = *mut libc::itimerspec;

intercept! {
    timerfd_settime/4 => set;
}

#[unsafe(no_mangle)]
extern "C" fn timerfd_create(clock: Clock, flags: c_int) -> c_int {
    let descriptor = real!(timerfd_create(clock => Clock, flags => c_int) -> c_int);
    if !active() || descriptor < 0 {
        return descriptor;
    }
    system::call(libc::SYS_close, [descriptor as u64, 0, 0, 0, 0, 0]);
    // The flags that both have are the same.
    let descriptor = real!(eventfd(0 => u32, flags => c_int) -> c_int);
    if descriptor >= 0 {
        io::forget(|own| own == descriptor);
        TIMERS.get().push(Timer { descriptor, clock, countdown: Countdown::default() });
        io::owns(descriptor);
        channels::made(Kind::Timer { flags }, &[descriptor]);
    }
    descriptor
}

extern "C" fn set(descriptor: c_int, flags: c_int, new: Setting, old: SettingOut, pc: u64) -> c_int {
    let pass_on = || real!(timerfd_settime(descriptor => c_int, flags => c_int, new => Setting, old => SettingOut) -> c_int);
    if new.is_null() || find(descriptor).is_none() {
        return pass_on();
    }
    // SAFETY: the program's setting.
    let libc::itimerspec { it_interval, it_value } = unsafe { new.read() };
    let known_flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
    if flags & !known_flags != 0 || !clock::is_valid(&it_interval) || !clock::is_valid(&it_value) {
        return system::fail(libc::EINVAL);
    }
    let pc = users_call(pc);
    point(Operation::new(EventKind::Io, pc, 0));
    // Another thread may have closed it by now.
    let Some(timer) = find(descriptor) else { return pass_on() };
    if !old.is_null() {
        // SAFETY: the program's place for the setting.
        unsafe { old.write(timer.countdown.setting()) };
    }
    timer.take();
    let value = clock::nanoseconds(&it_value);
    let now = scheduler::get().now;
    timer.countdown.interval = clock::nanoseconds(&it_interval);
    timer.countdown.deadline = match flags & libc::TFD_TIMER_ABSTIME {
        _ if value == 0 => None,
        0 => Some(now.saturating_add(value)),
        _ => Some(value.saturating_sub(clock::start_of(timer.clock))),
    };
    fire_due(now);
    io::done(descriptor, pc);
    0
}

#[unsafe(no_mangle)]
extern "C" fn timerfd_gettime(descriptor: c_int, setting: SettingOut) -> c_int {
    match find(descriptor) {
        None => real!(timerfd_gettime(descriptor => c_int, setting => SettingOut) -> c_int),
        Some(_) if setting.is_null() => system::fail(libc::EFAULT),
        Some(timer) => {
            // SAFETY: the program's place for the setting.
            unsafe { setting.write(timer.countdown.setting()) };
            0
        }
    }
}

/// The timer that the program has under this number, if it is one.
fn find(descriptor: c_int) -> Option<&'static mut Timer> {
    if !active() {
        return None;
    }
    let timers = TIMERS.get();
    let named = timers.iter().position(|timer| timer.descriptor == descriptor);
    let is_same = |timer: &Timer| descriptors::are_same(timer.descriptor, descriptor);
    named.or_else(|| timers.iter().position(is_same)).map(|index| &mut timers[index])
}

/// These descriptors are about to be closed. A timer that has another number goes by that.
pub fn forget(closed: &impl Fn(c_int) -> bool) {
    TIMERS.get().retain_mut(|timer| {
        if !closed(timer.descriptor) {
            return true;
        }
        let is_left = |&other: &c_int| !closed(other) && descriptors::are_same(timer.descriptor, other);
        let left = descriptors::all().into_iter().find(is_left);
        timer.descriptor = left.unwrap_or(timer.descriptor);
        left.is_some()
    });
}

/// Some timer is running.
pub fn are_running() -> bool {
    TIMERS.get().iter().any(|timer| timer.countdown.deadline.is_some())
}

/// When the next timer is over. Those that nobody has looked at since they were are over already.
pub fn next() -> Option<u64> {
    let running = TIMERS.get().iter().filter(|timer| timer.countdown.deadline.is_some() && !timer.is_over());
    running.filter_map(|timer| timer.countdown.deadline).min()
}

/// Counts up the timers that are over by now; says whether any is.
pub fn fire_due(now: u64) -> bool {
    let mut fired = false;
    TIMERS.get().retain_mut(|timer| {
        let times = timer.countdown.times_over(now);
        if times == 0 {
            return true;
        }
        fired = true;
        let count = (&raw const times) as u64;
        system::call(libc::SYS_write, [timer.descriptor as u64, count, 8, 0, 0, 0]) == 8
    });
    fired
}

impl Timer {
    fn is_over(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.descriptor, events: libc::POLLIN, revents: 0 };
        io::is_ready((&raw mut entry) as u64, 1)
    }

    /// Sets the count back to nothing.
    fn take(&self) {
        if self.is_over() {
            let mut count = 0u64;
            let place = (&raw mut count) as u64;
            system::call(libc::SYS_read, [self.descriptor as u64, place, 8, 0, 0, 0]);
        }
    }
}
