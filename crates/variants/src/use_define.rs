//! Use-defines: which writes a read may see (section IV.B).
//!
//! A conventional use-define is a read and the last write to the variable by the same thread. An extended one is a read and a
//! write by another thread: which of them the read sees depends on the interleaving.

use std::collections::BTreeSet;

use crate::operation::{Action, Position, Sequence};

/// A triplet of the paper, with operations for the two locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UseDefine {
    pub variable: u64,
    /// The read.
    pub use_at: Position,
    /// The write.
    pub define_at: Position,
}

/// SetUD: the use-defines of a run.
pub fn use_defines(sequence: &Sequence) -> BTreeSet<UseDefine> {
    let accesses = |action: Action| {
        let is_such = move |&&position: &&Position| sequence.operation(position).action == action;
        sequence.order.iter().filter(is_such).copied()
    };
    let variable = |position: Position| sequence.operation(position).operand;
    let mut found = BTreeSet::new();
    for use_at in accesses(Action::Read) {
        let same_variable = |define: &Position| variable(*define) == variable(use_at);
        let own = accesses(Action::Write)
            .filter(same_variable)
            .filter(|define| define.thread == use_at.thread && define.index < use_at.index)
            .max();
        let others =
            accesses(Action::Write).filter(same_variable).filter(|define| define.thread != use_at.thread);
        let defines = own.into_iter().chain(others);
        found.extend(defines.map(|define_at| UseDefine { variable: variable(use_at), use_at, define_at }));
    }
    found
}

/// `later` depends on `earlier`: what it defines is computed from what the other one uses. That is so if one location does
/// both.
pub fn depends(sequence: &Sequence, later: &UseDefine, earlier: &UseDefine) -> bool {
    let location = |position: Position| sequence.operation(position).location;
    later.define_at.thread == earlier.use_at.thread
        && later.define_at.index > earlier.use_at.index
        && location(later.define_at) == location(earlier.use_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{N, X, Y, fig_3};

    #[test]
    fn fig_8_has_five_use_defines() {
        let sequence = fig_3();
        let location = |position: Position| sequence.operation(position).location;
        let found: BTreeSet<(u64, u64, u64)> = use_defines(&sequence)
            .iter()
            .map(|found| (found.variable, location(found.use_at), location(found.define_at)))
            .collect();
        // ud1 to ud5. The paper has x for y in ud3.
        assert_eq!(found, BTreeSet::from([(X, 1, 10), (N, 2, 1), (Y, 1, 11), (X, 12, 10), (Y, 7, 11)]));
    }
}
