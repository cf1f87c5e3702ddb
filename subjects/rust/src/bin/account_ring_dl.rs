//! The ring of bank accounts again, here with every amount inside its own lock: a transfer holds the locks of
//! both accounts.
//!
//! The bug is the order of the two locks, source before destination, which closes a circle around the ring.
//! When every thread holds its own account and none has reached the next one yet, all of them wait for ever.
//! The fix takes the account with the lower number first, so no circle can form.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, read_sizes, size};

const INITIAL: i32 = 1000;
const DEPOSIT: i32 = 300;
const WITHDRAWAL: i32 = 100;
const TRANSFER: i32 = 100;

fn transfer(accounts: &[Mutex<i32>], source: usize, destination: usize, sum: i32) {
    if FIXED && destination < source {
        let mut to = accounts[destination].lock().unwrap();
        let mut from = accounts[source].lock().unwrap();
        *from -= sum;
        *to += sum;
    } else {
        let mut from = accounts[source].lock().unwrap();
        let mut to = accounts[destination].lock().unwrap();
        *from -= sum;
        *to += sum;
    }
}

fn main() {
    let [count] = read_sizes([size("accounts", 2, 2, 10)]);
    let accounts: Vec<Mutex<i32>> = (0..count).map(|_| Mutex::new(INITIAL)).collect();
    let accounts = &accounts[..];
    thread::scope(|scope| {
        for own in 0..count {
            scope.spawn(move || {
                *accounts[own].lock().unwrap() += DEPOSIT;
                *accounts[own].lock().unwrap() -= WITHDRAWAL;
                transfer(accounts, own, (own + 1) % count, TRANSFER);
            });
        }
    });
}
