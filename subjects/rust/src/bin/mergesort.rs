//! A merge sort that gives its halves to threads as long as the number of live threads stays within a limit.
//! Every node of the recursion asks how many threads it may still start, starts them, and counts them.
//!
//! The bug: a thread is counted after it was started. Another node, perhaps in that thread, asks in between,
//! and together they start more than the limit allows: a node then finds that fewer than no threads are
//! available. The fix reserves the threads in the step that asks for them.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, read_sizes, size};

struct Threads {
    limit: usize,
    alive: Mutex<usize>,
}

impl Threads {
    fn available(&self) -> usize {
        let mut alive = self.alive.lock().unwrap();
        assert!(*alive <= self.limit, "more threads than allowed");
        let threads = (self.limit - *alive).min(2);
        if FIXED {
            *alive += threads;
        }
        threads
    }

    fn count_started(&self) {
        // Counted already in the fixed program.
        if !FIXED {
            *self.alive.lock().unwrap() += 1;
        }
    }

    fn count_ended(&self) {
        *self.alive.lock().unwrap() -= 1;
    }
}

fn merge(elements: &mut [usize], middle: usize) {
    let (left, right) = elements.split_at(middle);
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut merged = Vec::with_capacity(elements.len());
    while let Some(&smaller) = match (left.peek(), right.peek()) {
        (Some(a), Some(b)) if a <= b => left.next(),
        (_, Some(_)) => right.next(),
        (_, None) => left.next(),
    } {
        merged.push(smaller);
    }
    elements.copy_from_slice(&merged);
}

fn sort(threads: &Threads, elements: &mut [usize]) {
    if elements.len() < 2 {
        return;
    }
    let middle = elements.len() / 2;
    let (left, right) = elements.split_at_mut(middle);
    let available = threads.available();
    thread::scope(|scope| {
        let mut started = Vec::new();
        for (i, half) in [left, right].into_iter().enumerate() {
            if i < available {
                started.push(scope.spawn(|| sort(threads, half)));
                threads.count_started();
            } else {
                sort(threads, half);
            }
        }
        for thread in started {
            thread.join().unwrap();
            threads.count_ended();
        }
    });
    merge(elements, middle);
}

fn main() {
    let [count, limit] = read_sizes([size("elements", 4, 2, 1000), size("limit", 2, 1, 64)]);
    let mut elements: Vec<usize> = (1..=count).rev().collect();
    sort(&Threads { limit, alive: Mutex::new(1) }, &mut elements);
    assert!(elements.iter().copied().eq(1..=count), "not sorted: {elements:?}");
}
