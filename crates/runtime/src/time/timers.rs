//! Timer descriptors, in virtual time.
//!
//! To the kernel each is an event descriptor: a counter that can be waited for. A read of a timer descriptor tells how
//! often the timer was over since the last read, which is such a count. Whenever virtual time moves, the timers that
//! are over by then are counted up ([`fire_due`]).

use std::cell::Cell;
use std::ffi::c_int;

use super::clock::{self, Clock};
use super::countdown::Countdown;
use crate::os::channels::{self, Kind};
use crate::os::{descriptors, io, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

#[derive(Clone, Copy)]
struct Timer {
    descriptor: c_int,
    clock: Clock,
    countdown: Countdown,
}

static TIMERS: Carrier<Vec<Timer>> = Carrier::new(Vec::new());

/// The program has made a timer, which is an event descriptor to the kernel.
pub fn add(descriptor: c_int, clock: Clock, flags: c_int) {
    io::forget(|own| own == descriptor);
    TIMERS.with(|timers| timers.push(Timer { descriptor, clock, countdown: Countdown::default() }));
    io::owns(descriptor);
    channels::made(Kind::Timer { flags }, &[descriptor]);
}

/// The descriptor is a timer's.
pub fn is_one(descriptor: c_int) -> bool {
    with(descriptor, |_| ()).is_some()
}

/// How the timer is set, if the descriptor is a timer's. That is a look at a clock.
pub fn setting(descriptor: c_int) -> Option<libc::itimerspec> {
    clock::read(0);
    with(descriptor, |timer| timer.countdown).map(|countdown| countdown.setting(scheduler::now()))
}

/// Sets the timer, whose count begins anew. `None` if the descriptor is not a timer's.
pub fn set(descriptor: c_int, is_absolute: bool, value: u64, interval: u64) -> Option<()> {
    let now = scheduler::now();
    with(descriptor, |timer| {
        timer.take();
        timer.countdown.interval = interval;
        timer.countdown.deadline = match is_absolute {
            _ if value == 0 => None,
            false => Some(now.saturating_add(value)),
            true => Some(clock::virtual_time(value.saturating_sub(clock::start_of(timer.clock)))),
        };
    })?;
    fire_due(now);
    Some(())
}

/// Lends the timer that this descriptor is to `work`. `None` if it is not one.
fn with<R>(descriptor: c_int, work: impl FnOnce(&mut Timer) -> R) -> Option<R> {
    TIMERS.with(|timers| {
        let named = timers.iter().position(|timer| timer.descriptor == descriptor);
        let is_same = |timer: &Timer| descriptors::are_same(timer.descriptor, descriptor);
        let index = named.or_else(|| timers.iter().position(is_same))?;
        Some(work(&mut timers[index]))
    })
}

/// These descriptors are about to be closed. A timer that has a second descriptor stays, under that one.
pub fn forget(closed: &impl Fn(c_int) -> bool) {
    let number_after = |timer: &Timer| {
        if !closed(timer.descriptor) {
            return Some(timer.descriptor);
        }
        let is_left = |&other: &c_int| !closed(other) && descriptors::are_same(timer.descriptor, other);
        descriptors::all().into_iter().find(is_left)
    };
    TIMERS.with(|timers| {
        timers.retain_mut(|timer| {
            let number = number_after(timer);
            timer.descriptor = number.unwrap_or(timer.descriptor);
            number.is_some()
        });
    });
}

/// Some timer is running.
pub fn are_running() -> bool {
    TIMERS.with(|timers| timers.iter().any(|timer| timer.countdown.deadline.is_some()))
}

/// When the next timer is over. Those that nobody has looked at since they were are over already.
pub fn next() -> Option<u64> {
    TIMERS.with(|timers| {
        let running = timers.iter().filter(|timer| timer.countdown.deadline.is_some() && !timer.is_over());
        running.filter_map(|timer| timer.countdown.deadline).min()
    })
}

/// Counts up the timers that are over by now; says whether any is.
pub fn fire_due(now: u64) -> bool {
    let mut fired = false;
    TIMERS.with(|timers| {
        timers.retain_mut(|timer| {
            let times = timer.countdown.times_over(now);
            if times == 0 {
                return true;
            }
            fired = true;
            system::write(timer.descriptor, &times.to_ne_bytes()) == 8
        });
    });
    fired
}

impl Timer {
    fn is_over(&self) -> bool {
        let entry = Cell::new(libc::pollfd { fd: self.descriptor, events: libc::POLLIN, revents: 0 });
        io::is_ready(std::slice::from_ref(&entry))
    }

    /// Sets the count back to nothing.
    fn take(&self) {
        if self.is_over() {
            system::read(self.descriptor, &mut [0; 8]);
        }
    }
}
