//! An airline that prints more tickets than the plane has seats. Main starts one seller per ticket and gives up
//! as soon as a seller has stopped the sales.
//!
//! The bug is that looking at the flag and selling are two separate steps, though each is atomic. While the
//! seller of the last seat has not raised the flag yet, main starts another one, which sells a seat that does
//! not exist. In the fix the seller itself takes a seat only if there is one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use subjects::{FIXED, read_sizes, size};

static SEATS_SOLD: AtomicUsize = AtomicUsize::new(0);
static STOP_SALES: AtomicBool = AtomicBool::new(false);

fn sell_seat(capacity: usize) {
    if FIXED {
        let free = |sold| (sold < capacity).then_some(sold + 1);
        if SEATS_SOLD.fetch_update(SeqCst, SeqCst, free).is_err() {
            STOP_SALES.store(true, SeqCst);
        }
        return;
    }
    if SEATS_SOLD.fetch_add(1, SeqCst) + 1 >= capacity {
        STOP_SALES.store(true, SeqCst);
    }
}

fn main() {
    let [tickets] = read_sizes([size("tickets", 2, 2, 100)]);
    let capacity = tickets - (tickets / 10).max(1);
    thread::scope(|scope| {
        for _ in 0..tickets {
            if STOP_SALES.load(SeqCst) {
                break;
            }
            scope.spawn(move || sell_seat(capacity));
        }
    });
    assert!(SEATS_SOLD.load(SeqCst) <= capacity, "the plane is oversold");
}
