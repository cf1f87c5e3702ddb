//! Consistent locking (section IV.A, after Eraser): is there a lock that every thread holds at each access to a variable?
//!
//! Every new run is checked. Unlike Eraser's, the check knows which accesses cannot be at the same time because one thread
//! creates or joins the other. Nothing else is taken for an order: two runs in which threads have the same access-manners
//! give the same answer.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use threadbare_search::reorder::History;
use threadbare_search::reorder::communication::Edge;
use threadbare_search::reorder::lockset::Lockset;
use threadbare_search::reorder::order::{Order, Segment};
use threadbare_search::reorder::variable::Variable;
use threadbare_trace::{EventKind, LocationIndex, ThreadIndex};

/// Two accesses to a variable that no lock keeps apart: the addresses of their places in the code, the smaller one first.
pub type Race = [u64; 2];

/// An access, as far as it matters to the check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Access {
    thread: ThreadIndex,
    location: LocationIndex,
    held: Lockset,
    segment: Segment,
    writes: bool,
    is_atomic: bool,
}

/// The places of a run that access a variable without a common lock.
pub fn races(history: &History) -> BTreeSet<Race> {
    let trace = history.trace();
    let creates_or_joins = |edge: &&Edge| {
        history.event(edge.from).kind == EventKind::Fork || history.event(edge.to).kind == EventKind::Join
    };
    let edges: Vec<Edge> = history.edges().iter().filter(creates_or_joins).copied().collect();
    let order = Order::new(trace, &edges);
    let mut by_variable: FxHashMap<Variable, BTreeSet<Access>> = FxHashMap::default();
    for (index, event) in trace.indexed_events().filter(|(_, event)| event.kind.is_access()) {
        by_variable.entry(history.variable(index)).or_default().insert(Access {
            thread: event.thread,
            location: event.location,
            held: history.lockset(index),
            segment: order.segment(index),
            writes: event.kind.is_write(),
            is_atomic: event.kind.has_memory_order(),
        });
    }
    let race = |a: &Access, b: &Access| {
        a.thread != b.thread
            && (a.writes || b.writes)
            && !(a.is_atomic && b.is_atomic)
            && history.locksets().disjoint(a.held, b.held)
            && order.independent(a.segment, b.segment)
    };
    let mut races = BTreeSet::new();
    for accesses in by_variable.values() {
        for (number, a) in accesses.iter().enumerate() {
            for b in accesses.iter().skip(number + 1).filter(|b| race(a, b)) {
                let mut places = [a, b].map(|access| trace.location(access.location).address);
                places.sort_unstable();
                races.insert(places);
            }
        }
    }
    races
}

#[cfg(test)]
mod tests {
    use threadbare_formats::import;

    use super::*;

    /// The lines of the races of a trace. Places of other tools' traces have no addresses, so these are counted.
    fn count(operations: &str) -> usize {
        let forks = "T0|fork(T1)|100\nT0|fork(T2)|101\n";
        let lines = operations.split_whitespace().map(|operation| operation.replace(':', "|") + "\n");
        let text = forks.to_owned() + &lines.collect::<String>();
        let trace = import::std(text.as_bytes()).expect("the trace is well formed");
        races(&History::new(trace).expect("it can be analysed")).len()
    }

    /// Executions (a) and (b) lock a around both accesses to x, (c) and (d) do not.
    #[test]
    fn fig_6_only_the_false_branch_races() {
        let t2 = "T2:acq(a):20 T2:acq(b):21 T2:r(y):22 T2:w(x):23 T2:rel(b):24 T2:rel(a):25";
        let when_true = format!("T1:acq(a):11 T1:w(x):12 T1:rel(a):13 {t2}");
        let when_false = format!("T1:w(x):15 {t2}");
        let c = format!("{t2} T1:w(x):15");
        assert_eq!((count(&when_true), count(&when_false), count(&c)), (0, 1, 1));
    }

    #[test]
    fn threads_that_are_joined_do_not_race() {
        assert_eq!(count("T1:w(x):1 T0:join(T1):2 T0:w(x):3"), 0);
        assert_eq!(count("T1:w(x):1 T0:w(x):3 T0:join(T1):2"), 1);
    }

    /// Two locks that are each held by two of three accesses protect nothing.
    #[test]
    fn every_two_accesses_need_a_common_lock() {
        let x = |thread: u32, lock: char| {
            format!("T{thread}:acq({lock}):1 T{thread}:w(x):2 T{thread}:rel({lock}):3 ")
        };
        assert_eq!(count(&(x(1, 'a') + &x(2, 'a'))), 0);
        assert_eq!(count(&(x(1, 'a') + &x(2, 'b'))), 1);
    }
}
