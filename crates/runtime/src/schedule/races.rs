//! Data races, seen to happen: two threads stand before accesses to the same memory, one of them a write and one
//! of them not atomic, and either could go next.

use std::sync::atomic::Ordering;

use threadbare_trace::EventKind;
use threadbare_wire::{Ending, MAX_RACES, PendingRecord, RaceRecord};

use crate::entry::log;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, finish};

/// Pairs of places already recorded in this run.
static SEEN: Carrier<Vec<[u64; 2]>> = Carrier::new(Vec::new());

fn is_atomic(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Read | EventKind::Write)
}

/// Thread `me` comes to an access: does it race with what another stands before?
pub fn look(me: usize, operation: &Operation) {
    if !operation.kind.is_access() {
        return;
    }
    for other in scheduler::get().alive.iter() {
        // SAFETY: the slot of a thread that exists.
        let pending = unsafe { &*log::pending(other) };
        if other != me && conflicts(operation, pending) {
            race(me, operation, pending);
        }
    }
}

fn conflicts(operation: &Operation, pending: &PendingRecord) -> bool {
    let Some(kind) = EventKind::from_byte(pending.kind).filter(|kind| kind.is_access()) else { return false };
    let overlap = operation.object < pending.object + u64::from(pending.size)
        && pending.object < operation.object + operation.size;
    overlap
        && (kind.is_write() || operation.kind.is_write())
        && !(is_atomic(kind) && is_atomic(operation.kind))
}

/// Records the race, and ends the run if it is the one that the plan is about.
fn race(me: usize, operation: &Operation, other: &PendingRecord) {
    let mut places = [operation.pc, other.pc];
    places.sort_unstable();
    let control = log::control();
    if scheduler::get().follower.plan().race == Some(places) {
        control.other.pc.store(other.pc, Ordering::Relaxed);
        control.other.stack.store(other.stack, Ordering::Relaxed);
        control.other.thread.store(other.thread + 1, Ordering::Relaxed);
        let kinds = u32::from(operation.kind as u8) | u32::from(other.kind) << 8;
        finish(Ending::DataRace, kinds, operation.pc, "");
    }
    if SEEN.get().contains(&places) || SEEN.get().len() >= MAX_RACES {
        return;
    }
    SEEN.get().push(places);
    let record = RaceRecord {
        places,
        at: control.events.load(Ordering::Relaxed),
        thread: me as u32,
        other: other.thread,
    };
    let count = control.races.load(Ordering::Relaxed);
    // SAFETY: inside the region, which holds as many as are recorded.
    unsafe { log::races().add(count as usize).write(record) };
    control.races.store(count + 1, Ordering::Release);
}
