//! The operations that affect the outcome of a branch (Algorithm 2).

use std::collections::BTreeSet;

use crate::operation::{Position, Sequence};
use crate::use_define::{UseDefine, depends, use_defines};

/// BranchRelOP(b): the operations on shared variables that affect the branch whose condition makes the reads `condition`.
/// What the thread of the branch does later is left out.
pub fn related_operations(sequence: &Sequence, condition: &[Position]) -> BTreeSet<Position> {
    let is_later = |position: Position| {
        condition.iter().any(|read| position.thread == read.thread)
            && condition.iter().all(|read| position.index > read.index)
    };
    let all: Vec<UseDefine> = use_defines(sequence)
        .into_iter()
        .filter(|found| !is_later(found.use_at) && !is_later(found.define_at))
        .collect();
    // Step 1: the use-defines whose variables the condition uses.
    let (mut related, mut left): (Vec<UseDefine>, Vec<UseDefine>) =
        all.into_iter().partition(|found| condition.contains(&found.use_at));
    // Step 2: those that affect one of them, until there are no more.
    loop {
        let affects = |earlier: &UseDefine| related.iter().any(|later| depends(sequence, later, earlier));
        let (found, others): (Vec<UseDefine>, Vec<UseDefine>) = left.into_iter().partition(affects);
        left = others;
        if found.is_empty() {
            break;
        }
        related.extend(found);
    }
    // Step 3: their operations.
    let operations = related.iter().flat_map(|found| [found.use_at, found.define_at]);
    let operations = operations.chain(condition.iter().copied());
    operations.filter(|&position| sequence.is_shared(sequence.operation(position).operand)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{fig_3, fig_3_branch, fig_17};

    fn described(sequence: &Sequence, condition: Position) -> Vec<String> {
        let related = related_operations(sequence, &[condition]);
        let describe = |&position: &Position| {
            let operation = sequence.operation(position);
            format!("{}:{:?}", operation.location, operation.action)
        };
        related.iter().map(describe).collect()
    }

    #[test]
    fn fig_9_the_branch_depends_on_both_variables() {
        assert_eq!(described(&fig_3(), fig_3_branch()), ["1:Read", "1:Read", "10:Write", "11:Write"]);
    }

    /// The first look at the cursor depends on nothing but itself, the second one on what its own thread wrote.
    #[test]
    fn fig_17_affect_sets() {
        let (sequence, looks) = fig_17();
        assert_eq!(described(&sequence, looks[0]), ["71:Read"]);
        assert_eq!(described(&sequence, looks[1]), ["117:Write", "71:Read"]);
    }
}
