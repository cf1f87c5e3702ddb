//! A value that every thread increments under a lock, though not all under the same one. The observers expect to
//! find their own increment and no other.
//!
//! The bug: the plain incrementers hold a lock of their own, which does not exclude an observer. An increment
//! that falls between the observer's first read and its check makes the value too large (or, overwritten, is
//! lost). In the fix both kinds of thread hold the same lock.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, Shared, read_sizes, size};

static OBSERVER_LOCK: Mutex<()> = Mutex::new(());
static OTHER_LOCK: Mutex<()> = Mutex::new(());
static VALUE: Shared<u32> = Shared::new(0);

// Volatile, so that an optimising compiler, too, loads the value again for the check.

fn observe() {
    let _guard = OBSERVER_LOCK.lock().unwrap();
    let value = VALUE.get();
    unsafe {
        let before = value.read_volatile();
        value.write_volatile(before + 1);
        assert_eq!(value.read_volatile(), before + 1, "somebody else has changed the value");
    }
}

fn increment() {
    let lock = if FIXED { &OBSERVER_LOCK } else { &OTHER_LOCK };
    let _guard = lock.lock().unwrap();
    let value = VALUE.get();
    unsafe { value.write_volatile(value.read_volatile() + 1) };
}

fn main() {
    let [observers, incrementers] =
        read_sizes([size("observers", 1, 1, 100), size("incrementers", 1, 1, 100)]);
    thread::scope(|scope| {
        for _ in 0..observers {
            scope.spawn(observe);
        }
        for _ in 0..incrementers {
            scope.spawn(increment);
        }
    });
}
