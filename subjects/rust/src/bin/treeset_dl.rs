//! Two ordered trees, each behind its lock, and two threads that add each to the other. The bug, opposite orders of
//! two locks, and its fix are described in `collections`.

use subjects::collections::{TreeElements, add_to_each_other};

fn main() {
    add_to_each_other::<TreeElements>();
}
