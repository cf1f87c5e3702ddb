//! A vector of cells that are free or allocated. Each thread looks for a free cell, marks it as allocated, and
//! in the end frees every cell it got.
//!
//! The bug: looking and marking are each atomic, but not the two together. Two threads that find the same free
//! cell both mark it, and the second mark is an error. There is no data race in it. The fix finds and marks
//! under one hold of the lock.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, read_sizes, size};

type Cells = Mutex<Vec<bool>>;

fn first_free(allocated: &[bool], start: usize) -> Option<usize> {
    let cells = allocated.len();
    (0..cells).map(|i| (start + i) % cells).find(|&cell| !allocated[cell])
}

fn set_allocated(allocated: &mut [bool], cell: usize) {
    assert!(!allocated[cell], "the cell is allocated already");
    allocated[cell] = true;
}

fn allocate(cells: &Cells, start: usize) -> Option<usize> {
    if FIXED {
        let mut allocated = cells.lock().unwrap();
        let cell = first_free(&allocated, start)?;
        set_allocated(&mut allocated, cell);
        return Some(cell);
    }
    let cell = first_free(&cells.lock().unwrap(), start)?;
    set_allocated(&mut cells.lock().unwrap(), cell);
    Some(cell)
}

fn mark_free(cells: &Cells, cell: usize) {
    let mut allocated = cells.lock().unwrap();
    assert!(allocated[cell], "the cell is free already");
    allocated[cell] = false;
}

fn main() {
    let [cells, rounds, threads] =
        read_sizes([size("cells", 1, 1, 1000), size("rounds", 1, 1, 1000), size("threads", 2, 1, 32)]);
    let vector = Mutex::new(vec![false; cells]);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let got: Vec<usize> = (0..rounds).filter_map(|i| allocate(&vector, i % cells)).collect();
                got.into_iter().for_each(|cell| mark_free(&vector, cell));
            });
        }
    });
}
