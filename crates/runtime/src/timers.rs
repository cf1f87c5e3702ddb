//! Timer descriptors, in virtual time: the kernel's timer is never armed by itself, but made to be over when virtual
//! time has come to its end.
//!
//! While there is only one thread it waits in the kernel, so the kernel's timers run until the first is created.

use std::ffi::c_int;

use crate::carrier::Carrier;
use crate::channels::{self, Kind};
use crate::real::real;
use crate::time::{self, Clock};
use crate::{active, io, scheduler, system};

struct Timer {
    descriptor: c_int,
    /// When it is over, in virtual time, if it runs.
    deadline: Option<u64>,
    /// Nanoseconds after which it is over again; 0 for once.
    interval: u64,
}

static TIMERS: Carrier<Vec<Timer>> = Carrier::new(Vec::new());

type Setting = *const libc::itimerspec;
type SettingOut = *mut libc::itimerspec;

#[unsafe(no_mangle)]
extern "C" fn timerfd_create(clock: Clock, flags: c_int) -> c_int {
    let descriptor = real!(timerfd_create(clock => Clock, flags => c_int) -> c_int);
    if active() && descriptor >= 0 {
        TIMERS.get().push(Timer { descriptor, deadline: None, interval: 0 });
        io::owns(descriptor);
        channels::made(Kind::Timer { clock, flags }, &[descriptor]);
    }
    descriptor
}

#[unsafe(no_mangle)]
extern "C" fn timerfd_settime(descriptor: c_int, flags: c_int, new: Setting, old: SettingOut) -> c_int {
    let set = |flags: c_int, new: Setting, old: SettingOut| real!(timerfd_settime(descriptor => c_int, flags => c_int, new => Setting, old => SettingOut) -> c_int);
    let (Some(timer), false) = (find(descriptor), new.is_null()) else { return set(flags, new, old) };
    // SAFETY: the program's setting.
    let libc::itimerspec { it_interval, it_value } = unsafe { new.read() };
    let is_running = scheduler::get().running;
    let kernels = if is_running { NEVER } else { relative(flags, &it_value, it_interval) };
    let result = set(0, &raw const kernels, std::ptr::null_mut());
    if result != 0 {
        return result;
    }
    if !old.is_null() {
        // SAFETY: the program's place for the setting.
        unsafe { old.write(timer.setting()) };
    }
    let is_armed = (it_value.tv_sec, it_value.tv_nsec) != (0, 0);
    timer.deadline = if is_armed { deadline(flags, &it_value) } else { None };
    timer.interval = time::nanoseconds(&it_interval);
    if is_running && timer.deadline.is_some_and(|deadline| deadline <= scheduler::get().now) {
        timer.fire();
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn timerfd_gettime(descriptor: c_int, setting: SettingOut) -> c_int {
    let Some(timer) = find(descriptor) else {
        return real!(timerfd_gettime(descriptor => c_int, setting => SettingOut) -> c_int);
    };
    // SAFETY: the program's place for the setting.
    unsafe { setting.write(timer.setting()) };
    0
}

const ZERO: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
const NEVER: libc::itimerspec = libc::itimerspec { it_interval: ZERO, it_value: ZERO };

fn find(descriptor: c_int) -> Option<&'static mut Timer> {
    if !active() {
        return None;
    }
    TIMERS.get().iter_mut().find(|timer| timer.descriptor == descriptor)
}

fn deadline(flags: c_int, value: &libc::timespec) -> Option<u64> {
    if flags & libc::TFD_TIMER_ABSTIME == 0 { time::after(value) } else { time::deadline(value) }
}

/// The same setting for the kernel, whose clocks are others.
fn relative(flags: c_int, value: &libc::timespec, it_interval: libc::timespec) -> libc::itimerspec {
    let is_armed = (value.tv_sec, value.tv_nsec) != (0, 0);
    let left = deadline(flags, value).map_or(0, |deadline| deadline.saturating_sub(scheduler::get().now));
    let it_value = if is_armed { time::timespec(left.max(1)) } else { ZERO };
    libc::itimerspec { it_interval, it_value }
}

/// These descriptors are closed.
pub fn forget(closed: impl Fn(c_int) -> bool) {
    TIMERS.get().retain(|timer| !closed(timer.descriptor));
}

/// If a timer is over before `limit`, lets time pass and makes it so. Timers that nobody has looked at since they were
/// over are over already.
pub fn fire_first(now: &mut u64, limit: Option<u64>) -> bool {
    let running = TIMERS.get().iter_mut().filter(|timer| timer.deadline.is_some() && !timer.is_over());
    let Some(first) = running.min_by_key(|timer| timer.deadline) else { return false };
    let Some(deadline) = first.deadline.filter(|&deadline| limit.is_none_or(|limit| deadline <= limit))
    else {
        return false;
    };
    *now = deadline.max(*now);
    first.fire();
    true
}

impl Timer {
    fn setting(&self) -> libc::itimerspec {
        let now = scheduler::get().now;
        let left = self.deadline.map_or(0, |deadline| deadline.saturating_sub(now).max(1));
        libc::itimerspec { it_interval: time::timespec(self.interval), it_value: time::timespec(left) }
    }

    fn is_over(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.descriptor, events: libc::POLLIN, revents: 0 };
        io::is_ready((&raw mut entry) as u64, 1)
    }

    fn fire(&mut self) {
        let again = self.deadline.filter(|_| self.interval > 0);
        self.deadline = again.map(|deadline| deadline.saturating_add(self.interval));
        finish(self.descriptor);
    }
}

/// Makes the kernel's timer be over, and waits until it is.
pub fn finish(descriptor: c_int) {
    /// In milliseconds: more than the kernel takes.
    const LONG: u64 = 1000;
    let soon = libc::itimerspec { it_interval: ZERO, it_value: time::timespec(1) };
    let setting = (&raw const soon) as u64;
    system::call(libc::SYS_timerfd_settime, [descriptor as u64, 0, setting, 0, 0, 0]);
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    system::call(libc::SYS_poll, [(&raw mut entry) as u64, 1, LONG, 0, 0, 0]);
}
