//! The paper's examples, for tests. Locations are its line numbers.

use crate::operation::Action::{Lock, Notify, Read, Unlock, Wait, Write};
use crate::operation::{Action, Operation, Position, Sequence};

pub const X: u64 = 1;
pub const Y: u64 = 2;
pub const N: u64 = 3;
const A: u64 = 100;
const MONITOR: u64 = 101;

pub fn operations(all: &[(u64, Action, u64)]) -> Vec<Operation> {
    let operation = |&(location, action, operand)| Operation { location, action, operand };
    all.iter().map(operation).collect()
}

/// Figure 3, with the read-write sequence of section III.
pub fn fig_3() -> Sequence {
    let t1 = [(1, Read, X), (1, Read, Y), (1, Write, N), (2, Read, N), (7, Read, Y)];
    let t2 = [(10, Write, X), (11, Write, Y), (12, Read, X)];
    Sequence::new(vec![operations(&t1), operations(&t2)], &[0, 1, 0, 0, 0, 1, 0, 1])
}

/// What the branch of figure 3 reads.
pub fn fig_3_branch() -> Position {
    Position { thread: 0, index: 3 }
}

/// Figure 13: figure 3 with a lock, and with a wait that the other thread ends.
pub fn fig_13() -> Sequence {
    let t1 = [(1, Lock, A), (2, Read, X), (2, Read, Y), (3, Unlock, A), (4, Wait, MONITOR), (10, Read, Y)];
    let t2 = [
        (20, Lock, A),
        (21, Write, X),
        (22, Write, Y),
        (23, Unlock, A),
        (24, Notify, MONITOR),
        (25, Read, X),
    ];
    let turns = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1];
    Sequence::new(vec![operations(&t1), operations(&t2)], &turns)
}

/// Figure 17: two repaints by thread 0, two characters for thread 1. With the reads of its two branches.
pub fn fig_17() -> (Sequence, [Position; 2]) {
    const XLOC: u64 = 1;
    let repaint = [317, 318, 319, 320, 320].map(|line| (line, Read, XLOC));
    let character = [
        (71, Read, XLOC),
        (114, Read, XLOC),
        (115, Read, XLOC),
        (116, Read, XLOC),
        (117, Read, XLOC),
        (117, Write, XLOC),
    ];
    let threads = vec![operations(&repaint.repeat(2)), operations(&character.repeat(2))];
    let turns = [[0].repeat(5), [1].repeat(6), [0].repeat(5), [1].repeat(6)].concat();
    (Sequence::new(threads, &turns), [0, 6].map(|index| Position { thread: 1, index }))
}

/// Every order of the operations that keeps that of each thread.
pub fn interleavings(threads: &[Vec<Operation>]) -> Vec<Vec<Position>> {
    let mut all = vec![Vec::new()];
    let length: usize = threads.iter().map(Vec::len).sum();
    for _ in 0..length {
        let longer = |order: &Vec<Position>| {
            let next = |thread: usize| {
                let index = order.iter().filter(|position| position.thread == thread).count();
                let position = Position { thread, index };
                (index < threads[thread].len()).then(|| [order.as_slice(), &[position]].concat())
            };
            (0..threads.len()).filter_map(next).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}
