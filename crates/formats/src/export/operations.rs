//! A trace in the few words that STD and CSV have.

use std::collections::{BTreeSet, HashMap};
use std::io;

use threadbare_trace::{
    Event, EventKind, LocationIndex, LockEffect, ObjectIndex, ObjectName, Outcome, ThreadIndex, Trace,
};

/// One line of STD.
pub struct Operation {
    pub thread: ThreadIndex,
    pub verb: &'static str,
    pub operand: Operand,
    pub location: LocationIndex,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    Object(ObjectIndex),
    /// What a thread locks to read under a read-write lock.
    ReadSide {
        object: ObjectIndex,
        thread: ThreadIndex,
    },
    Thread(ThreadIndex),
}

/// Calls `each` with every operation of the trace, in order, until it fails.
pub fn operations(trace: &Trace, mut each: impl FnMut(Operation) -> io::Result<()>) -> io::Result<()> {
    let mut locks = Locks::of(trace);
    let mut operands = Vec::new();
    for event in &trace.events {
        let done = event.outcome == Outcome::Done;
        operands.clear();
        if event.kind.is_read() {
            operands.push(("r", Operand::Object(event.object)));
        }
        // A compare-exchange that failed only reads.
        if event.kind.is_write() && (done || !event.kind.is_read()) {
            operands.push(("w", Operand::Object(event.object)));
        }
        match event.kind.lock_effect().filter(|_| done) {
            Some(LockEffect::Acquires { .. }) => {
                operands.extend(locks.acquire(event).into_iter().map(|lock| ("acq", lock)));
            }
            Some(LockEffect::Releases { .. }) => {
                operands.extend(locks.release(event).into_iter().map(|lock| ("rel", lock)));
            }
            None => {}
        }
        let is_fork_or_join = matches!(event.kind, EventKind::Fork | EventKind::Join);
        if is_fork_or_join
            && done
            && let ObjectName::Thread(other) = trace.object(event.object).name
        {
            operands.push((event.kind.name(), Operand::Thread(other)));
        }
        for &(verb, operand) in &operands {
            each(Operation { thread: event.thread, verb, operand, location: event.location })?;
        }
    }
    Ok(())
}

/// Who holds what, and the plain locks that stand for each read-write lock.
struct Locks {
    /// The threads that ever take an object's read side.
    readers: HashMap<ObjectIndex, BTreeSet<ThreadIndex>>,
    /// How often a thread holds a plain lock.
    held: HashMap<(ThreadIndex, Operand), u32>,
}

impl Locks {
    fn of(trace: &Trace) -> Locks {
        let mut readers: HashMap<ObjectIndex, BTreeSet<ThreadIndex>> = HashMap::new();
        for event in trace
            .events
            .iter()
            .filter(|event| event.kind == EventKind::ReadLock && event.outcome == Outcome::Done)
        {
            readers.entry(event.object).or_default().insert(event.thread);
        }
        Locks { readers, held: HashMap::new() }
    }

    /// The plain locks that the event's thread takes and did not hold before, in order.
    fn acquire(&mut self, event: &Event) -> Vec<Operand> {
        let mut locks = self.plain(event);
        locks.retain(|&lock| {
            let held = self.held.entry((event.thread, lock)).or_default();
            *held += 1;
            *held == 1
        });
        locks
    }

    /// The plain locks that the event's thread held and gives back, last taken first.
    fn release(&mut self, event: &Event) -> Vec<Operand> {
        let mut locks = self.plain(event);
        locks.reverse();
        locks.retain(|&lock| {
            let Some(held) = self.held.get_mut(&(event.thread, lock)) else { return false };
            let was_held = *held > 0;
            *held = held.saturating_sub(1);
            was_held && *held == 0
        });
        locks
    }

    /// The plain locks that the event is about.
    fn plain(&self, event: &Event) -> Vec<Operand> {
        let object = event.object;
        let read_side = |thread| Operand::ReadSide { object, thread };
        match event.kind.lock_effect() {
            Some(LockEffect::Acquires { shared: true } | LockEffect::Releases { shared: true }) => {
                vec![read_side(event.thread)]
            }
            _ => {
                let readers = self.readers.get(&object).into_iter().flatten();
                std::iter::once(Operand::Object(object))
                    .chain(readers.map(|&reader| read_side(reader)))
                    .collect()
            }
        }
    }
}
