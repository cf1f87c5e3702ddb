//! A shop with one supplier and several customers. A customer looks whether there is something in stock, and if
//! so buys one.
//!
//! The bug: looking and buying are two critical sections. Two customers see the last item, both buy it, and the
//! stock goes below zero. There is no data race. The fix looks and buys under one hold of the lock.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, read_sizes, size};

#[derive(Default)]
struct Stock {
    items: i32,
    sold: i32,
}

impl Stock {
    fn buy(&mut self) {
        self.items -= 1;
        self.sold += 1;
    }
}

fn visit(shop: &Mutex<Stock>) {
    let mut stock = shop.lock().unwrap();
    let available = stock.items > 0;
    if !FIXED {
        drop(stock);
        if !available {
            return;
        }
        stock = shop.lock().unwrap();
    }
    if available {
        stock.buy();
    }
}

fn main() {
    let [customers, batch] = read_sizes([size("customers", 2, 1, 100), size("items", 1, 1, 1000)]);
    let batch = batch as i32;
    let shop = Mutex::new(Stock::default());
    thread::scope(|scope| {
        scope.spawn(|| shop.lock().unwrap().items += batch);
        for _ in 0..customers {
            scope.spawn(|| visit(&shop));
        }
    });
    let Stock { items, sold } = shop.into_inner().unwrap();
    assert!(items >= 0 && sold + items == batch, "sold {sold} of {batch}");
}
