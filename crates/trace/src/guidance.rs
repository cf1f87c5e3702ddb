//! A sequence of places that a run is to pass: what [`Policy::Guided`](crate::Policy::Guided) goes by.

use std::sync::Arc;

use crate::ThreadId;

/// Leads threads through places in the code, in the order of a sequence.
///
/// At each choice, a thread that stands before the next place of the sequence goes. If there is none, the thread goes
/// that the [`Preference`] puts first. Ties are broken at random.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guidance {
    pub seed: u64,
    pub waypoints: Arc<[Waypoint]>,
    pub preference: Preference,
    /// Who runs once all waypoints are passed.
    pub afterwards: Afterwards,
}

/// One place of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waypoint {
    /// Addresses that calls return to, sorted. An operation is at this place if it returns to one of them, or if it is
    /// made inside of a call that does.
    pub points: Vec<u64>,
    pub thread: WhichThread,
    pub demand: Demand,
    /// Threads that stay where they are until this place is passed, as long as others can go.
    pub kept_back: Vec<KeptBack>,
}

impl Waypoint {
    /// A place that is passed as it comes: nobody is kept back.
    pub fn new(points: Vec<u64>, thread: WhichThread, demand: Demand) -> Waypoint {
        Waypoint { points, thread, demand, kept_back: Vec::new() }
    }
}

/// A thread that stays before an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeptBack {
    pub thread: ThreadId,
    /// The address that the operation, or a call that it is made inside of, returns to.
    pub before: u64,
}

/// The threads that may pass a waypoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WhichThread {
    Any,
    /// The thread of this name.
    Id(ThreadId),
    /// The same number stands for the same thread everywhere in a sequence, and another number for another thread.
    Variable(u8),
}

/// What has to happen at a waypoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Demand {
    /// A thread does the operation there.
    Pass,
    /// A thread stands before the operation there, and stays until every waypoint of its group is reached: those next to
    /// this one in the sequence that `Arrive` with the same number.
    Arrive(u8),
}

/// Which thread goes when none stands before the next waypoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The one with the fewest blocks of code between it and the waypoint. There is one table for each waypoint.
    Nearest(Arc<[DistanceTable]>),
    /// Any of them.
    None,
    /// One of these.
    Threads(Vec<ThreadId>),
}

/// Who runs once all waypoints are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// The thread that passed the last one, until it blocks.
    RunOn,
    Random,
}

/// The distances from places in the code to one waypoint, by address. An address is the entry of a function, or one that
/// a call returns to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistanceTable {
    pub entries: Vec<(u64, Distance)>,
}

/// How many blocks of code there are from a place, at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// To the waypoint, through calls but not through returns.
    pub to_waypoint: u32,
    /// To the end of the function.
    pub to_return: u32,
}

impl Distance {
    /// There is no way.
    pub const INFINITE: u32 = u32::MAX;

    /// To the waypoint, where the way from the caller on, after a return, is `from_caller` blocks long.
    pub fn through(self, from_caller: u32) -> u32 {
        // The longest finite way stays finite.
        let returning = match (self.to_return, from_caller) {
            (Distance::INFINITE, _) | (_, Distance::INFINITE) => Distance::INFINITE,
            (out, on) => out.saturating_add(on).min(Distance::INFINITE - 1),
        };
        self.to_waypoint.min(returning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_way_counts() {
        let at = Distance { to_waypoint: 7, to_return: 2 };
        assert_eq!(at.through(4), 6);
        assert_eq!(at.through(9), 7);
        assert_eq!(at.through(Distance::INFINITE), 7);
        let outside = Distance { to_waypoint: Distance::INFINITE, to_return: 3 };
        assert_eq!(outside.through(Distance::INFINITE), Distance::INFINITE);
        assert_eq!(outside.through(Distance::INFINITE - 1), Distance::INFINITE - 1);
    }
}
