//! Which schedules are tried.
//!
//! The first few runs find out what memory is shared. After them come random schedules and priority schedules
//! (PCT) in turn; every now and then one of them learns again, because a schedule may reach memory that none
//! before it did.

use threadbare_trace::{Plan, Policy, Random, Tracked};

/// Runs that learn, at the start.
const FIRST_LEARNING: u64 = 6;
/// One run in so many learns after that. (Not a power of two: both methods are to have their share.)
const LEARNING: u64 = 7;
/// What a run may have of events at first; more when that turns out to be too little.
const FIRST_BOUND: u64 = 20_000;
const BOUND_GROWTH: u64 = 10;
/// Priority schedules have up to this many change points.
const MOST_CHANGES: u64 = 4;

/// What the plans depend on; fixed within a round, so that a hunt is the same however many workers it has.
#[derive(Clone, Debug)]
pub struct Knowledge {
    pub tracked: Tracked,
    /// The most events that a run has had.
    pub longest: u64,
    pub seed: u64,
    /// The bound on a run's events: a livelock shows within a short one, so it is only raised for programs that
    /// need more.
    pub bound: u64,
    /// What the user allows.
    pub max_events: u64,
    /// Data races are wanted.
    pub races: bool,
    /// Waits that may end without a notification, in each run.
    pub spurious: u32,
}

impl Knowledge {
    pub fn new(seed: u64, max_events: u64) -> Knowledge {
        let bound = max_events.min(FIRST_BOUND);
        Knowledge {
            tracked: Tracked::default(),
            longest: 0,
            seed,
            bound,
            max_events,
            races: false,
            spurious: 0,
        }
    }

    /// A run came to its bound and was still getting somewhere. `false` when it cannot have more.
    pub fn allow_more(&mut self) -> bool {
        let more = self.bound < self.max_events;
        self.bound = self.max_events.min(self.bound * BOUND_GROWTH);
        more
    }
}

/// The name under which the `number`-th run (from 0) is counted.
pub fn method(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "random" } else { "pct" }
}

/// How many runs, starting with the `number`-th, are planned from the same knowledge.
pub fn round(number: u64) -> u64 {
    if number < FIRST_LEARNING { 1 } else { number.clamp(8, 256) }
}

pub fn plan(number: u64, knowledge: &Knowledge) -> Plan {
    let mut random = Random(knowledge.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_add(1));
    let seed = random.next();
    let policy = match (number, method(number)) {
        (0, _) => Policy::RunToBlock,
        (_, "random") => Policy::Random { seed },
        _ => {
            let count = random.next() % MOST_CHANGES;
            let mut changes: Vec<u64> =
                (0..count).map(|_| random.next() % knowledge.longest.max(1)).collect();
            changes.sort_unstable();
            Policy::Priorities { seed, changes }
        }
    };
    Plan {
        policy,
        tracked: knowledge.tracked.clone(),
        learn: number < FIRST_LEARNING || number.is_multiple_of(LEARNING),
        races: knowledge.races,
        spurious: knowledge.spurious,
        max_events: knowledge.bound,
        seed: knowledge.seed,
        ..Plan::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knowledge(seed: u64) -> Knowledge {
        Knowledge { longest: 100, ..Knowledge::new(seed, 1000) }
    }

    #[test]
    fn a_seed_fixes_the_plans_and_another_changes_them() {
        assert_eq!(plan(7, &knowledge(1)), plan(7, &knowledge(1)));
        assert_ne!(plan(7, &knowledge(1)).policy, plan(7, &knowledge(2)).policy);
        assert_ne!(plan(7, &knowledge(1)).policy, plan(9, &knowledge(1)).policy);
    }

    #[test]
    fn the_bound_grows_to_what_the_user_allows() {
        let mut knowledge = Knowledge::new(0, 1_000_000);
        assert_eq!(knowledge.bound, 20_000);
        assert!(knowledge.allow_more() && knowledge.allow_more());
        assert_eq!(knowledge.bound, 1_000_000);
        assert!(!knowledge.allow_more());
    }

    #[test]
    fn change_points_lie_within_the_longest_run() {
        for number in (1..400).step_by(2) {
            let Policy::Priorities { changes, .. } = plan(number, &knowledge(0)).policy else {
                panic!("run {number} is not a priority schedule")
            };
            assert!(changes.is_sorted() && changes.iter().all(|&change| change < 100), "{changes:?}");
        }
    }
}
