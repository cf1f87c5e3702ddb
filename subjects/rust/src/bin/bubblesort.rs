//! Bubble sort with one thread for each sweep. A sweep goes once from left to right over the whole array and
//! swaps neighbours in the wrong order; one sweep fewer than there are elements sorts any array.
//!
//! The bug: the sweeps take no lock. Two that swap overlapping neighbours at the same time duplicate one
//! element and lose another, and a sweep that overtakes another leaves the array unsorted. The fix makes a
//! whole sweep one critical section.

use std::sync::Mutex;
use std::thread;

use subjects::{lock_if_fixed, read_sizes, size};

/// As people hand a pointer to their threads.
#[derive(Clone, Copy)]
struct Elements(*mut usize);

// SAFETY: none in the buggy program; in the fixed one all use is under the lock.
unsafe impl Send for Elements {}

static SWEEP_LOCK: Mutex<()> = Mutex::new(());

fn sweep(elements: Elements, count: usize) {
    let _guard = lock_if_fixed(&SWEEP_LOCK);
    for i in 0..count - 1 {
        unsafe {
            let (left, right) = (elements.0.add(i), elements.0.add(i + 1));
            if *left > *right {
                let larger = *left;
                *left = *right;
                *right = larger;
            }
        }
    }
}

fn main() {
    let [count] = read_sizes([size("elements", 3, 3, 100)]);
    let mut elements: Vec<usize> = (1..=count).rev().collect();
    let shared = Elements(elements.as_mut_ptr());
    let sweeps: Vec<_> = (1..count).map(|_| thread::spawn(move || sweep(shared, count))).collect();
    for sweep in sweeps {
        sweep.join().unwrap();
    }
    // This holds if they are sorted and all still there.
    assert!(elements.iter().copied().eq(1..=count), "not sorted: {elements:?}");
}
