//! Something that is over at a virtual time, once or again and again.

use crate::schedule::scheduler;
use crate::time::clock;

#[derive(Default)]
pub struct Countdown {
    /// When it is over, if it runs.
    pub deadline: Option<u64>,
    /// Nanoseconds after which it is over again; 0 for once.
    pub interval: u64,
}

impl Countdown {
    /// Nanoseconds until it is over; 0 when it does not run.
    pub fn left(&self) -> u64 {
        let now = scheduler::get().now;
        self.deadline.map_or(0, |deadline| deadline.saturating_sub(now).max(1))
    }

    /// As programs have it.
    pub fn setting(&self) -> libc::itimerspec {
        libc::itimerspec {
            it_interval: clock::timespec(self.interval),
            it_value: clock::timespec(self.left()),
        }
    }

    /// How often it was over by `now`, since this was last asked.
    pub fn times_over(&mut self, now: u64) -> u64 {
        let Some(deadline) = self.deadline.filter(|&deadline| deadline <= now) else { return 0 };
        let more = (now - deadline).checked_div(self.interval);
        let times = more.map_or(1, |more| more + 1);
        self.deadline = more.map(|_| deadline.saturating_add(times.saturating_mul(self.interval)));
        times
    }
}
