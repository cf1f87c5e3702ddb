//! The example of figure 1 of the PECAN paper: two shared variables and three races, by the labels below (2,5),
//! (2,6) and (3,7). Statement 7 runs only if statement 6 sees what 2 has written.
//!
//! The bug is race (3,7): from the run 1,5,2,3,6,7, in which nothing fails, PECAN predicts 1,5,2,6,7,3, in which
//! statement 3 finds y set and 4 is reached. The fix runs the whole of each thread under one lock.

use std::sync::Mutex;
use std::thread;

use subjects::{Shared, lock_if_fixed, read_sizes, size};

static X: Shared<i32> = Shared::new(0);
static Y: Shared<i32> = Shared::new(0);
static LOCK: Mutex<()> = Mutex::new(());

// All accesses are volatile, so that an optimising compiler, too, does every one of the figure.

fn thread_1() {
    let (x, y) = (X.get(), Y.get());
    let _guard = lock_if_fixed(&LOCK);
    unsafe {
        /* 1 */
        y.write_volatile(0);
        /* 2 */
        x.write_volatile(1);
        /* 3 */
        if y.read_volatile() != 0 {
            /* 4 */
            panic!("the error of figure 1");
        }
    }
}

fn thread_2() {
    let (x, y) = (X.get(), Y.get());
    let _guard = lock_if_fixed(&LOCK);
    unsafe {
        /* 5 */
        x.write_volatile(0);
        /* 6 */
        if x.read_volatile() != 0 {
            /* 7 */
            y.write_volatile(1);
        }
    }
}

fn main() {
    let [pairs] = read_sizes([size("pairs", 1, 1, 32)]);
    thread::scope(|scope| {
        for _ in 0..pairs {
            scope.spawn(thread_1);
            scope.spawn(thread_2);
        }
    });
}
