//! A singly linked list with a header node, to whose end several threads append.
//!
//! The bug: walking to the last node and linking a new one to it are two steps without a lock. Two threads that
//! find the same last node both link to it, and the second link replaces the first: a node is lost. The fix
//! walks and links under a lock.

use std::ptr::null_mut;
use std::sync::Mutex;
use std::thread;

use subjects::{lock_if_fixed, read_sizes, size};

struct Node {
    value: usize,
    next: *mut Node,
}

static mut HEADER: Node = Node { value: 0, next: null_mut() };
static LIST_LOCK: Mutex<()> = Mutex::new(());

fn add_last(value: usize) {
    let node = Box::into_raw(Box::new(Node { value, next: null_mut() }));
    let _guard = lock_if_fixed(&LIST_LOCK);
    unsafe {
        let mut last = &raw mut HEADER;
        while !(*last).next.is_null() {
            last = (*last).next;
        }
        (*last).next = node;
    }
}

/// The values in the list, which is empty afterwards.
fn take_apart() -> Vec<usize> {
    let mut values = Vec::new();
    unsafe {
        while !HEADER.next.is_null() {
            let node = Box::from_raw(HEADER.next);
            HEADER.next = node.next;
            values.push(node.value);
        }
    }
    values
}

fn main() {
    let [appends, builders] = read_sizes([size("appends", 1, 1, 1000), size("builders", 2, 1, 32)]);
    thread::scope(|scope| {
        for builder in 0..builders {
            scope.spawn(move || (0..appends).for_each(|i| add_last(builder * appends + i)));
        }
    });
    assert_eq!(take_apart().len(), builders * appends, "a node is lost");
}
