//! A deadline in virtual time that may repeat.

use super::clock;

#[derive(Clone, Copy, Default)]
pub struct Countdown {
    /// When it is over, if it runs.
    pub deadline: Option<u64>,
    /// Nanoseconds after which it is over again; 0 for once.
    pub interval: u64,
}

impl Countdown {
    /// Nanoseconds until it is over; 0 when it does not run.
    pub fn left(&self, now: u64) -> u64 {
        self.deadline.map_or(0, |deadline| deadline.saturating_sub(now).max(1))
    }

    /// As programs have it.
    pub fn setting(&self, now: u64) -> libc::itimerspec {
        libc::itimerspec {
            it_interval: clock::timespec(self.interval),
            it_value: clock::timespec(self.left(now)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A timer without an interval is over once and then stands still.
    #[test]
    fn once() {
        let mut countdown = Countdown { deadline: Some(10), interval: 0 };
        assert_eq!(countdown.left(4), 6);
        assert_eq!(countdown.times_over(9), 0);
        assert_eq!(countdown.times_over(10), 1);
        assert_eq!(countdown.deadline, None);
        assert_eq!((countdown.left(11), countdown.times_over(100)), (0, 0));
    }

    /// Time may jump over several ends of an interval: all of them count, and the next is where it would have been.
    #[test]
    fn again_and_again() {
        let mut countdown = Countdown { deadline: Some(10), interval: 5 };
        assert_eq!(countdown.times_over(21), 3);
        assert_eq!(countdown.deadline, Some(25));
        assert_eq!(countdown.times_over(24), 0);
        assert_eq!(countdown.times_over(25), 1);
    }

    /// To a program, 0 left means that a timer does not run.
    #[test]
    fn what_is_left_of_a_running_timer_is_never_nothing() {
        let countdown = Countdown { deadline: Some(10), interval: 0 };
        assert_eq!(countdown.left(10), 1);
        assert_eq!(countdown.setting(12).it_value.tv_nsec, 1);
    }
}
