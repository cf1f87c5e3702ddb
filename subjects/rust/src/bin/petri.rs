//! A petri dish in which bugs move from cell to cell while an observer counts them. The number of bugs is also
//! kept in a variable.
//!
//! The bug in the program: a move leaves the old cell under one hold of the write lock and enters the new one
//! under another. An observer who counts in between misses the one that moves. There is no data race. The fix
//! moves under one hold of the lock.

use std::sync::RwLock;
use std::thread;

use subjects::{FIXED, read_sizes, size};

const CELLS: usize = 2;

type Dish = RwLock<[usize; CELLS]>;

fn move_bug(dish: &Dish, from: usize, to: usize) {
    let mut cells = dish.write().unwrap();
    cells[from] -= 1;
    if !FIXED {
        drop(cells);
        cells = dish.write().unwrap();
    }
    cells[to] += 1;
}

fn live(dish: &Dish, cell: usize, moves: usize) {
    for i in cell..cell + moves {
        move_bug(dish, i % CELLS, (i + 1) % CELLS);
    }
}

fn observe(dish: &Dish, population: usize) {
    let counted: usize = dish.read().unwrap().iter().sum();
    assert_eq!(counted, population, "a bug is in no cell");
}

fn main() {
    let [population, moves] = read_sizes([size("bugs", 1, 1, 32), size("moves", 1, 1, 1000)]);
    let mut cells = [0; CELLS];
    (0..population).for_each(|bug| cells[bug % CELLS] += 1);
    let dish = &Dish::new(cells);
    thread::scope(|scope| {
        for bug in 0..population {
            scope.spawn(move || live(dish, bug % CELLS, moves));
        }
        scope.spawn(|| observe(dish, population));
    });
}
