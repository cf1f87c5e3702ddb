//! Timers that send a signal, in virtual time: `alarm`, `setitimer` and `timer_create`.
//!
//! Most of them guard a program that might hang, or end one that would go on. Time passes when nobody can run, so
//! neither happens while somebody can. Where the signal would merely kill the program, it is never sent: what such a
//! timer guards against, the runtime sees for itself.

use std::ffi::c_int;

use super::clock::{self, Clock};
use super::countdown::Countdown;
use super::work;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{self, Scheduler};
use crate::signals::handlers;

#[derive(Clone, Copy)]
pub struct Alarm {
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

/// Some alarm is running.
pub fn are_running() -> bool {
    ALARMS.with(|alarms| alarms.iter().any(|alarm| alarm.countdown.deadline.is_some()))
}

/// The deadline of the next alarm that has an effect. An alarm has none while its signal from the last time is still
/// pending.
pub fn next(sched: &Scheduler) -> Option<u64> {
    let is_new = |alarm: &&Alarm| !sched.is_sent(alarm.signal) && is_wanted(sched, alarm.signal);
    ALARMS.with(|alarms| alarms.iter().filter(is_new).filter_map(|alarm| alarm.countdown.deadline).min())
}

/// What the program wants to be told with this signal, if it is one of a timer's.
pub fn value_of(signal: c_int) -> Option<u64> {
    ALARMS.with(|alarms| alarms.iter().find(|alarm| alarm.signal == signal).map(|alarm| alarm.value))
}

/// The program does something about this signal.
fn is_wanted(sched: &Scheduler, signal: c_int) -> bool {
    signal != 0 && (handlers::has_handler(signal) || sched.is_waited_for(signal))
}

/// Sends the signals of those that are over by now.
pub fn fire_due(sched: &mut Scheduler) {
    ALARMS.with(|alarms| {
        for alarm in alarms {
            if alarm.countdown.times_over(sched.now) > 0 && is_wanted(sched, alarm.signal) {
                sched.send_to_process(alarm.signal);
            }
        }
    });
}

/// Makes an alarm that sends `signal`, with this value or else with its number. Returns its number.
pub fn create(clock: Clock, signal: c_int, value: Option<u64>) -> usize {
    let id = LAST.get() + 1;
    LAST.set(id);
    add(Alarm { id, signal, value: value.unwrap_or(id as u64), clock, countdown: Countdown::default() });
    id
}

fn add(alarm: Alarm) {
    ALARMS.with(|alarms| alarms.push(alarm));
}

pub fn delete(id: usize) {
    ALARMS.with(|alarms| alarms.retain(|alarm| alarm.id != id));
}

/// The alarm with this number.
pub fn find(id: usize) -> Option<Alarm> {
    ALARMS.with(|alarms| alarms.iter().find(|alarm| alarm.id == id).copied())
}

/// The alarm that every process has.
pub fn of_process() -> Alarm {
    find(OF_PROCESS).unwrap_or_else(|| {
        let (signal, clock) = (libc::SIGALRM, libc::CLOCK_REALTIME);
        let alarm = Alarm { id: OF_PROCESS, signal, value: 0, clock, countdown: Countdown::default() };
        add(alarm);
        alarm
    })
}

impl Alarm {
    /// It is over after so many nanoseconds, or not at all if there are none. What was left before.
    pub fn set(&self, value: u64, interval: u64) -> u64 {
        let now = scheduler::now();
        ALARMS.with(|alarms| {
            if let Some(alarm) = alarms.iter_mut().find(|alarm| alarm.id == self.id) {
                let deadline = (value > 0).then(|| now.saturating_add(value));
                alarm.countdown = Countdown { deadline, interval };
            }
        });
        self.countdown.left(now)
    }

    /// Nanoseconds until it is over, and those after which it is over again.
    pub fn left_and_interval(&self) -> (u64, u64) {
        (self.countdown.left(scheduler::now()), self.countdown.interval)
    }

    pub fn setting(&self) -> libc::itimerspec {
        self.countdown.setting(scheduler::now())
    }

    /// What its clock says to the running thread.
    pub fn clock_time(&self) -> u64 {
        let elapsed = scheduler::now().saturating_add(work::nanoseconds());
        clock::start_of(self.clock).saturating_add(elapsed)
    }
}
