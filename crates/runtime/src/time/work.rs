//! The time that a thread's own work takes.
//!
//! What a clock says is the virtual time, which moves when a wait ends by time, and the work of the thread that looks:
//! its calls, its accesses and its looks at clocks. Work is counted for every thread by itself, so it does not depend
//! on what other threads do in between, and two orders of independent operations give the same times.
//!
//! Threads that communicate pass their work on, as in Lamport's clocks: who releases an object leaves its work there,
//! and who acquires it goes on with at least as much. So a time that one thread has read is never later than what
//! another reads after it has heard of it. That is needed only after a look. A thread leaves its work from the first
//! time on that it has looked, or has acquired from one that has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use threadbare_trace::{EventKind, ThreadIndex};

use crate::entry::log::Entry;
use crate::hash::Hasher;
use crate::os::io;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;
use crate::schedule::wait::thread_address;

/// The work of the running thread. The hooks for accesses count it up in assembly.
pub static WORK: AtomicU64 = AtomicU64::new(0);

/// An access or a call takes so long: several times what it takes on a real machine, for the instructions around it.
const UNIT_NS: u64 = 10;
/// Units of an operation on something that threads share: 1 µs.
const OPERATION: u64 = 100;
/// Units of a look at a clock: 1 µs.
const LOOK: u64 = 100;
/// After so many more looks, each takes `LOOK` longer, up to the maximum. So a loop that waits for the next second
/// ends after 60,000 looks, and one that looks a few times sees the time of its work.
const LOOKS_PER_STEP: u64 = 64;
const MAX_STEPS: u64 = 16;

/// A thread's part in it.
#[derive(Clone, Copy, Default)]
pub struct Looks {
    /// How often it has looked at a clock.
    count: u64,
    /// It has looked, or has acquired from a thread that has.
    matter: bool,
}

/// What threads have left, by eight bytes of memory, for each byte. Objects have the place of their first byte.
static LEFT: Carrier<Option<HashMap<u64, [u64; 8], Hasher>>> = Carrier::new(None);

impl Looks {
    /// Those of a thread that this one creates.
    pub fn inherited(self) -> Looks {
        Looks { count: 0, ..self }
    }
}

/// The running thread's work.
pub fn current() -> u64 {
    WORK.load(Ordering::Relaxed)
}

/// The running thread's work, as a time.
pub fn nanoseconds() -> u64 {
    current().saturating_mul(UNIT_NS)
}

/// The running thread does so many units of work.
#[inline(always)]
pub fn does(units: u64) {
    WORK.store(current().wrapping_add(units), Ordering::Relaxed);
}

/// The running thread accesses `len` bytes, in code that was compiled for us. Functions of libc's do not count: this
/// library calls them too, and how often depends on where a run began.
pub fn passes_over(len: u64) {
    const BYTES_PER_UNIT: u64 = 64;
    does(1 + len / BYTES_PER_UNIT);
}

/// The running thread does an operation. The hooks have counted plain accesses, whether they are tracked or not.
#[inline(always)]
pub fn operates(kind: EventKind) {
    if !matches!(kind, EventKind::Read | EventKind::Write) {
        does(OPERATION);
    }
}

/// Makes another thread's work the current one; returns what was.
#[inline(always)]
pub fn exchange(load: u64) -> u64 {
    let before = current();
    WORK.store(load, Ordering::Relaxed);
    before
}

/// How long the next look of the running thread takes.
pub fn look() -> u64 {
    let count = scheduler::with_me(|me| {
        me.looks.matter = true;
        me.looks.count += 1;
        me.looks.count
    });
    LEFT.with(|left| {
        left.get_or_insert_default();
    });
    LOOK * (1 + count / LOOKS_PER_STEP).min(MAX_STEPS) * UNIT_NS
}

/// The running thread has looked for so long.
pub fn has_looked_for(nanoseconds: u64) {
    does(nanoseconds / UNIT_NS);
}

/// Thread `me` does this: takes what others have left there, and leaves its own.
#[inline(always)]
pub fn event(me: ThreadIndex, entry: &Entry) {
    if LEFT.with(|left| left.is_some()) {
        communicate(me, entry.kind, entry.object, entry.size);
    }
}

/// The running thread has had a signal that was sent to it or to the process: `target` is the object of the event.
pub fn is_signalled(target: u64) {
    if LEFT.with(|left| left.is_some()) {
        acquire(target, 1);
    }
}

#[cold]
fn communicate(me: ThreadIndex, kind: EventKind, object: u64, size: u64) {
    let (acquires, releases) = direction(kind);
    let (place, len) = match kind {
        EventKind::End => (thread_address(me), 1),
        EventKind::Io => (io::ANY, 1),
        _ => (object, size.max(1)),
    };
    if acquires {
        acquire(place, len);
    }
    if releases {
        release(place, len);
    }
}

fn acquire(place: u64, len: u64) {
    let newest = LEFT.with(|left| left.as_ref().and_then(|left| of(left, place, len)));
    if let Some(newest) = newest {
        WORK.fetch_max(newest, Ordering::Relaxed);
        scheduler::with_me(|me| me.looks.matter = true);
    }
}

fn release(place: u64, len: u64) {
    if !scheduler::with_me(|me| me.looks.matter) {
        return;
    }
    let work = current();
    LEFT.with(|left| {
        for (granule, bytes) in granules(place, len) {
            let left = left.get_or_insert_default().entry(granule).or_default();
            left[bytes].iter_mut().for_each(|left| *left = work.max(*left));
        }
    });
}

/// The most that was left at these bytes.
fn of(left: &HashMap<u64, [u64; 8], Hasher>, place: u64, len: u64) -> Option<u64> {
    let all =
        granules(place, len).filter_map(|(granule, bytes)| left.get(&granule)?[bytes].iter().copied().max());
    all.max().filter(|&newest| newest > 0)
}

/// The groups of eight bytes that these bytes are in, and which of each they are.
fn granules(place: u64, len: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let last = place.saturating_add(len - 1);
    (place >> 3..=last >> 3).map(move |granule| {
        let low = place.max(granule << 3) & 7;
        let high = last.min(granule << 3 | 7) & 7;
        (granule, low as usize..high as usize + 1)
    })
}

/// Whether an event tells its thread something of what others have done to the object, and others of the thread. Events
/// that may change places with each other, such as two reads, do not tell of each other.
fn direction(kind: EventKind) -> (bool, bool) {
    match kind {
        EventKind::Read
        | EventKind::AtomicLoad
        | EventKind::ReadLock
        | EventKind::Wake
        | EventKind::FutexWait
        | EventKind::FutexResume
        | EventKind::BarrierLeave
        | EventKind::Join => (true, false),
        EventKind::Write
        | EventKind::AtomicStore
        | EventKind::Unlock
        | EventKind::ReadUnlock
        | EventKind::NotifyOne
        | EventKind::NotifyAll
        | EventKind::FutexWake
        | EventKind::SemPost
        | EventKind::OnceLeave
        | EventKind::Cancel
        | EventKind::Signal
        | EventKind::End => (false, true),
        EventKind::AtomicRmw
        | EventKind::Lock
        | EventKind::SemWait
        | EventKind::BarrierArrive
        | EventKind::OnceEnter
        | EventKind::Io => (true, true),
        // A new thread begins with its creator's work; the others are about no object that threads share.
        EventKind::Fork
        | EventKind::Begin
        | EventKind::Detach
        | EventKind::Wait
        | EventKind::Fence
        | EventKind::Allocate
        | EventKind::Free
        | EventKind::Enter
        | EventKind::Leave
        | EventKind::Reach
        | EventKind::Yield
        | EventKind::Sleep
        | EventKind::Exit
        | EventKind::Failure => (false, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access of eight bytes that is not aligned touches two groups.
    #[test]
    fn bytes_by_groups() {
        assert_eq!(granules(64, 8).collect::<Vec<_>>(), [(8, 0..8)]);
        assert_eq!(granules(68, 8).collect::<Vec<_>>(), [(8, 4..8), (9, 0..4)]);
        assert_eq!(granules(u64::MAX, 1).collect::<Vec<_>>(), [(u64::MAX >> 3, 7..8)]);
    }
}
