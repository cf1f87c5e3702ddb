//! Two threads that pass a turn instead of taking a lock. Each takes the turn, is in its critical section as
//! long as the turn is its own, and hands it over.
//!
//! The bug: taking the turn excludes nobody, since neither thread looks at it first. If the other thread takes
//! it, too, the first finds the turn changed while it is still inside. The fix holds a lock while inside.

use std::sync::Mutex;
use std::thread;

use subjects::{lock_if_fixed, read_sizes, size};

static mut TURN: usize = 0;
static SECTION_LOCK: Mutex<()> = Mutex::new(());

fn take_turns(own: usize, rounds: usize) {
    let turn = &raw mut TURN;
    for _ in 0..rounds {
        let _guard = lock_if_fixed(&SECTION_LOCK);
        // Volatile, so that an optimising compiler, too, loads it again for the check.
        unsafe {
            turn.write_volatile(own);
            assert_eq!(turn.read_volatile(), own, "somebody else is inside");
            turn.write_volatile(1 - own);
        }
    }
}

fn main() {
    let [rounds] = read_sizes([size("rounds", 1, 1, 1000)]);
    thread::scope(|scope| {
        for own in 0..2 {
            scope.spawn(move || take_turns(own, rounds));
        }
    });
}
