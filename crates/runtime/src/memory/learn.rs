//! Finding out which memory is shared.
//!
//! A byte is shared when two threads have accessed it and at least one of them has written to it. Accesses from before
//! the first thread do not count. When a byte becomes shared, it is reported in the shared file, under a name that
//! other runs can use.

use std::sync::atomic::Ordering;

use threadbare_trace::Extent;
use threadbare_wire::{self as wire, LEARNT_BYTES, LEARNT_OFFSET};

use super::sharing::Sharing;
use super::{heap, shadow};
use crate::entry::log;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

/// Looks for a loop that waits for another thread. Such a loop reads the same few places again and again and finds the
/// same values there. These are the running thread's reads since its last schedule point.
#[derive(Default)]
struct Spin {
    reads: Vec<Read>,
    repeats: u32,
}

struct Read {
    pc: u64,
    address: u64,
    size: u64,
    value: Option<u64>,
}

/// A loop that reads no more than so many places may be waiting.
const SPIN_READS: usize = 8;
/// After so many reads that find nothing new, it is.
const SPIN_REPEATS: u32 = 20_000;

impl Spin {
    fn position(&self, pc: u64, address: u64, size: u64) -> Option<usize> {
        let same = |read: &Read| (read.pc, read.address, read.size) == (pc, address, size);
        self.reads.iter().position(same)
    }

    /// Takes note of a read that is not known.
    fn add(&mut self, pc: u64, address: u64, size: u64) {
        if self.reads.len() == SPIN_READS {
            self.reads.clear();
        }
        self.reads.push(Read { pc, address, size, value: None });
        self.repeats = 0;
    }

    /// A known read brings this value. Returns what is read, once that has gone on for long enough.
    fn repeat(&mut self, position: usize, value: u64) -> Option<Vec<Read>> {
        if self.reads[position].value.replace(value) != Some(value) {
            self.repeats = 0;
        }
        self.repeats += 1;
        if self.repeats < SPIN_REPEATS {
            return None;
        }
        self.repeats = 0;
        Some(std::mem::take(&mut self.reads))
    }
}

/// What the tool is told, in the shared file.
struct Report {
    extents: u64,
    /// How many words they take. The first word is their number.
    words: u64,
}

impl Report {
    /// Adds an extent, while there is room.
    fn add(&mut self, extent: &Extent) {
        // The first word is the count, which is kept here.
        let words = wire::encode_extents(std::slice::from_ref(extent));
        if (self.words + words.len() as u64) * 8 > LEARNT_BYTES {
            return;
        }
        if log::write_words(LEARNT_OFFSET, LEARNT_BYTES, self.words, words[1..].iter().copied()) {
            self.words += words.len() as u64 - 1;
            self.extents += 1;
            self.publish();
        }
    }

    fn publish(&self) {
        log::write_words(LEARNT_OFFSET, LEARNT_BYTES, 0, [self.extents].into_iter());
        log::control().learnt_words.store(self.words, Ordering::Release);
    }
}

struct Learner {
    sharing: Sharing,
    spin: Spin,
    report: Report,
}

static LEARNER: Carrier<Option<Learner>> = Carrier::new(None);

/// Begins to learn.
pub fn start() {
    let report = Report { extents: 0, words: 1 };
    report.publish();
    let learner = Learner { sharing: Sharing::new(), spin: Spin::default(), report };
    LEARNER.with(|known| *known = Some(learner));
}

/// Lends the learner to `work`, if this run learns.
#[inline]
fn with<R>(work: impl FnOnce(&mut Learner) -> R) -> Option<R> {
    LEARNER.with(|learner| learner.as_mut().map(work))
}

/// The running thread accesses memory.
pub fn access(address: u64, size: u64, write: bool) {
    with(|Learner { sharing, report, .. }| {
        let report = &mut |start, len| report.add(&name(start, len));
        sharing.access(scheduler::current(), address, size, write, report);
    });
}

/// Other runs are to track this memory, whoever has accessed it.
pub fn report(address: u64, size: u64) {
    with(|Learner { report, .. }| report.add(&name(address, size)));
}

/// The running thread reads memory that is not tracked. If it does nothing else any more, it waits for
/// somebody to write there: that memory is tracked from now on, which lets others run.
///
/// # Safety
/// The program does this read next.
pub unsafe fn read(pc: u64, address: u64, size: u64) {
    let position = with(|learner| {
        let position = learner.spin.position(pc, address, size);
        if position.is_none() {
            learner.spin.add(pc, address, size);
        }
        position
    });
    let Some(Some(position)) = position else { return };
    // SAFETY: the caller's promise. The program has read the same bytes before. (The first time, they may not be there:
    // that is for the program to find out.)
    let value = if size > 8 { size } else { unsafe { log::read_memory(address, size) } };
    with(|learner| {
        for Read { address, size, .. } in learner.spin.repeat(position, value).into_iter().flatten() {
            learner.report.add(&name(address, size));
            shadow::set(address, size, true);
        }
    });
}

/// The running thread does something that is not part of a loop that waits.
#[inline]
pub fn moves_on() {
    with(|learner| learner.spin.reads.clear());
}

/// Forgets what threads did to this memory, because it is allocated anew.
pub fn forget(address: u64, size: u64) {
    with(|learner| learner.sharing.forget(address, size));
}

/// The running thread frees memory. That counts as a write to all bytes that were accessed.
pub fn freed(address: u64, size: u64) {
    with(|Learner { sharing, report, .. }| {
        sharing.free(scheduler::current(), address, size, &mut |start, len| report.add(&name(start, len)));
    });
}

/// A name for memory that other runs can use.
fn name(start: u64, len: u64) -> Extent {
    if let Some((site, offset)) = heap::block_site(start) {
        return Extent::Heap { site, start: offset, len };
    }
    match scheduler::with(|sched| sched.stack_variable(start)) {
        Some((thread, start)) => Extent::Stack { thread, start, len },
        None => Extent::Fixed { start, len },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop that reads the same two places over and over and finds the same there waits for another thread.
    #[test]
    fn a_loop_that_waits_is_noticed() {
        let mut spin = Spin::default();
        spin.add(1, 64, 8);
        spin.add(2, 72, 4);
        let found = (0..2 * SPIN_REPEATS).find_map(|turn| spin.repeat(turn as usize % 2, 7));
        let found = found.expect("it was noticed");
        let places: Vec<(u64, u64)> = found.iter().map(|read| (read.address, read.size)).collect();
        assert_eq!(places, [(64, 8), (72, 4)]);
    }

    /// A loop that finds something new there makes progress: it does not wait.
    #[test]
    fn a_loop_that_finds_something_new_does_not_wait() {
        let mut spin = Spin::default();
        spin.add(1, 64, 8);
        for value in 0..u64::from(2 * SPIN_REPEATS) {
            assert!(spin.repeat(0, value).is_none());
        }
    }

    /// A loop that reads more places than a waiting loop would is none.
    #[test]
    fn many_places_are_forgotten() {
        let mut spin = Spin::default();
        for address in 0..=SPIN_READS as u64 {
            spin.add(1, address, 8);
        }
        assert_eq!(spin.reads.len(), 1);
        assert_eq!(spin.position(1, 0, 8), None);
    }
}
