//! Priority orders for `t` threads (the paper's `threadPrios`).
//!
//! For two threads there are two: parents before their children and the newest first, and the reverse of that. The
//! first lets a thread create all others before any of them runs, and then lets the last created go first; under the
//! second each runs as soon as it is created. So of any two threads, each goes before the other in one of them. Both
//! are rules, which also say where a thread stands that nobody has seen yet.

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

    /// More threads than there are cannot be ordered.
    pub fn most(&self) -> u32 {
        self.threads.len().max(2) as u32
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
