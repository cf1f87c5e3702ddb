//! Bank accounts in a ring. Thread i deposits into account i, withdraws from it and transfers a sum to account
//! i + 1.
//!
//! The bug is a wrong lock: a transfer changes both amounts under the source's lock alone, and a deposit takes
//! no lock at all. If thread i has loaded the destination's amount and thread i + 1 then runs its own deposit,
//! the store of thread i wipes that deposit out. The fix changes an amount only under the lock of its own
//! account, and holds one lock at a time.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, Shared, lock_if_fixed, read_sizes, size};

const INITIAL: i32 = 1000;
const DEPOSIT: i32 = 300;
const WITHDRAWAL: i32 = 100;
const TRANSFER: i32 = 100;

struct Account {
    lock: Mutex<()>,
    amount: Shared<i32>,
}

fn deposit(account: &Account, sum: i32) {
    let _guard = lock_if_fixed(&account.lock);
    unsafe { *account.amount.get() += sum };
}

fn withdraw(account: &Account, sum: i32) {
    let _guard = account.lock.lock().unwrap();
    unsafe { *account.amount.get() -= sum };
}

fn transfer(source: &Account, destination: &Account, sum: i32) {
    if FIXED {
        withdraw(source, sum);
        deposit(destination, sum);
        return;
    }
    let _guard = source.lock.lock().unwrap();
    unsafe {
        *source.amount.get() -= sum;
        *destination.amount.get() += sum;
    }
}

/// Each account gives one transfer away and receives one, so these two cancel out.
fn check_amounts(accounts: &[Account]) {
    for account in accounts {
        assert_eq!(unsafe { *account.amount.get() }, INITIAL + DEPOSIT - WITHDRAWAL);
    }
}

fn main() {
    let [count] = read_sizes([size("accounts", 2, 2, 10)]);
    let account = |_| Account { lock: Mutex::new(()), amount: Shared::new(INITIAL) };
    let accounts: Vec<Account> = (0..count).map(account).collect();
    thread::scope(|scope| {
        for (i, own) in accounts.iter().enumerate() {
            let next = &accounts[(i + 1) % count];
            scope.spawn(move || {
                deposit(own, DEPOSIT);
                withdraw(own, WITHDRAWAL);
                transfer(own, next, TRANSFER);
            });
        }
    });
    check_amounts(&accounts);
}
