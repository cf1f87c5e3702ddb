//! Passengers board a small plane through a ring of seats. Producers fill seats and consumers empty them; one
//! seat of the ring stays free, to tell a full ring from an empty one.
//!
//! The bug: a producer that finds the ring full waits once, and does not look again when it is woken. Two
//! producers wait, one seat is freed, both are woken, and the second one fills the seat that must stay free: the
//! ring looks empty and its passengers are lost. The last producer to fill a seat finds more of them still to be
//! taken than the ring can hold; but for this check, a consumer would wait for ever. There is no data race. The
//! fix waits in a loop.

use std::sync::{Condvar, Mutex};
use std::thread;

use subjects::{FIXED, read_sizes, size};

struct Ring {
    seats: Vec<usize>,
    first: usize,
    last: usize,
    fills_left: usize,
    takes_left: usize,
}

impl Ring {
    fn is_full(&self) -> bool {
        (self.last + 1) % self.seats.len() == self.first
    }
}

struct Plane {
    ring: Mutex<Ring>,
    changed: Condvar,
}

impl Plane {
    fn fill(&self, passenger: usize) {
        let mut ring = self.ring.lock().unwrap();
        if FIXED {
            ring = self.changed.wait_while(ring, |ring| ring.is_full()).unwrap();
        } else if ring.is_full() {
            ring = self.changed.wait(ring).unwrap();
        }
        let last = ring.last;
        ring.seats[last] = passenger;
        ring.fills_left -= 1;
        assert!(ring.fills_left > 0 || ring.takes_left < ring.seats.len(), "passengers are lost");
        ring.last = (last + 1) % ring.seats.len();
        self.changed.notify_all();
    }

    fn empty(&self) -> usize {
        let ring = self.ring.lock().unwrap();
        let mut ring = self.changed.wait_while(ring, |ring| ring.first == ring.last).unwrap();
        let passenger = ring.seats[ring.first];
        ring.takes_left -= 1;
        ring.first = (ring.first + 1) % ring.seats.len();
        self.changed.notify_all();
        passenger
    }
}

fn main() {
    let [producers, consumers, fills, seats] = read_sizes([
        size("producers", 3, 1, 32),
        size("consumers", 1, 1, 32),
        size("fills", 1, 1, 1000),
        size("seats", 2, 2, 64),
    ]);
    let passengers = producers * fills;
    let ring =
        Ring { seats: vec![0; seats], first: 0, last: 0, fills_left: passengers, takes_left: passengers };
    let plane = &Plane { ring: Mutex::new(ring), changed: Condvar::new() };
    thread::scope(|scope| {
        for producer in 0..producers {
            scope.spawn(move || (0..fills).for_each(|_| plane.fill(producer)));
        }
        for consumer in 0..consumers {
            let share = passengers / consumers + usize::from(consumer < passengers % consumers);
            scope.spawn(move || {
                for _ in 0..share {
                    plane.empty();
                }
            });
        }
    });
}
