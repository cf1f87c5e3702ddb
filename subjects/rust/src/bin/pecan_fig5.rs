//! The example of figure 5 of the PECAN paper, for schedules that have to respect a lock: the accesses v3 and v8
//! to x race, though the first is made under the lock that the second thread has just released. To show it, a
//! schedule has to move the lock v1 together with v3: v5,v6,v7,v1,v2,v3,v8.
//!
//! The bug: the second thread relies on the value of x without waiting for it. The fix is the order between v2
//! and v5 that the figure has: v2 starts the second thread, inside the critical section, so that v5 waits for v4
//! and v3 comes before v8.

use std::sync::Mutex;
use std::thread::{self, Scope};

use subjects::{FIXED, Shared, read_sizes, size};

static X: Shared<i32> = Shared::new(0);
static Y: Mutex<i32> = Mutex::new(0);

fn second() {
    /* v5, v6, v7 */
    *Y.lock().unwrap() += 1;
    /* v8 */
    let seen = unsafe { *X.get() };
    assert_eq!(seen, 1, "x is not there yet");
}

fn start_seconds<'scope>(scope: &'scope Scope<'scope, '_>, count: usize) {
    for _ in 0..count {
        scope.spawn(second);
    }
}

fn first<'scope>(scope: &'scope Scope<'scope, '_>, count: usize) {
    /* v1 */
    let mut y = Y.lock().unwrap();
    /* v2 */
    if FIXED {
        start_seconds(scope, count);
    } else {
        *y += 1;
    }
    /* v3 */
    unsafe { *X.get() = 1 };
    /* v4 */
    drop(y);
}

fn main() {
    let [count] = read_sizes([size("seconds", 1, 1, 32)]);
    thread::scope(|scope| {
        scope.spawn(move || first(scope, count));
        if !FIXED {
            start_seconds(scope, count);
        }
    });
}
