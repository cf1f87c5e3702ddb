//! Producers send items through a bounded channel, and consumers count those they take. A producer that has
//! finished says so; a consumer leaves when the channel is empty and there is nothing more to come.
//!
//! The bug: the first producer to finish halts the channel, though there are others. A consumer that finds it
//! empty then leaves, and what is sent later is never counted. The fix halts after the last producer.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, yield_now};

use subjects::{FIXED, read_sizes, size};

struct Shop {
    producers: usize,
    finished: AtomicUsize,
    items: Mutex<Receiver<usize>>,
    total: AtomicUsize,
}

impl Shop {
    fn halted(&self) -> bool {
        let finished = self.finished.load(SeqCst);
        if FIXED { finished == self.producers } else { finished > 0 }
    }

    fn consume(&self) {
        loop {
            // Asked first: what was sent before the halt is there.
            let halted = self.halted();
            let taken = self.items.lock().unwrap().try_recv();
            match taken {
                Ok(_) => {
                    self.total.fetch_add(1, SeqCst);
                }
                Err(TryRecvError::Empty) if !halted => yield_now(),
                Err(_) => return,
            }
        }
    }
}

fn main() {
    let [producers, items, consumers, slots] = read_sizes([
        size("producers", 2, 1, 32),
        size("items", 1, 1, 10000),
        size("consumers", 1, 1, 32),
        size("slots", 2, 1, 64),
    ]);
    let (sender, receiver) = sync_channel(slots);
    let shop = Arc::new(Shop {
        producers,
        finished: AtomicUsize::new(0),
        items: Mutex::new(receiver),
        total: AtomicUsize::new(0),
    });
    for _ in 0..producers {
        let (sender, shop) = (sender.clone(), shop.clone());
        // Not joined: in the buggy program a late one may wait for room for ever.
        thread::spawn(move || {
            for item in 0..items {
                sender.send(item).unwrap();
            }
            shop.finished.fetch_add(1, SeqCst);
        });
    }
    thread::scope(|scope| {
        for _ in 0..consumers {
            scope.spawn(|| shop.consume());
        }
    });
    assert_eq!(shop.total.load(SeqCst), producers * items, "not every item was counted");
}
