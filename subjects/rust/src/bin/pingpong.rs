//! Threads that share one pointer to a player. Each calls a method through the pointer, then takes the player
//! out of it (leaving null) and puts it back.
//!
//! The bug is the time in which the pointer is null: a thread that starts its call between the two stores of
//! another dereferences null. In a debug build Rust's own check of pointers panics there, in a release build the
//! program crashes. The fix makes the whole turn of a thread one critical section.

use std::ptr::null_mut;
use std::sync::Mutex;
use std::thread;

use subjects::{lock_if_fixed, read_sizes, size};

struct Player {
    points: u32,
}

impl Player {
    fn score(&self) -> u32 {
        self.points
    }
}

static mut ONLY_PLAYER: Player = Player { points: 1 };
static mut PLAYER: *mut Player = &raw mut ONLY_PLAYER;
static TURN: Mutex<()> = Mutex::new(());

fn play() {
    let _guard = lock_if_fixed(&TURN);
    let player = &raw mut PLAYER;
    // Volatile, so that an optimising compiler, too, stores the null.
    unsafe {
        (*player.read_volatile()).score();
        let held = player.read_volatile();
        player.write_volatile(null_mut());
        player.write_volatile(held);
    }
}

fn main() {
    let [threads] = read_sizes([size("threads", 2, 2, 100)]);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(play);
        }
    });
}
