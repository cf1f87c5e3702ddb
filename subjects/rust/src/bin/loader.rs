//! A bubble sort by a chain of threads: each sweep starts the next, shorter one after its first step. Main
//! waits until the work is done and looks at the result.
//!
//! The bug: the flag that says so is raised when the last sweep is started, while earlier ones may still run;
//! and a sweep compares without the lock under which it swaps. In the fix each sweep is one critical section,
//! joins the next one, and main joins the first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use subjects::{FIXED, read_sizes, size};

const MOST: usize = 100;

static mut ELEMENTS: [usize; MOST] = [0; MOST];
static SWAP_LOCK: Mutex<()> = Mutex::new(());
static DONE: AtomicBool = AtomicBool::new(false);

fn element(index: usize) -> *mut usize {
    unsafe { (&raw mut ELEMENTS).cast::<usize>().add(index) }
}

/// The caller of the fixed program holds the lock.
fn sort_pair(left: usize) {
    let (left, right) = (element(left), element(left + 1));
    unsafe {
        if *left > *right {
            let _guard = (!FIXED).then(|| SWAP_LOCK.lock().unwrap());
            std::ptr::swap(left, right);
        }
    }
}

fn start_sweep(steps: usize) -> JoinHandle<()> {
    DONE.store(steps == 0, SeqCst);
    thread::spawn(move || sweep(steps))
}

fn sweep(steps: usize) {
    if steps == 0 {
        return;
    }
    let guard = FIXED.then(|| SWAP_LOCK.lock().unwrap());
    sort_pair(0);
    let next = start_sweep(steps - 1);
    (1..steps).for_each(sort_pair);
    drop(guard);
    if FIXED {
        next.join().unwrap();
    }
}

fn main() {
    let [count] = read_sizes([size("elements", 3, 3, MOST)]);
    (0..count).for_each(|i| unsafe { *element(i) = count - i });
    let first = start_sweep(count - 1);
    if FIXED {
        first.join().unwrap();
    } else {
        while !DONE.load(SeqCst) {
            thread::yield_now();
        }
    }
    let inversions = (1..count).filter(|&i| unsafe { *element(i - 1) > *element(i) }).count();
    assert_eq!(inversions, 0, "not sorted yet");
}
