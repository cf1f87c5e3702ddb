//! Priority orders for `t` threads (the paper's `threadPrios`).
//!
//! For two threads there are two: parents before their children and the newest first, and the reverse of that. The
//! first lets a thread create all others before any of them runs, and then lets the last created go first; under the
//! second each runs as soon as it is created. So of any two threads, each goes before the other in one of them. Both
//! are rules, which also say where a thread stands that nobody has seen yet.
//!
//! Where threads create threads, both let one of these trees come to its end before the next begins, and few threads
//! are under way at the same time. Such a program is also begun with the oldest generation first, each from the oldest
//! on.

use std::collections::HashMap;
use std::sync::Arc;

use threadbare_trace::{Order, Others, ThreadId};

use crate::covering::{Sequence, covering_array};

/// The orders for each `t` that was asked for, over the threads that are known.
#[derive(Default)]
pub struct Orders {
    /// Parents first.
    threads: Vec<ThreadId>,
    made: HashMap<u32, Arc<[Order]>>,
}

impl Orders {
    /// These are the threads that there are.
    pub fn meet(&mut self, threads: &[ThreadId]) {
        if threads.len() != self.threads.len() {
            self.threads = threads.to_vec();
            self.threads.sort_by(|one, other| Others::ParentsFirst.compare(one, other));
            self.made.clear();
        }
    }

    /// The most threads that can be ordered: as many as there are.
    pub fn max_threads(&self) -> u32 {
        self.threads.len().max(2) as u32
    }

    /// Where the program begins: those for two threads, and the oldest first where that differs much.
    pub fn at_the_beginning(&mut self) -> Arc<[Order]> {
        let two = self.of(2);
        let generation = |thread: &ThreadId| thread.path().len();
        if self.threads.iter().all(|thread| generation(thread) <= 2) {
            return two;
        }
        let mut first = self.threads.clone();
        first.sort_by(|one, other| {
            generation(one).cmp(&generation(other)).then_with(|| one.path().cmp(other.path()))
        });
        two.iter().cloned().chain([Order { first, ..Order::default() }]).collect()
    }

    pub fn of(&mut self, t: u32) -> Arc<[Order]> {
        let (threads, count) = (&self.threads, self.threads.len() as u32);
        let make = || match t {
            2 => [Others::ParentsFirst, Others::ChildrenFirst].map(by_rule).into(),
            _ => covering_array(count, t).into_iter().map(|sequence| order(threads, sequence)).collect(),
        };
        Arc::clone(self.made.entry(t).or_insert_with(make))
    }
}

fn by_rule(others: Others) -> Order {
    Order { others, ..Order::default() }
}

/// The two orders for t = 2 are known by their rules, so that they are recognised in the array for a larger t.
fn order(threads: &[ThreadId], sequence: Sequence) -> Order {
    if sequence.is_sorted() {
        by_rule(Others::ParentsFirst)
    } else if sequence.iter().rev().is_sorted() {
        by_rule(Others::ChildrenFirst)
    } else {
        let first = sequence.into_iter().map(|thread| threads[thread as usize].clone()).collect();
        Order { first, ..Order::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_the_beginning(ids: &[&str]) -> Arc<[Order]> {
        let threads: Vec<ThreadId> = ids.iter().map(|id| id.parse().expect("an id")).collect();
        let mut orders = Orders::default();
        orders.meet(&threads);
        orders.at_the_beginning()
    }

    /// Trees of threads that only ever run one after the other would hide what they do to each other.
    #[test]
    fn threads_of_threads_also_begin_a_generation_at_a_time() {
        let orders = at_the_beginning(&["0", "0.1", "0.1.1", "0.1.1.1", "0.2", "0.2.1", "0.10"]);
        let first: Vec<String> = orders[2].first.iter().map(ThreadId::to_string).collect();
        assert_eq!(first, ["0", "0.1", "0.2", "0.10", "0.1.1", "0.2.1", "0.1.1.1"]);
        assert_eq!(at_the_beginning(&["0", "0.1", "0.2"]).len(), 2);
    }
}
