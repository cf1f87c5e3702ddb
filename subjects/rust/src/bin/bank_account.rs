//! A bank account with a lock, into which one thread deposits and from which others withdraw.
//!
//! The bug: a withdrawal reads the balance in one critical section and writes the new one in another. A deposit
//! in between is overwritten. Every access is locked, so there is no data race. The fix withdraws in one
//! critical section.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, read_sizes, size};

const INITIAL: i32 = 1000;
const DEPOSIT: i32 = 50;
const WITHDRAWAL: i32 = 20;

static BALANCE: Mutex<i32> = Mutex::new(INITIAL);

fn deposit(sum: i32) {
    *BALANCE.lock().unwrap() += sum;
}

fn withdraw(sum: i32) {
    if FIXED {
        *BALANCE.lock().unwrap() -= sum;
        return;
    }
    let seen = *BALANCE.lock().unwrap();
    *BALANCE.lock().unwrap() = seen - sum;
}

fn main() {
    let [withdrawers] = read_sizes([size("withdrawers", 1, 1, 32)]);
    thread::scope(|scope| {
        scope.spawn(|| deposit(DEPOSIT));
        for _ in 0..withdrawers {
            scope.spawn(|| withdraw(WITHDRAWAL));
        }
    });
    let withdrawn = withdrawers as i32 * WITHDRAWAL;
    assert_eq!(*BALANCE.lock().unwrap(), INITIAL + DEPOSIT - withdrawn, "a change is lost");
}
