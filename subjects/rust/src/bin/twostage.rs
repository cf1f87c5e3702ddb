//! Two values that belong together, each with a lock of its own. A writer sets the first in one stage and
//! derives the second from it in the next; a reader that sees the first expects the matching second.
//!
//! The bug is the gap between the stages: a reader that runs there finds the new first value beside the old
//! second one. The writer's second stage also reads the first value without its lock. The fix keeps the first
//! lock until the second stage is over; readers never nest the locks, so nothing can block.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, Shared, read_sizes, size};

static FIRST_LOCK: Mutex<()> = Mutex::new(());
static FIRST: Shared<i32> = Shared::new(0);
static SECOND: Mutex<i32> = Mutex::new(0);

fn derive_second() {
    *SECOND.lock().unwrap() = unsafe { *FIRST.get() } + 1;
}

fn write() {
    let guard = FIRST_LOCK.lock().unwrap();
    unsafe { *FIRST.get() = 1 };
    let guard = FIXED.then_some(guard);
    derive_second();
    drop(guard);
}

fn read() {
    let guard = FIRST_LOCK.lock().unwrap();
    let first = unsafe { *FIRST.get() };
    drop(guard);
    if first != 0 {
        let second = *SECOND.lock().unwrap();
        assert_eq!(second, first + 1, "the second stage is still to come");
    }
}

fn main() {
    let [writers, readers] = read_sizes([size("writers", 1, 1, 100), size("readers", 1, 1, 100)]);
    thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(write);
        }
        for _ in 0..readers {
            scope.spawn(read);
        }
    });
}
