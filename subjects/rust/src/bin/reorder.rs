//! Setters that store a pair of values one after the other, and checkers that accept the pair only before or
//! after both stores.
//!
//! The bug: nothing makes the two stores one step. A checker that runs between those of the first setter sees
//! half of the pair. Once any setter has finished, the values no longer change, so every further setter makes
//! the failing moment rarer. The fix holds a lock around the stores and the check.

use std::sync::Mutex;
use std::thread;

use subjects::{lock_if_fixed, read_sizes, size};

static mut A: i32 = 0;
static mut B: i32 = 0;
static PAIR_LOCK: Mutex<()> = Mutex::new(());

fn set() {
    let _guard = lock_if_fixed(&PAIR_LOCK);
    unsafe {
        A = 1;
        B = -1;
    }
}

fn check() {
    let _guard = lock_if_fixed(&PAIR_LOCK);
    let right = unsafe { (A == 0 && B == 0) || (A == 1 && B == -1) };
    assert!(right, "half of the pair");
}

fn main() {
    let [setters, checkers] = read_sizes([size("setters", 1, 1, 100), size("checkers", 1, 1, 100)]);
    thread::scope(|scope| {
        for _ in 0..setters {
            scope.spawn(set);
        }
        for _ in 0..checkers {
            scope.spawn(check);
        }
    });
}
