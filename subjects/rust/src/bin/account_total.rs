//! A bank that keeps a total beside the balances. Each thread adds one to its own balance and one to the total,
//! several times over.
//!
//! The bug: the total belongs to all threads, but is read, increased and written back without a lock. Of two
//! threads that read the same total, one loses its increase. The fix gives the total a lock.

use std::sync::Mutex;
use std::thread;

use subjects::{lock_if_fixed, read_sizes, size};

static mut BANK_TOTAL: usize = 0;
static TOTAL_LOCK: Mutex<()> = Mutex::new(());

fn add_to_total(sum: usize) {
    let _guard = lock_if_fixed(&TOTAL_LOCK);
    unsafe { BANK_TOTAL += sum };
}

fn main() {
    let [count, deposits] = read_sizes([size("threads", 2, 1, 100), size("deposits", 1, 1, 10000)]);
    let mut balances = vec![0; count];
    thread::scope(|scope| {
        for balance in &mut balances {
            scope.spawn(move || {
                for _ in 0..deposits {
                    *balance += 1;
                    add_to_total(1);
                }
            });
        }
    });
    let total = unsafe { BANK_TOTAL };
    assert_eq!(total, balances.iter().sum(), "the total is not that of the balances");
}
