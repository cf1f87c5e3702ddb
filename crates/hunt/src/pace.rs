//! Decides how long the next runs may be, so that enough of them fit into the time.

use std::time::{Duration, Instant};

use crate::length::{BEGINNING, Length};
use crate::{Budget, Summary};

/// The time that a hunt has, and what it took so far.
pub struct Pace {
    budget: Budget,
    start: Instant,
    /// The time that went into runs of which only the beginning is wanted.
    in_beginnings: Duration,
    /// A run of all the events that the user allows would take too much of the time.
    is_slow: bool,
    /// Threads start later than where runs begin, so there is nothing to search there.
    starts_late: bool,
}

/// If so many runs had no end, and one of them had all that the user allows, no run is expected to end.
const ENDLESS_RUNS: u64 = 3;
/// A hunt is judged after this part of its time, one in so many: it should have seen a run to its end, and made enough
/// runs.
const FIRST_PART: u32 = 10;
/// While no run has ended, a run may take this part of the time, one in so many. What is left is enough to search where
/// runs begin.
const LONGEST_PART: u32 = 4;
/// A run that is recorded and analysed takes so many times as long as one that is not.
const ANALYSIS: f64 = 8.0;

impl Pace {
    pub fn new(budget: Budget, start: Instant) -> Pace {
        Pace { budget, start, in_beginnings: Duration::ZERO, is_slow: false, starts_late: false }
    }

    /// How long a run may take as long as none has ended, if the user allows `limit`, and whether that is all of it.
    pub fn whole_run_limit(budget: Budget, limit: Duration) -> (Duration, bool) {
        let part = budget.time.map_or(limit, |time| time / LONGEST_PART);
        (limit.min(part), limit <= part)
    }

    /// How long a look at the program may take, before the search; `None` if there is no hurry.
    pub fn probe_limit(&self) -> Option<Duration> {
        self.budget.time.map(|time| time / (2 * FIRST_PART))
    }

    /// A beginning took this long and was not all of the run, which may have `max_events`.
    pub fn probed(&mut self, beginning: Duration, max_events: u64) {
        let whole = beginning.as_secs_f64() * (max_events / BEGINNING) as f64 * ANALYSIS;
        self.is_slow = self.budget.time.is_some_and(|time| whole > (time / LONGEST_PART).as_secs_f64());
    }

    /// A beginning had no threads but those that every run has.
    pub fn had_no_threads(&mut self) {
        self.starts_late = true;
    }

    /// The time that is left, if it is bounded.
    pub fn time_left(&self) -> Option<Duration> {
        self.budget.time.map(|time| time.saturating_sub(self.start.elapsed()))
    }

    /// The time is up.
    pub fn is_late(&self) -> bool {
        self.budget.time.is_some_and(|time| self.start.elapsed() >= time)
    }

    /// Runs of this length were made, the first of which began at `begun`.
    pub fn made(&mut self, length: Length, begun: Instant) {
        if length == Length::Beginning {
            self.in_beginnings += begun.elapsed();
        }
    }

    /// No run comes to an end, however many events it is allowed, or in so much of the time that few could follow.
    pub fn is_endless(&self, so_far: &Summary) -> bool {
        let had_all = so_far.runs >= ENDLESS_RUNS && so_far.had_all();
        // The first run may have had few events, unless it had all the time that there is for one.
        let had_time = (so_far.runs > 1 || so_far.stopped.time_limit > 0)
            && self.budget.time.is_some_and(|time| self.start.elapsed() >= time / FIRST_PART);
        so_far.nothing_ended() && (self.is_slow || are_long(so_far) && (had_all || had_time))
    }

    /// What is endless is searched where it begins. Where runs do end, but take so long that there will not be as many
    /// as there should be, up to two thirds of the time are for beginnings.
    pub fn next_length(&self, so_far: &Summary) -> Length {
        let room = || self.in_beginnings < self.start.elapsed() * 2 / 3;
        let is_endless = so_far.endless || self.is_slow;
        let is_for_beginnings = is_endless || self.is_behind(so_far) && room();
        if is_for_beginnings && !self.starts_late { Length::Beginning } else { Length::Whole }
    }

    /// Runs are long, and there were fewer of them than there should have been by now.
    pub fn is_behind(&self, so_far: &Summary) -> bool {
        let (Some(runs), Some(time)) = (self.budget.runs, self.budget.time) else { return false };
        // The last of them should not be late.
        let part = self.start.elapsed().div_duration_f64(time.mul_f64(0.9));
        let is_time_to_ask = part * f64::from(FIRST_PART) >= 1.0;
        are_long(so_far) && is_time_to_ask && (so_far.runs as f64) < runs as f64 * part
    }
}

fn are_long(so_far: &Summary) -> bool {
    so_far.events >= so_far.runs * BEGINNING
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { runs: Some(200), time: Some(Duration::from_secs(60)) };

    /// A hunt that has gone on for half of its time.
    fn at_half_time(runs: u64, events_each: u64) -> (Pace, Summary) {
        let start = Instant::now() - Duration::from_secs(30);
        let mut so_far = Summary::new(start);
        (so_far.runs, so_far.events) = (runs, runs * events_each);
        (Pace::new(BUDGET, start), so_far)
    }

    #[test]
    fn who_is_behind_with_long_runs_makes_short_ones_for_two_thirds_of_the_time() {
        let (mut pace, so_far) = at_half_time(50, 20_000);
        assert!(pace.is_behind(&so_far) && pace.next_length(&so_far) == Length::Beginning);
        pace.made(Length::Whole, pace.start);
        assert!(pace.next_length(&so_far) == Length::Beginning, "whole runs are not counted");
        pace.in_beginnings = Duration::from_secs(29);
        assert!(pace.is_behind(&so_far) && pace.next_length(&so_far) == Length::Whole);
    }

    #[test]
    fn who_is_in_time_or_has_short_runs_makes_whole_ones() {
        for (runs, events_each) in [(150, 20_000), (50, 1_000)] {
            let (pace, so_far) = at_half_time(runs, events_each);
            assert!(!pace.is_behind(&so_far) && pace.next_length(&so_far) == Length::Whole);
        }
        let (pace, so_far) = at_half_time(50, 20_000);
        let without_a_number = Pace { budget: Budget { runs: None, ..BUDGET }, ..pace };
        assert!(!without_a_number.is_behind(&so_far), "nobody said how many there should be");
    }

    /// Protects short budgets: one run of all the events that are allowed would take all of the time.
    #[test]
    fn what_is_slow_for_its_time_is_searched_where_it_begins() {
        let length = |seconds, beginning| {
            let budget = Budget { runs: Some(50), time: Some(Duration::from_secs(seconds)) };
            let mut pace = Pace::new(budget, Instant::now());
            pace.probed(Duration::from_millis(beginning), 1_000_000);
            pace.next_length(&Summary::new(Instant::now()))
        };
        assert!(length(10, 10) == Length::Beginning);
        assert!(length(60, 10) == Length::Whole);
        assert!(length(60, 50) == Length::Beginning);
        let second = Duration::from_secs(1);
        let limit = |seconds| Pace::whole_run_limit("1runs,10s".parse().expect("a budget"), second * seconds);
        assert_eq!([limit(10), limit(2)], [(second * 5 / 2, false), (second * 2, true)]);
    }

    /// Protects tests that prepare much before their first thread: they passed, and no schedule was tried.
    #[test]
    fn where_threads_start_late_runs_are_whole() {
        let (mut pace, mut so_far) = at_half_time(50, 20_000);
        so_far.endless = true;
        assert!(pace.next_length(&so_far) == Length::Beginning);
        pace.had_no_threads();
        assert!(pace.next_length(&so_far) == Length::Whole);
    }

    #[test]
    fn what_ends_is_not_endless() {
        let (pace, mut so_far) = at_half_time(5, 20_000);
        assert!(!pace.is_endless(&so_far));
        so_far.endless = true;
        assert!(pace.next_length(&so_far) == Length::Beginning);
    }
}
