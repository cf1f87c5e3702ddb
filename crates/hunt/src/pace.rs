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
}

/// If so many runs had no end, and one of them had all that the user allows, no run is expected to end.
const ENDLESS_RUNS: u64 = 3;
/// A hunt is judged after this part of its time, one in so many: it should have seen a run to its end, and made enough
/// runs.
const FIRST_PART: u32 = 10;

impl Pace {
    pub fn new(budget: Budget, start: Instant) -> Pace {
        Pace { budget, start, in_beginnings: Duration::ZERO }
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
        // The first run may have had few events.
        let had_time =
            so_far.runs > 1 && self.budget.time.is_some_and(|time| self.start.elapsed() >= time / FIRST_PART);
        so_far.nothing_ended() && are_long(so_far) && (had_all || had_time)
    }

    /// What is endless is searched where it begins. Where runs do end, but take so long that there will not be as many
    /// as there should be, up to two thirds of the time are for beginnings.
    pub fn next_length(&self, so_far: &Summary) -> Length {
        let room = || self.in_beginnings < self.start.elapsed() * 2 / 3;
        if so_far.endless || self.is_behind(so_far) && room() { Length::Beginning } else { Length::Whole }
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

    #[test]
    fn what_ends_is_not_endless() {
        let (pace, mut so_far) = at_half_time(5, 20_000);
        assert!(!pace.is_endless(&so_far));
        so_far.endless = true;
        assert!(pace.next_length(&so_far) == Length::Beginning);
    }
}
