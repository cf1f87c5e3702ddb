//! The paper's model of a trace: what threads do, as `location:operation:operand` (section III).

use threadbare_trace::EventKind::{
    AtomicLoad, AtomicRmw, AtomicStore, NotifyAll, NotifyOne, Read, Wait, Write,
};
use threadbare_trace::{Event, LockEffect, Outcome};

/// One operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operation {
    /// A place in the code, as a number that is the same in every run: a line, or an address.
    pub location: u64,
    pub action: Action,
    /// The variable, the lock, or the condition: a number that is the same in every run.
    pub operand: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    Read,
    Write,
    Lock,
    Unlock,
    Wait,
    Notify,
}

impl Action {
    /// What an event does in the terms of the paper, if anything.
    pub fn of(event: &Event) -> Option<Action> {
        match (event.kind, event.kind.lock_effect()) {
            (Read | AtomicLoad, _) => Some(Action::Read),
            (Write | AtomicStore, _) => Some(Action::Write),
            (AtomicRmw, _) if event.outcome == Outcome::Done => Some(Action::Write),
            (AtomicRmw, _) => Some(Action::Read),
            (Wait, _) => Some(Action::Wait),
            (NotifyOne | NotifyAll, _) => Some(Action::Notify),
            (_, Some(LockEffect::Acquires { .. })) if event.outcome == Outcome::Done => Some(Action::Lock),
            // A release of what is not held is an unusual access-manner, so it counts too.
            (_, Some(LockEffect::Releases { .. })) => Some(Action::Unlock),
            _ => None,
        }
    }
}

/// What the threads of a run did, and the order that it came in: the read-write sequence of the paper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// S(j): the operations of each thread.
    pub threads: Vec<Vec<Operation>>,
    /// The operations in their order.
    pub order: Vec<Position>,
}

/// S(j, i): an operation, by its thread and its place in that thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    pub thread: usize,
    pub index: usize,
}

impl Sequence {
    /// The threads do these operations, and take turns in this order.
    pub fn new(threads: Vec<Vec<Operation>>, turns: &[usize]) -> Sequence {
        let mut done = vec![0; threads.len()];
        let position = |&thread: &usize| {
            let index = done[thread];
            done[thread] += 1;
            Position { thread, index }
        };
        let order = turns.iter().map(position).collect();
        Sequence { threads, order }
    }

    pub fn operation(&self, position: Position) -> Operation {
        self.threads[position.thread][position.index]
    }

    /// A variable is shared if more than one thread accesses it.
    pub fn is_shared(&self, variable: u64) -> bool {
        let accesses = |operation: &Operation| {
            matches!(operation.action, Action::Read | Action::Write) && operation.operand == variable
        };
        self.threads.iter().filter(|operations| operations.iter().any(accesses)).count() > 1
    }
}
