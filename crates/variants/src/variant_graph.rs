//! The variant graph: every other read-write sequence of a run (Algorithm 1), with the flags of section IV.C.
//!
//! A node says how far each thread has come (its index vector) and how often each variable was written (its version vector).
//! An edge is the next operation of a thread. If that accesses another version of its variable than in the run, the node is
//! an execution-variant: what follows is found by running it. A thread that waits, or that would take a lock that is taken,
//! has no next node.

use std::collections::{BTreeMap, BTreeSet};

use crate::operation::{Action, Position, Sequence};

/// A node. Two nodes that are equal have the same future.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    pub index: Vec<usize>,
    pub versions: BTreeMap<u64, u32>,
    /// Locks whose flag is set.
    pub locked: BTreeSet<u64>,
    /// Threads whose wait flag is set.
    pub waiting: BTreeSet<usize>,
}

/// The graph of a run, as far as it is of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariantGraph {
    /// Nodes that are no execution-variants.
    pub nodes: BTreeSet<Node>,
    /// Each with the operations that lead there.
    pub variants: BTreeMap<Node, Vec<Position>>,
    /// Children that were left out because of a flag.
    pub infeasible: u64,
}

impl VariantGraph {
    pub fn of(sequence: &Sequence) -> VariantGraph {
        let recorded = versions(sequence);
        let first = Node { index: vec![0; sequence.threads.len()], ..Node::default() };
        let mut graph = VariantGraph { nodes: BTreeSet::from([first.clone()]), ..VariantGraph::default() };
        let mut unmarked: Vec<(Node, Vec<Position>)> = vec![(first, Vec::new())];
        while let Some((node, path)) = unmarked.pop() {
            for thread in 0..sequence.threads.len() {
                let next = Position { thread, index: node.index[thread] };
                if next.index == sequence.threads[thread].len() {
                    continue;
                }
                let Some(child) = node.child(sequence, next) else {
                    graph.infeasible += 1;
                    continue;
                };
                let path = [path.as_slice(), &[next]].concat();
                let variable = sequence.operation(next).operand;
                if recorded.get(&next).is_some_and(|recorded| *recorded != child.version(variable)) {
                    graph.variants.entry(child).or_insert(path);
                } else if graph.nodes.insert(child.clone()) {
                    unmarked.push((child, path));
                }
            }
        }
        graph
    }
}

impl Node {
    fn version(&self, variable: u64) -> u32 {
        self.versions.get(&variable).copied().unwrap_or_default()
    }

    /// The node after one more operation; `None` if it is infeasible.
    fn child(&self, sequence: &Sequence, next: Position) -> Option<Node> {
        let operation = sequence.operation(next);
        if self.waiting.contains(&next.thread) {
            return None;
        }
        let mut child = self.clone();
        child.index[next.thread] += 1;
        match operation.action {
            Action::Read => {}
            Action::Write => *child.versions.entry(operation.operand).or_default() += 1,
            Action::Lock => {
                if !child.locked.insert(operation.operand) {
                    return None;
                }
            }
            Action::Unlock => {
                child.locked.remove(&operation.operand);
            }
            Action::Wait => {
                child.waiting.insert(next.thread);
            }
            Action::Notify => child.waiting.clear(),
        }
        Some(child)
    }
}

/// The version that each access has in the run: the one that a read sees, or that a write makes.
fn versions(sequence: &Sequence) -> BTreeMap<Position, u32> {
    let mut current: BTreeMap<u64, u32> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for &position in &sequence.order {
        let operation = sequence.operation(position);
        if matches!(operation.action, Action::Read | Action::Write) {
            let version = current.entry(operation.operand).or_default();
            *version += u32::from(operation.action == Action::Write);
            found.insert(position, *version);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{X, Y, fig_3, fig_13, interleavings};

    #[test]
    fn fig_4_has_seven_execution_variants() {
        assert_eq!(VariantGraph::of(&fig_3()).variants.len(), 7);
    }

    /// The variants of a run by brute force: in every order of the operations that locks and waits allow, the first
    /// operation that accesses another version than in the run.
    fn by_brute_force(sequence: &Sequence) -> BTreeSet<Node> {
        let recorded = versions(sequence);
        let mut found = BTreeSet::new();
        for order in interleavings(&sequence.threads) {
            let mut node = Node { index: vec![0; sequence.threads.len()], ..Node::default() };
            for position in order {
                let Some(child) = node.child(sequence, position) else { break };
                node = child;
                let variable = sequence.operation(position).operand;
                if recorded.get(&position).is_some_and(|recorded| *recorded != node.version(variable)) {
                    found.insert(node);
                    break;
                }
            }
        }
        found
    }

    fn variants(sequence: &Sequence) -> BTreeSet<Node> {
        VariantGraph::of(sequence).variants.into_keys().collect()
    }

    #[test]
    fn fig_4_is_what_brute_force_finds() {
        assert_eq!(variants(&fig_3()), by_brute_force(&fig_3()));
    }

    /// With the lock both variables are read before or after both are written. Thread 1 does not go on while it waits.
    #[test]
    fn fig_13_has_infeasible_nodes() {
        let graph = VariantGraph::of(&fig_13());
        assert!(graph.infeasible > 0);
        assert_eq!(variants(&fig_13()), by_brute_force(&fig_13()));
        // In all that is left, thread 2 has left its critical section before thread 1 reads both variables.
        assert!(graph.variants.keys().all(|node| node.index[0] == 2 && node.index[1] >= 4));
        let mut unlocked = fig_13();
        let plain = |operation: &crate::operation::Operation| {
            matches!(operation.action, Action::Read | Action::Write)
        };
        unlocked.threads.iter_mut().for_each(|operations| operations.retain(plain));
        let turns: Vec<usize> = [0, 0, 1, 1, 0, 1].to_vec();
        let unlocked = Sequence::new(unlocked.threads, &turns);
        // Without it, one variable may have been written and the other one not.
        let is_torn = |node: &Node| node.version(X) != node.version(Y);
        assert!(variants(&unlocked).iter().any(is_torn) && !graph.variants.keys().any(is_torn));
    }
}
