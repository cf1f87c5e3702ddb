//! How long a run may be.

use threadbare_trace::{Plan, Policy, Turns};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As many events as the user and the strategy allow.
    Whole,
    /// Only so many events that threads meet.
    Beginning,
}

/// How many events are enough for threads to meet.
pub const BEGINNING: u64 = 10_000;

/// How many events a run may have for each turn that its plan forces.
const EVENTS_PER_TURN: u64 = 3;

impl Length {
    /// A plan that forces at most so many turns fits into this length.
    pub fn max_turns(self) -> u64 {
        match self {
            Length::Whole => u64::MAX,
            Length::Beginning => BEGINNING / EVENTS_PER_TURN,
        }
    }

    /// Lets a run of `plan` be no longer than this.
    ///
    /// Scheduling is fair in the second half of what is allowed. So what the plan forces must come to its end in the
    /// first, with room for what it is to lead to, and changes of priority must be there too.
    pub fn limit(self, plan: &mut Plan) {
        let max_events = BEGINNING.max(Turns::total(&plan.turns).saturating_mul(EVENTS_PER_TURN));
        if self == Length::Whole || max_events >= plan.max_events {
            return;
        }
        plan.max_events = max_events;
        if let Policy::Priorities { changes, .. } = &mut plan.policy {
            changes.iter_mut().for_each(|at| *at %= max_events / 2);
            changes.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::ThreadIndex;

    use super::*;

    fn limited(length: Length, turns: u32, max_events: u64) -> u64 {
        let turns = vec![Turns { thread: ThreadIndex::MAIN, count: turns }];
        let mut plan = Plan { turns, max_events, ..Plan::default() };
        length.limit(&mut plan);
        plan.max_events
    }

    #[test]
    fn a_beginning_has_room_for_what_its_plan_forces() {
        assert_eq!(limited(Length::Whole, 0, 1_000_000), 1_000_000);
        assert_eq!(limited(Length::Beginning, 0, 1_000_000), 10_000);
        assert_eq!(limited(Length::Beginning, 8_000, 1_000_000), 24_000);
        assert_eq!(limited(Length::Beginning, 500_000, 1_000_000), 1_000_000);
        assert_eq!(limited(Length::Beginning, 0, 4_000), 4_000);
        let most = Length::Beginning.max_turns() as u32;
        assert_eq!(limited(Length::Beginning, most, 1_000_000), 10_000);
    }

    #[test]
    fn priorities_change_before_the_schedule_is_fair() {
        let policy = Policy::Priorities { seed: 0, changes: vec![20, 30_010, 999_999] };
        let mut plan = Plan { policy, max_events: 1_000_000, ..Plan::default() };
        Length::Beginning.limit(&mut plan);
        let Policy::Priorities { changes, .. } = plan.policy else { panic!("another policy") };
        assert_eq!(changes, [10, 20, 4_999]);
    }
}
