//! Dekker's algorithm, by which two threads exclude each other from a critical section without a lock.
//!
//! The bug: a thread looks at the other's flag before it raises its own. If both look first, both enter. The
//! fix is the algorithm: a thread raises its flag first, and if the other's is up, too, the turn decides who
//! steps back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, yield_now};

use subjects::{FIXED, Shared, read_sizes, size};

static WANTS: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
static TURN: AtomicUsize = AtomicUsize::new(0);
static INSIDE: Shared<i32> = Shared::new(0);

fn enter(own: usize) {
    let other = 1 - own;
    if !FIXED {
        while WANTS[other].load(SeqCst) {
            yield_now();
        }
        WANTS[own].store(true, SeqCst);
        return;
    }
    WANTS[own].store(true, SeqCst);
    while WANTS[other].load(SeqCst) {
        if TURN.load(SeqCst) != own {
            WANTS[own].store(false, SeqCst);
            while TURN.load(SeqCst) != own {
                yield_now();
            }
            WANTS[own].store(true, SeqCst);
        }
        yield_now();
    }
}

fn leave(own: usize) {
    TURN.store(1 - own, SeqCst);
    WANTS[own].store(false, SeqCst);
}

fn compete(own: usize, rounds: usize) {
    for _ in 0..rounds {
        enter(own);
        // Volatile, so that an optimising compiler, too, loads it again for the check.
        unsafe {
            let inside = INSIDE.get();
            inside.write_volatile(inside.read_volatile() + 1);
            assert_eq!(inside.read_volatile(), 1, "both are inside");
            inside.write_volatile(inside.read_volatile() - 1);
        }
        leave(own);
    }
}

fn main() {
    let [rounds] = read_sizes([size("rounds", 1, 1, 1000)]);
    thread::scope(|scope| {
        for own in 0..2 {
            scope.spawn(move || compete(own, rounds));
        }
    });
}
