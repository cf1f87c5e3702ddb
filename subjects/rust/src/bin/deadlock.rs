//! A vector that contains a hash table that contains the vector. Printing either of them prints what it
//! contains, too. More threads print objects of their own.
//!
//! The bug: a print holds the lock of the outer object while it takes that of the inner one. One thread prints
//! the vector and another the table, so the two locks are taken in both orders, and when each thread has its
//! first, both wait for ever. The fix lets go of the outer object before it looks into the inner one.

use std::sync::{Arc, Mutex, Weak};
use std::thread;

use subjects::{FIXED, read_sizes, size};

struct Object {
    count: usize,
    contained: Option<Weak<Mutex<Object>>>,
}

fn object() -> Arc<Mutex<Object>> {
    Arc::new(Mutex::new(Object { count: 1, contained: None }))
}

fn print_inner(inner: &Mutex<Object>) -> usize {
    inner.lock().unwrap().count
}

/// A print is modelled by the number of elements printed.
fn print(outer: &Mutex<Object>) -> usize {
    let guard = outer.lock().unwrap();
    let count = guard.count;
    let inner = guard.contained.as_ref().and_then(Weak::upgrade);
    let guard = (!FIXED).then_some(guard);
    let printed = count + inner.map_or(0, |inner| print_inner(&inner));
    drop(guard);
    printed
}

fn main() {
    let [printers, bystanders] = read_sizes([size("printers", 1, 1, 32), size("bystanders", 0, 0, 32)]);
    let (vector, table) = (object(), object());
    vector.lock().unwrap().contained = Some(Arc::downgrade(&table));
    table.lock().unwrap().contained = Some(Arc::downgrade(&vector));
    let others: Vec<_> = (0..bystanders).map(|_| object()).collect();
    thread::scope(|scope| {
        for _ in 0..printers {
            scope.spawn(|| print(&vector));
            scope.spawn(|| print(&table));
        }
        for other in &others {
            scope.spawn(|| print(other));
        }
    });
}
