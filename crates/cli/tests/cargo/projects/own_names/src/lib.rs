//! A crate with functions and a static of its own, under names that libc has too.

use std::sync::atomic::{AtomicI32, Ordering};

#[unsafe(no_mangle)]
pub extern "C" fn send(value: i32) -> i32 {
    value + 1
}

#[unsafe(no_mangle)]
pub extern "C" fn recv(value: i32) -> i32 {
    value - 1
}

#[unsafe(no_mangle)]
pub static prctl: AtomicI32 = AtomicI32::new(0);

#[test]
fn loses_an_update() {
    let add = || prctl.store(prctl.load(Ordering::SeqCst) + send(recv(1)), Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(add);
        scope.spawn(add);
    });
    assert_eq!(prctl.load(Ordering::SeqCst), 2);
}

#[test]
fn adds_in_turn() {
    let add = || send(recv(1));
    assert_eq!(std::thread::spawn(add).join().unwrap() + std::thread::spawn(add).join().unwrap(), 2);
}
