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
