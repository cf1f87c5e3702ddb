//! Atomic regions (section 4.1: the attribute *u* of an event), in two tiers.
//!
//! The first is the paper's: an outermost critical section, cut where its thread communicates. The second is for
//! units of work that have no lock around them: two accesses on one pass through a function. Which pass an event
//! belongs to is not in a trace, but code that runs on without going back does so from lower to higher addresses,
//! so an access that lies further back than the one before it began another pass.

use threadbare_trace::Trace;

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

/// An atomic region of the first tier; 0 for events that are in none.
pub type Region = u32;

/// The region of each event.
pub fn regions(trace: &Trace, locksets: &Locksets, order: &Order) -> Vec<Region> {
    let mut latest = 0;
    // For each thread the region it is in, and the segment that region began in.
    let mut current: Vec<Option<(Region, Segment)>> = vec![None; trace.threads.len()];
    let region = |(index, event): (usize, &threadbare_trace::Event)| {
        let current = &mut current[event.thread as usize];
        if locksets.before(index as u32) == Lockset::EMPTY {
            *current = None;
            return 0;
        }
        let segment = order.segment(index as u32);
        match *current {
            Some((region, began)) if began == segment => region,
            _ => {
                latest += 1;
                *current = Some((latest, segment));
                latest
            }
        }
    };
    trace.events.iter().enumerate().map(region).collect()
}

/// Event `b` is further on than `a`, earlier in the same thread, in the innermost function that both are in.
pub fn same_pass(trace: &Trace, a: u32, b: u32) -> bool {
    let (a, b) = (&trace.events[a as usize], &trace.events[b as usize]);
    let address = |location: u32| trace.locations[location as usize].address;
    // Traces from elsewhere have no addresses, and many events.
    if address(a.location) == 0 {
        return false;
    }
    let path = |stack: u32, location: u32| {
        let mut path = vec![location];
        let mut node = stack;
        while node != 0 {
            path.push(trace.stacks[node as usize].location);
            node = trace.stacks[node as usize].parent;
        }
        path.reverse();
        path
    };
    let (from, to) = (path(a.stack, a.location), path(b.stack, b.location));
    from.iter()
        .zip(&to)
        .find(|(from, to)| from != to)
        .is_some_and(|(&from, &to)| address(from) != 0 && address(from) < address(to))
}
