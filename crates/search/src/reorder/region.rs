//! Atomic regions (section 4.1: the attribute *u* of an event), in two tiers.
//!
//! The first is the paper's: an outermost critical section, cut where its thread communicates. The second is for
//! units of work that have no lock around them: two accesses on one pass through a function. Which pass an event
//! belongs to is not in a trace, but code that runs on without going back does so from lower to higher addresses,
//! so an access that lies further back than the one before it began another pass.

use threadbare_trace::{Event, EventIndex, LocationIndex, Trace, index_types};

use super::lockset::{Lockset, Locksets};
use super::order::{Order, Segment};

/// What makes accesses one unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// One outermost critical section.
    CriticalSection,
    /// One pass through a function.
    Function,
}

impl Tier {
    /// The `unit` of a finding in `--json` output.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::CriticalSection => "critical-section",
            Tier::Function => "function",
        }
    }
}

index_types! {
    /// An atomic region of the first tier.
    Region;
}

impl Region {
    /// The event is in no region.
    pub const NONE: Region = Region::new(0);
}

/// The region of each event.
pub fn regions(trace: &Trace, locksets: &Locksets, order: &Order) -> Vec<Region> {
    let mut latest = Region::NONE;
    // For each thread the region it is in, and the segment that region began in.
    let mut current: Vec<Option<(Region, Segment)>> = vec![None; trace.threads.len()];
    let region = |(index, event): (EventIndex, &Event)| {
        let current = &mut current[event.thread.index()];
        if locksets.before(index) == Lockset::EMPTY {
            *current = None;
            return Region::NONE;
        }
        let segment = order.segment(index);
        match *current {
            Some((region, began)) if began == segment => region,
            _ => {
                latest = latest.next();
                *current = Some((latest, segment));
                latest
            }
        }
    };
    trace.indexed_events().map(region).collect()
}

/// Event `b` is further on than `a`, earlier in the same thread, in the innermost function that both are in.
pub fn same_pass(trace: &Trace, a: EventIndex, b: EventIndex) -> bool {
    let (a, b) = (trace.event(a), trace.event(b));
    let address = |location: LocationIndex| trace.location(location).address;
    // Traces from elsewhere have no addresses, and many events.
    if address(a.location) == 0 {
        return false;
    }
    let path = |event: &Event| {
        let mut path: Vec<LocationIndex> = trace.calls(event.location, event.stack).collect();
        path.reverse();
        path
    };
    let (from, to) = (path(a), path(b));
    from.iter()
        .zip(&to)
        .find(|(from, to)| from != to)
        .is_some_and(|(&from, &to)| address(from) != 0 && address(from) < address(to))
}
