//! Writers that fill a buffer, and a checker that empties it from time to time and adds up how much it found.
//! Another counter says how much was written.
//!
//! The bug: every second writer stores its item and moves the position on without the lock, and takes it for
//! the counter alone. If such a writer has loaded the position and somebody else changes it, the writer stores
//! a stale one back. In the fix everybody holds the lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use subjects::{Shared, lock_if_fixed, read_sizes, size};

struct Buffer {
    /// Guards the rest, and holds how much was written.
    written: Mutex<usize>,
    items: Shared<Vec<usize>>,
    position: Shared<usize>,
}

/// With the lock, or without it.
fn store(buffer: &Buffer, item: usize) -> bool {
    unsafe {
        let position = buffer.position.get();
        let items = &mut *buffer.items.get();
        if *position >= items.len() {
            return false;
        }
        items[*position] = item;
        *position += 1;
    }
    true
}

fn write_carefully(buffer: &Buffer, item: usize) {
    let mut written = buffer.written.lock().unwrap();
    *written += usize::from(store(buffer, item));
}

fn write_carelessly(buffer: &Buffer, item: usize) {
    let guard = lock_if_fixed(&buffer.written);
    let stored = store(buffer, item);
    drop(guard);
    *buffer.written.lock().unwrap() += usize::from(stored);
}

/// The number of items found until there is nothing more to come.
fn check(buffer: &Buffer, stop: &AtomicBool) -> usize {
    let mut emptied = 0;
    loop {
        let stopped = stop.load(SeqCst);
        let guard = buffer.written.lock().unwrap();
        unsafe {
            emptied += *buffer.position.get();
            *buffer.position.get() = 0;
        }
        drop(guard);
        if stopped {
            return emptied;
        }
        thread::yield_now();
    }
}

fn main() {
    let [writers, items, slots] =
        read_sizes([size("writers", 2, 2, 32), size("items", 1, 1, 1000), size("slots", 10, 1, 1000)]);
    let buffer =
        &Buffer { written: Mutex::new(0), items: Shared::new(vec![0; slots]), position: Shared::new(0) };
    let stop = AtomicBool::new(false);
    let emptied = thread::scope(|scope| {
        let checker = scope.spawn(|| check(buffer, &stop));
        let start = |writer: usize| {
            let write = if writer.is_multiple_of(2) { write_carefully } else { write_carelessly };
            scope.spawn(move || (0..items).for_each(|_| write(buffer, writer)))
        };
        let threads: Vec<_> = (0..writers).map(start).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        stop.store(true, SeqCst);
        checker.join().unwrap()
    });
    assert_eq!(*buffer.written.lock().unwrap(), emptied, "not all that was written was found");
}
