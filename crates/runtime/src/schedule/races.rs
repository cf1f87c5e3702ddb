//! Data races: two threads stand before accesses to the same memory, one of them a write and one of them not atomic.
//!
//! Either could go next, so the race is observed, not predicted.

use std::sync::atomic::Ordering;

use threadbare_trace::{End, EventKind, Failure, FailureKind, Related, Role, ThreadIndex};
use threadbare_wire::{CodePlace, MAX_RACES, PendingRecord, RaceRecord};

use crate::entry::log;
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::{finish, here};
use crate::schedule::scheduler::{Operation, Scheduler};

/// Pairs of places already recorded in this run.
static SEEN: Carrier<Vec<[u64; 2]>> = Carrier::new(Vec::new());

fn is_atomic(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Read | EventKind::Write)
}

/// Thread `me` comes to an access: does it race with what another stands before?
pub fn look(sched: &Scheduler, me: ThreadIndex, operation: &Operation) {
    if !operation.kind.is_access() {
        return;
    }
    for other in sched.alive.iter() {
        let pending = log::pending(other);
        if other != me && conflicts(operation, &pending) {
            race(sched.follower.plan().race, me, operation, &pending);
        }
    }
}

fn conflicts(operation: &Operation, pending: &PendingRecord) -> bool {
    let Some(kind) = EventKind::from_byte(pending.kind).filter(|kind| kind.is_access()) else { return false };
    let overlap = operation.object < pending.object + u64::from(pending.size)
        && pending.object < operation.object + operation.size();
    overlap
        && (kind.is_write() || operation.kind.is_write())
        && !(is_atomic(kind) && is_atomic(operation.kind))
}

/// Records the race, and ends the run if it is the `wanted` one.
fn race(wanted: Option<[u64; 2]>, me: ThreadIndex, operation: &Operation, other: &PendingRecord) {
    let mut places = [operation.pc, other.pc];
    places.sort_unstable();
    let control = log::control();
    if wanted == Some(places) {
        let at = CodePlace { thread: other.thread_index(), stack: other.stack_index(), pc: other.pc };
        let mut failure = Failure::new(FailureKind::DataRace, "", here(operation.pc));
        failure.related = vec![Related { role: Role::OtherAccess, at }];
        finish(&End::Failed(failure));
    }
    let is_new = SEEN.with(|seen| {
        let is_new = !seen.contains(&places) && seen.len() < MAX_RACES;
        if is_new {
            seen.push(places);
        }
        is_new
    });
    if !is_new {
        return;
    }
    let record = RaceRecord {
        addresses: places,
        at: control.events.load(Ordering::Relaxed),
        thread: me,
        other: other.thread_index(),
    };
    log::race(record);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(kind: EventKind, address: u64, size: u64) -> Operation {
        // SAFETY: nobody does the operation.
        unsafe { Operation::access(kind, 1, address, size) }
    }

    fn pending(kind: EventKind, object: u64, size: u16) -> PendingRecord {
        let kind = kind as u8;
        PendingRecord {
            thread: 1,
            kind,
            blocked: 0,
            size,
            stack: 0,
            holder: 0,
            pc: 2,
            object,
            condition: [0; 3],
            patience: 0,
        }
    }

    /// A race takes a write and an access that is not atomic.
    #[test]
    fn kinds_that_race() {
        let races = |one, other| conflicts(&access(one, 64, 8), &pending(other, 64, 8));
        assert!(races(EventKind::Write, EventKind::Read) && races(EventKind::Read, EventKind::Write));
        assert!(
            races(EventKind::Write, EventKind::AtomicLoad) && races(EventKind::AtomicRmw, EventKind::Read)
        );
        assert!(!races(EventKind::Read, EventKind::Read) && !races(EventKind::AtomicLoad, EventKind::Read));
        assert!(!races(EventKind::AtomicStore, EventKind::AtomicRmw));
        assert!(!races(EventKind::Write, EventKind::Lock));
    }

    /// Neighbours do not race, and one common byte is enough.
    #[test]
    fn bytes_that_race() {
        let races = |address, size| {
            conflicts(&access(EventKind::Write, address, size), &pending(EventKind::Read, 64, 4))
        };
        assert!(!races(60, 4) && races(60, 5) && races(67, 1) && !races(68, 8));
    }

    /// A thread that stands before nothing races with nobody.
    #[test]
    fn nothing_does_not_race() {
        let nothing = PendingRecord { kind: 0, ..pending(EventKind::Write, 64, 8) };
        assert!(!conflicts(&access(EventKind::Write, 64, 8), &nothing));
    }
}
