//! Two hash sets, each behind its lock. One thread asks whether the first contains all elements of the second,
//! while another removes an element from the second. The bug, an iteration without a lock, and its fix are
//! described in `collections`.

use subjects::collections::{HashElements, ask_while_others_remove};

fn main() {
    ask_while_others_remove::<HashElements>();
}
