//! Read-write locks.

use std::cell::Cell;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome, ThreadIndex};

use super::Patience;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, Scheduler, point};
use crate::schedule::wait::Wait;

/// glibc's `pthread_rwlock_t`, as far as it is used.
#[repr(C)]
pub struct RwLock {
    readers: Cell<u32>,
    unused: [u32; 5],
    /// 1 + the index of the writing thread.
    writer: Cell<u32>,
    unused_too: [u32; 5],
    preference: u32,
}

impl RwLock {
    /// The lock of a program.
    ///
    /// # Safety
    /// `lock` points to an initialised read-write lock that stays one for as long as a thread uses it. A program that
    /// calls a function for these locks promises libc the same.
    pub unsafe fn at(lock: *mut libc::pthread_rwlock_t) -> &'static RwLock {
        // SAFETY: the caller's promise. What changes is in `Cell`s, and changes on the carrier.
        unsafe { &*lock.cast::<RwLock>() }
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// The index of the thread that holds it for writing.
    pub fn writer(&self) -> Option<ThreadIndex> {
        self.writer.get().checked_sub(1).map(ThreadIndex::new)
    }

    /// Readers wait for writers that wait (`PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`, and Rust's locks).
    fn prefers_writers(&self) -> bool {
        const PREFER_WRITER: u32 = 2;
        self.preference == PREFER_WRITER
    }

    pub fn can_read(&self, sched: &Scheduler) -> bool {
        let must_wait = || self.prefers_writers() && self.readers.get() > 0 && self.has_waiting_writer(sched);
        self.writer.get() == 0 && !must_wait()
    }

    pub fn can_write(&self) -> bool {
        self.writer.get() == 0 && self.readers.get() == 0
    }

    fn has_waiting_writer(&self, sched: &Scheduler) -> bool {
        let waits = |index: ThreadIndex| matches!(sched.threads[index].wait, Wait::WriteLock(of) if of.address() == self.address());
        sched.alive.iter().any(waits)
    }
}

/// The running thread would wait for itself.
fn is_held_by_me(lock: &RwLock, patience: Patience) -> bool {
    lock.writer() == Some(scheduler::current()) && patience != Patience::None
}

pub fn lock_shared(lock: &'static RwLock, patience: Patience, pc: u64) -> c_int {
    let (address, pc) = (lock.address(), users_call(pc));
    if is_held_by_me(lock, patience) {
        return libc::EDEADLK;
    }
    let timed_out = patience.point(Operation::new(EventKind::ReadLock, pc, address), Wait::ReadLock(lock));
    let can_read = scheduler::with(|sched| lock.can_read(sched));
    let (outcome, error) = match (timed_out, can_read) {
        (true, _) => (Outcome::TimedOut, libc::ETIMEDOUT),
        (false, true) => {
            lock.readers.set(lock.readers.get() + 1);
            scheduler::with_me(|me| me.read_locks.push(address));
            (Outcome::Done, 0)
        }
        (false, false) => (Outcome::Failed, libc::EBUSY),
    };
    Entry::new(EventKind::ReadLock, pc, address).outcome(outcome).write();
    error
}

pub fn lock_exclusive(lock: &'static RwLock, patience: Patience, pc: u64) -> c_int {
    let (address, pc) = (lock.address(), users_call(pc));
    if is_held_by_me(lock, patience) {
        return libc::EDEADLK;
    }
    // A writer that begins to wait changes what readers may do: that is an event of its own.
    if lock.prefers_writers() && patience != Patience::None {
        point(Operation::new(EventKind::Lock, pc, address));
        if take_exclusive(lock, pc, false) == 0 {
            return 0;
        }
    }
    let timed_out = patience.point(Operation::new(EventKind::Lock, pc, address), Wait::WriteLock(lock));
    take_exclusive(lock, pc, timed_out)
}

/// Takes a read-write lock for writing if it is free, unless the time for that is over.
fn take_exclusive(lock: &RwLock, pc: u64, timed_out: bool) -> c_int {
    let (outcome, error) = match (timed_out, lock.can_write()) {
        (true, _) => (Outcome::TimedOut, libc::ETIMEDOUT),
        (false, true) => {
            lock.writer.set(scheduler::current().number() + 1);
            (Outcome::Done, 0)
        }
        (false, false) => (Outcome::Failed, libc::EBUSY),
    };
    Entry::new(EventKind::Lock, pc, lock.address()).outcome(outcome).write();
    // Readers may have waited behind this one.
    if timed_out {
        scheduler::released(lock.address());
    }
    error
}

pub fn unlock(lock: &RwLock, pc: u64) -> c_int {
    let (address, pc) = (lock.address(), users_call(pc));
    let reading = lock.writer.get() == 0;
    let kind = if reading { EventKind::ReadUnlock } else { EventKind::Unlock };
    point(Operation::new(kind, pc, address));
    Entry::new(kind, pc, address).write();
    if reading {
        lock.readers.set(lock.readers.get().saturating_sub(1));
        scheduler::with_me(|me| {
            if let Some(position) = me.read_locks.iter().rposition(|&held| held == address) {
                me.read_locks.remove(position);
            }
        });
    } else {
        lock.writer.set(0);
    }
    scheduler::released(address);
    0
}

#[cfg(test)]
mod tests {
    use threadbare_trace::Plan;

    use super::*;
    use crate::schedule::test_support::{FIRST, with_threads};

    fn lock(readers: u32, writer: u32, preference: u32) -> &'static RwLock {
        let [readers, writer] = [readers, writer].map(Cell::new);
        Box::leak(Box::new(RwLock { readers, unused: [0; 5], writer, unused_too: [0; 5], preference }))
    }

    /// Readers share a lock, and a writer has it alone.
    #[test]
    fn readers_and_writers() {
        with_threads(1, Plan::default(), |sched| {
            let may = |readers, writer| {
                let lock = lock(readers, writer, 0);
                (lock.can_read(sched), lock.can_write())
            };
            assert_eq!([may(0, 0), may(2, 0), may(0, 1)], [(true, true), (true, false), (false, false)]);
            assert_eq!(lock(0, 2, 0).writer(), Some(FIRST));
            assert_eq!(lock(0, 0, 0).writer(), None);
        });
    }

    /// A writer that waits keeps new readers out only where the lock prefers writers, and only while others read.
    #[test]
    fn preference() {
        const WRITERS: u32 = 2;
        with_threads(2, Plan::default(), |sched| {
            let mut may_read = |lock: &'static RwLock, waits_for: &'static RwLock| {
                sched.threads[FIRST].wait = Wait::WriteLock(waits_for);
                lock.can_read(sched)
            };
            let [preferring, plain, free] =
                [(1, WRITERS), (1, 0), (0, WRITERS)].map(|(readers, to)| lock(readers, 0, to));
            assert!(!may_read(preferring, preferring));
            assert!(may_read(preferring, plain) && may_read(plain, plain) && may_read(free, free));
        });
    }
}
