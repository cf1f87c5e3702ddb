//! A manager of memory blocks. Releasers announce a block to be freed by raising a flag; a handler lowers the
//! flag and takes one off the blocks still wanted. A releaser that finds itself alone also counts the block as
//! released.
//!
//! The bug: the flag, the number of announcements and the two counters are tested and set in separate steps.
//! Two releasers that announce at the same time both find that they are not alone, and a block is freed without
//! being counted; two that announce one after the other before the handler has seen the first both count, but
//! it is one block. In the fix one lock covers all of it, and only a lowered flag may be raised.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread::{self, yield_now};

use subjects::{FIXED, read_sizes, size};

struct Buggy {
    flag: AtomicBool,
    wanted: AtomicUsize,
    notes: Mutex<usize>,
    released: Mutex<usize>,
}

impl Buggy {
    fn handle(&self) {
        while self.wanted.load(SeqCst) > 0 {
            while !self.flag.load(SeqCst) {
                yield_now();
            }
            self.wanted.fetch_sub(1, SeqCst);
            self.flag.store(false, SeqCst);
        }
    }

    fn release(&self) {
        *self.notes.lock().unwrap() += 1;
        self.flag.store(true, SeqCst);
        let alone = *self.notes.lock().unwrap() == 1;
        if alone {
            *self.released.lock().unwrap() += 1;
        }
        *self.notes.lock().unwrap() -= 1;
    }

    fn release_all(&self) {
        loop {
            while self.flag.load(SeqCst) && self.wanted.load(SeqCst) > 0 {
                yield_now();
            }
            let seen = self.wanted.load(SeqCst);
            if seen == 0 {
                return;
            }
            self.release();
            while self.flag.load(SeqCst) && self.wanted.load(SeqCst) == seen {
                yield_now();
            }
        }
    }
}

#[derive(Default)]
struct State {
    flag: bool,
    wanted: usize,
    released: usize,
}

struct Fixed {
    state: Mutex<State>,
    changed: Condvar,
}

impl Fixed {
    fn handle(&self) {
        let mut state = self.state.lock().unwrap();
        while state.wanted > 0 {
            state = self.changed.wait_while(state, |state| !state.flag).unwrap();
            state.wanted -= 1;
            state.flag = false;
            self.changed.notify_all();
        }
    }

    fn release_all(&self) {
        let mut state = self.state.lock().unwrap();
        while state.wanted > 0 {
            if state.flag {
                state = self.changed.wait(state).unwrap();
            } else {
                state.flag = true;
                state.released += 1;
                self.changed.notify_all();
            }
        }
    }
}

fn run_buggy(blocks: usize, releasers: usize) -> usize {
    let manager = Buggy {
        flag: AtomicBool::new(false),
        wanted: AtomicUsize::new(blocks),
        notes: Mutex::new(0),
        released: Mutex::new(0),
    };
    thread::scope(|scope| {
        scope.spawn(|| manager.handle());
        for _ in 0..releasers {
            scope.spawn(|| manager.release_all());
        }
    });
    manager.released.into_inner().unwrap()
}

fn run_fixed(blocks: usize, releasers: usize) -> usize {
    let state = State { wanted: blocks, ..State::default() };
    let manager = Fixed { state: Mutex::new(state), changed: Condvar::new() };
    thread::scope(|scope| {
        scope.spawn(|| manager.handle());
        for _ in 0..releasers {
            scope.spawn(|| manager.release_all());
        }
    });
    manager.state.into_inner().unwrap().released
}

fn main() {
    let [blocks, releasers] = read_sizes([size("blocks", 1, 1, 1000), size("releasers", 2, 1, 32)]);
    let run = if FIXED { run_fixed } else { run_buggy };
    assert_eq!(run(blocks, releasers), blocks, "not every block was counted once");
}
