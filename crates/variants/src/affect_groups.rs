//! Branch-affect groups: executions that give a branch the same outcome (Algorithm 3).

use std::collections::BTreeSet;

use crate::operation::Position;

/// Executions in which the operations that affect a branch come in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectGroup {
    /// The operations of BranchRelOP in their order.
    pub order: Vec<Position>,
    /// By number of the execution.
    pub members: Vec<usize>,
}

/// G(b): the groups of these executions, in the order in which they are met. `related` is BranchRelOP(b).
pub fn affect_groups(executions: &[Vec<Position>], related: &BTreeSet<Position>) -> Vec<AffectGroup> {
    let mut groups: Vec<AffectGroup> = Vec::new();
    for (number, execution) in executions.iter().enumerate() {
        let order: Vec<Position> =
            execution.iter().copied().filter(|position| related.contains(position)).collect();
        match groups.iter_mut().find(|group| group.order == order) {
            Some(group) => group.members.push(number),
            None => groups.push(AffectGroup { order, members: vec![number] }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::branch_affect::related_operations;
    use crate::examples::{fig_3, fig_3_branch, interleavings, operations};
    use crate::operation::Action::{Read, Write};
    use crate::operation::Sequence;
    use crate::variant_graph::VariantGraph;

    fn described(sequence: &Sequence, group: &AffectGroup) -> String {
        let location = |&position: &Position| sequence.operation(position).location.to_string();
        group.order.iter().map(location).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn table_ii_has_five_groups() {
        let sequence = fig_3();
        let related = related_operations(&sequence, &[fig_3_branch()]);
        let variants: Vec<Vec<Position>> = VariantGraph::of(&sequence).variants.into_values().collect();
        let mut groups: Vec<(String, usize)> = affect_groups(&variants, &related)
            .iter()
            .map(|group| (described(&sequence, group), group.members.len()))
            .collect();
        groups.sort();
        let expected = [("1 1", 1), ("1 10 1", 1), ("1 10 11 1", 2), ("10 1", 1), ("10 11 1", 2)];
        assert_eq!(groups, expected.map(|(order, members)| (order.to_owned(), members)));
    }

    /// The orders of the operations that affect the branch with the condition `condition`, over all interleavings.
    fn orders(threads: Vec<Vec<crate::operation::Operation>>, condition: Position) -> Vec<String> {
        let executions = interleavings(&threads);
        let sequence = Sequence { threads, order: executions[0].clone() };
        let related = related_operations(&sequence, &[condition]);
        let groups = affect_groups(&executions, &related);
        let mut orders: Vec<String> = groups.iter().map(|group| described(&sequence, group)).collect();
        orders.sort();
        orders
    }

    const X: u64 = 1;
    const Y: u64 = 2;

    /// T1 accesses x and y in critical sections A and B, T2 in 1 and 2. The branch of T1 depends on x alone.
    #[test]
    fn fig_1_two_groups_of_six_interleavings() {
        let threads =
            vec![operations(&[(100, Read, X), (101, Read, Y)]), operations(&[(1, Write, X), (2, Write, Y)])];
        assert_eq!(interleavings(&threads).len(), 6);
        assert_eq!(orders(threads, Position { thread: 0, index: 0 }), ["1 100", "100 1"]);
    }

    #[test]
    fn fig_2_two_groups_of_three_interleavings() {
        // What comes after the other thread's first critical section is on a variable of its own.
        let threads = vec![operations(&[(100, Read, X)]), operations(&[(1, Write, X), (2, Read, X)])];
        assert_eq!(interleavings(&threads).len(), 3);
        assert_eq!(orders(threads, Position { thread: 0, index: 0 }), ["1 100", "100 1"]);
    }

    #[test]
    fn table_vi_the_pool_has_two_groups() {
        let threads = vec![operations(&[(906, Read, X)]), operations(&[(765, Write, X)])];
        assert_eq!(orders(threads, Position { thread: 0, index: 0 }), ["765 906", "906 765"]);
    }

    #[test]
    fn table_vii_the_network_monitor_has_two_and_three_groups() {
        let pinger = operations(&[(279, Read, X), (286, Write, X), (279, Read, X)]);
        let threads = vec![pinger, operations(&[(112, Write, X)])];
        let looks = [0, 2].map(|index| Position { thread: 0, index });
        assert_eq!(orders(threads.clone(), looks[0]), ["112 279", "279 112"]);
        assert_eq!(orders(threads, looks[1]), ["112 286 279", "286 112 279", "286 279 112"]);
    }
}
