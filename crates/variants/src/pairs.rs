//! The strategy `tpair`: for every two threads, every order of their accesses to each other's memory.
//!
//! This is the criterion that race-equivalence is compared with in the paper (Lu, Jiang and Zhou, "A study of interleaving
//! coverage criteria", 2007): most errors need two threads only, so the order of others does not matter. A run counts if it
//! shows some two threads in an order of conflicting accesses that no run before has shown. From each run, every two such
//! accesses that directly follow each other are exchanged.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};
use threadbare_search::Settings;
use threadbare_search::reorder::History;
use threadbare_search::reorder::schedule::{Reordering, Target};
use threadbare_search::reorder::variable::Variable;
use threadbare_trace::{EventIndex, ThreadIndex};

use crate::behaviour::{Names, number};
use crate::explorer::{Criterion, Explorer, Recorded};

pub const NAME: &str = "tpair";

/// The strategy.
pub type ThreadPairs = Explorer<PairCoverage>;

/// Which orders of two threads were seen.
#[derive(Default)]
pub struct PairCoverage {
    /// Orders that runs have shown.
    seen: FxHashSet<u64>,
    /// Orders that runs were made for.
    planned: FxHashSet<u64>,
    variants: VecDeque<Variant>,
}

/// Two conflicting accesses that are to change places.
pub struct Variant {
    run: Arc<Recorded>,
    first: EventIndex,
    second: EventIndex,
}

impl ThreadPairs {
    pub fn new(settings: Settings) -> ThreadPairs {
        Explorer::with(PairCoverage::default(), &settings)
    }
}

impl Criterion for PairCoverage {
    const NAME: &'static str = NAME;
    type Variant = Variant;

    fn add(&mut self, run: &Arc<Recorded>, _: Option<Variant>) -> bool {
        let history = &run.history;
        let threads: Vec<ThreadIndex> = ThreadIndex::first(history.threads()).collect();
        let mut is_new = false;
        for (place, &one) in threads.iter().enumerate() {
            for &other in &threads[place + 1..] {
                let all = EventIndex::first(history.trace().events.len());
                let order = PairOrder::of(history, &run.names, [one, other], all);
                if order.conflicts.is_empty() {
                    continue;
                }
                is_new |= self.seen.insert(order.class);
                let variant = |(first, second)| Variant { run: Arc::clone(run), first, second };
                self.variants.extend(order.conflicts.into_iter().map(variant));
            }
        }
        // A program without conflicts has one order.
        is_new || self.seen.insert(0)
    }

    fn blocked(&mut self, _: Variant) {}

    fn next(&mut self) -> Option<(Variant, Arc<Recorded>, Reordering)> {
        while let Some(variant) = self.variants.pop_front() {
            let history = &variant.run.history;
            let pair = [variant.first, variant.second].map(|event| history.thread(event));
            if let Some(schedule) = variant.schedule()
                && self
                    .planned
                    .insert(PairOrder::of(history, &variant.run.names, pair, schedule.iter().copied()).class)
            {
                let run = Arc::clone(&variant.run);
                return Some((variant, run, schedule));
            }
        }
        None
    }

    fn give_up(&mut self, run: &Weak<Recorded>) -> u64 {
        let before = self.variants.len();
        self.variants.retain(|variant| !std::ptr::eq(Arc::as_ptr(&variant.run), run.as_ptr()));
        (before - self.variants.len()) as u64
    }

    fn begin_again(&mut self) {
        *self = PairCoverage::default();
    }
}

impl Variant {
    /// A schedule that ends with the second access and does not have the first.
    fn schedule(&self) -> Option<Reordering> {
        let Variant { run, first, second } = self;
        let events = [*second, *first];
        [Target::sequence(&events), Target::race(&events)].iter().find_map(|target| {
            let up_to_second = |mut schedule: Reordering| {
                let end = schedule.iter().position(|event| event == second)?;
                schedule.truncate(end + 1);
                (!schedule.contains(first)).then_some(schedule)
            };
            run.generator.schedules(target).find_map(up_to_second)
        })
    }
}

/// The accesses of two threads, as far as their order matters.
struct PairOrder {
    /// Two orders are the same if every access comes after the same conflicting accesses of the other thread.
    class: u64,
    /// Conflicting accesses with nothing in between that would keep them in this order.
    conflicts: Vec<(EventIndex, EventIndex)>,
}

/// An access, with its number among those of its thread, from 1.
type Numbered = (EventIndex, u64);

impl PairOrder {
    fn of(
        history: &History,
        names: &Names,
        pair: [ThreadIndex; 2],
        events: impl Iterator<Item = EventIndex>,
    ) -> PairOrder {
        let trace = history.trace();
        let thread_names = pair.map(|thread| number(trace.thread(thread)));
        let mut order = PairOrder {
            class: number((thread_names[0].min(thread_names[1]), thread_names[0].max(thread_names[1]))),
            conflicts: Vec::new(),
        };
        // By thread: how many accesses it has done, and how many of the other's come before its last one.
        let (mut done, mut known) = ([0u64; 2], [0u64; 2]);
        let mut last_writes: [FxHashMap<Variable, Numbered>; 2] = Default::default();
        let mut last_accesses: [FxHashMap<Variable, Numbered>; 2] = Default::default();
        for event in events.filter(|&event| history.event(event).kind.is_access()) {
            let Some(own) = pair.iter().position(|&thread| thread == history.thread(event)) else { continue };
            let other = 1 - own;
            let variable = history.variable(event);
            let writes = history.event(event).kind.is_write();
            let before = if writes { &last_accesses[other] } else { &last_writes[other] };
            if let Some(&(earlier, count)) = before.get(&variable)
                && count > known[own]
            {
                order.conflicts.push((earlier, event));
                known[own] = count;
            }
            done[own] += 1;
            last_accesses[own].insert(variable, (event, done[own]));
            if writes {
                last_writes[own].insert(variable, (event, done[own]));
            }
            let data = history.event(event);
            let location = trace.location(data.location).address;
            let what =
                (thread_names[own], location, names.object(data.object.index()), done[own], known[own]);
            order.class = order.class.wrapping_add(number(what));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use threadbare_formats::import;

    use super::*;

    fn order(operations: &str) -> PairOrder {
        let forks = "T0|fork(T1)|100\nT0|fork(T2)|101\n";
        let lines = operations.split_whitespace().map(|operation| operation.replace(':', "|") + "\n");
        let text = forks.to_owned() + &lines.collect::<String>();
        let trace = import::std(text.as_bytes()).expect("the trace is well formed");
        let history = History::new(trace).expect("it can be analysed");
        let names = Names::of(history.trace(), false);
        let all = EventIndex::first(history.trace().events.len());
        PairOrder::of(&history, &names, [1, 2].map(ThreadIndex::new), all)
    }

    #[test]
    fn reads_and_other_variables_change_places() {
        let one = order("T1:r(x):1 T2:r(x):2 T1:w(y):3 T2:w(z):4");
        assert_eq!(one.class, order("T2:r(x):2 T2:w(z):4 T1:r(x):1 T1:w(y):3").class);
        assert!(one.conflicts.is_empty());
    }

    #[test]
    fn a_write_does_not_change_places_with_a_read() {
        let one = order("T1:w(x):1 T2:r(x):2");
        assert_ne!(one.class, order("T2:r(x):2 T1:w(x):1").class);
        assert_eq!(one.conflicts.len(), 1);
    }

    /// The accesses to y cannot change places as long as those to x do not.
    #[test]
    fn only_direct_conflicts_are_exchanged() {
        assert_eq!(order("T1:w(y):1 T1:w(x):2 T2:r(x):3 T2:r(y):4").conflicts.len(), 1);
    }
}
