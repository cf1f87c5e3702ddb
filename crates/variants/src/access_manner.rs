//! Access-manners: how a thread uses locks around its accesses (section IV.A).
//!
//! An access-manner is what a thread does from where it takes a lock, holding none, to where it holds none again. An access
//! or a release without a lock is one of its own. Two runs in which every thread has the same set of them are
//! race-equivalent: they have the same locks around the same accesses, however often and in whatever order.

use std::collections::BTreeSet;

use crate::operation::{Action, Operation};

/// The access-manners of a thread, while it runs.
#[derive(Clone, Debug, Default)]
pub struct AccessManners {
    /// The locks that are held, each as often as it was taken. The paper's L(T) is their number.
    held: Vec<u64>,
    /// The access-manner that has begun.
    open: Vec<Operation>,
    distinct: BTreeSet<Vec<Operation>>,
}

impl AccessManners {
    /// Those of a thread that does these operations.
    pub fn of(path: &[Operation]) -> BTreeSet<Vec<Operation>> {
        let mut manners = AccessManners::default();
        path.iter().for_each(|&operation| manners.step(operation));
        manners.finish()
    }

    /// The thread does one more operation.
    pub fn step(&mut self, operation: Operation) {
        match operation.action {
            Action::Lock => self.held.push(operation.operand),
            Action::Unlock => {
                if let Some(place) = self.held.iter().rposition(|&lock| lock == operation.operand) {
                    self.held.remove(place);
                }
            }
            Action::Read | Action::Write => {}
            Action::Wait | Action::Notify => return,
        }
        self.open.push(operation);
        if self.held.is_empty() {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.distinct.contains(&self.open) {
            self.distinct.insert(self.open.clone());
        }
        self.open.clear();
    }

    /// The locks that the thread holds, in the order in which it took them.
    pub fn held(&self) -> &[u64] {
        &self.held
    }

    /// All of them, at the end of the trace.
    pub fn finish(mut self) -> BTreeSet<Vec<Operation>> {
        if !self.open.is_empty() {
            self.close();
        }
        self.distinct
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 100;
    const B: u64 = 101;
    const X: u64 = 1;
    const Y: u64 = 2;

    fn path(operations: &[(u64, Action, u64)]) -> Vec<Operation> {
        let operation = |&(location, action, operand)| Operation { location, action, operand };
        operations.iter().map(operation).collect()
    }

    fn manners(operations: &[(u64, Action, u64)]) -> BTreeSet<Vec<Operation>> {
        AccessManners::of(&path(operations))
    }

    use Action::{Lock, Read, Unlock, Write};

    /// Executions (a) to (d): in (a) and (b) the branch is true, in (c) and (d) it is false.
    #[test]
    fn fig_6_executions_with_the_same_branch_are_race_equivalent() {
        let when_true = [(11, Lock, A), (12, Write, X), (13, Unlock, A)];
        let when_false = [(15, Write, X)];
        let t2 =
            [(20, Lock, A), (21, Lock, B), (22, Read, Y), (23, Write, X), (24, Unlock, B), (25, Unlock, A)];
        assert_eq!(manners(&when_true), BTreeSet::from([path(&when_true)]));
        assert_eq!(manners(&when_false), BTreeSet::from([path(&when_false)]));
        assert_ne!(manners(&when_true), manners(&when_false));
        // Locks inside of another one belong to one access-manner.
        assert_eq!(manners(&t2), BTreeSet::from([path(&t2)]));
    }

    fn fig_7(iterations: usize) -> BTreeSet<Vec<Operation>> {
        let iteration = [(3, Write, X), (4, Unlock, A)];
        manners(&[&[(1, Lock, A)][..], &iteration.repeat(iterations)].concat())
    }

    #[test]
    fn fig_7_iterations_without_a_lock_at_their_end_are_equivalent() {
        let first = path(&[(1, Lock, A), (3, Write, X), (4, Unlock, A)]);
        let (write, unlock) = (path(&[(3, Write, X)]), path(&[(4, Unlock, A)]));
        assert_eq!(fig_7(1), BTreeSet::from([first.clone()]));
        assert_eq!(fig_7(2), BTreeSet::from([first, write, unlock]));
        assert_eq!(fig_7(3), fig_7(2));
    }

    #[test]
    fn what_is_open_at_the_end_of_the_trace_counts() {
        let open = [(1, Lock, A), (2, Write, X)];
        assert_eq!(manners(&open), BTreeSet::from([path(&open)]));
    }
}
