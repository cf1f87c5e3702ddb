//! Mutexes: normal, recursive, error-checking, robust.

use std::cell::Cell;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome, ThreadIndex};

use super::Patience;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, Scheduler, point};
use crate::schedule::wait::Wait;

/// The beginning of glibc's `pthread_mutex_t`.
#[repr(C)]
pub struct Mutex {
    lock: Cell<c_int>,
    count: Cell<u32>,
    /// 1 + the index of the owning thread, where glibc keeps a kernel thread id.
    owner: Cell<c_int>,
    users: Cell<u32>,
    kind: Cell<c_int>,
}

impl Mutex {
    pub const RECURSIVE: c_int = 1;
    pub const ERROR_CHECK: c_int = 2;
    const TYPE: c_int = 3;
    const ROBUST: c_int = 16;
    /// In `count`: the owner died, and nobody has said yet that the data is consistent again.
    const INCONSISTENT: u32 = 1 << 31;
    /// In `owner`: a holder gave an inconsistent mutex up.
    const LOST: c_int = -1;

    /// The mutex of a program.
    ///
    /// # Safety
    /// `mutex` points to an initialised mutex that stays one for as long as a thread uses it. A program that calls a
    /// mutex function promises libc the same.
    pub unsafe fn at(mutex: *mut libc::pthread_mutex_t) -> &'static Mutex {
        // SAFETY: the caller's promise. All access is through `Cell`s, on the carrier.
        unsafe { &*mutex.cast::<Mutex>() }
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    pub fn kind(&self) -> c_int {
        self.kind.get() & Mutex::TYPE
    }

    pub fn set_kind(&self, kind: c_int) {
        self.kind.set(kind);
    }

    pub fn is_free(&self) -> bool {
        self.lock.get() == 0
    }

    pub fn is_owned_by(&self, thread: ThreadIndex) -> bool {
        !self.is_free() && self.owner.get() == thread.number() as c_int + 1
    }

    /// The index of the thread that holds it.
    pub fn owner(&self) -> Option<ThreadIndex> {
        u32::try_from(self.owner.get()).ok()?.checked_sub(1).map(ThreadIndex::new)
    }

    pub fn is_robust(&self) -> bool {
        self.kind.get() & Mutex::ROBUST != 0
    }

    fn is_inconsistent(&self) -> bool {
        self.is_robust() && self.count.get() & Mutex::INCONSISTENT != 0
    }

    /// Its owner ended without unlocking it, which only a robust mutex gets over.
    fn is_orphan(&self, sched: &Scheduler) -> bool {
        let has_ended = |owner: ThreadIndex| sched.threads.get(owner).is_some_and(|owner| owner.done);
        self.is_robust() && !self.is_free() && self.owner().is_some_and(has_ended)
    }

    /// An attempt of `thread` to lock it would return, with success or with an error.
    pub fn can_lock(&self, sched: &Scheduler, thread: ThreadIndex) -> bool {
        self.is_free()
            || self.is_owned_by(thread) && matches!(self.kind(), Mutex::RECURSIVE | Mutex::ERROR_CHECK)
            || self.is_orphan(sched)
    }

    fn set_owner(&self, thread: ThreadIndex) {
        self.lock.set(1);
        self.owner.set(thread.number() as c_int + 1);
        self.users.set(1);
    }

    fn set_free(&self) {
        self.lock.set(0);
        self.owner.set(0);
        self.users.set(0);
    }

    /// Takes it after a condition wait: once more if the thread holds it already.
    pub fn retake(&self, thread: ThreadIndex) {
        if self.is_owned_by(thread) {
            self.count.set(self.count.get() + 1);
        } else {
            self.set_owner(thread);
        }
    }

    /// Takes it if its kind allows that.
    fn take(&self, sched: &Scheduler, me: ThreadIndex, patience: Patience) -> (Outcome, c_int) {
        match self.kind() {
            _ if self.is_robust() && self.owner.get() == Mutex::LOST => {
                (Outcome::Error, libc::ENOTRECOVERABLE)
            }
            _ if self.is_orphan(sched) => {
                self.set_owner(me);
                self.count.set(Mutex::INCONSISTENT);
                (Outcome::Done, libc::EOWNERDEAD)
            }
            _ if self.is_free() => {
                self.set_owner(me);
                (Outcome::Done, 0)
            }
            Mutex::RECURSIVE if self.is_owned_by(me) => {
                self.count.set(self.count.get() + 1);
                (Outcome::Done, 0)
            }
            Mutex::ERROR_CHECK if self.is_owned_by(me) && patience != Patience::None => {
                (Outcome::Error, libc::EDEADLK)
            }
            _ => (Outcome::Failed, libc::EBUSY),
        }
    }

    /// Gives up one hold.
    pub fn release(&self) {
        if self.is_inconsistent() {
            self.count.set(0);
            self.set_free();
            self.owner.set(Mutex::LOST);
        } else if self.kind() == Mutex::RECURSIVE && self.count.get() > 0 {
            self.count.set(self.count.get() - 1);
            return;
        } else {
            self.set_free();
        }
        scheduler::released(self.address());
    }
}

/// Locks a mutex as its kind says.
pub fn lock(mutex: &'static Mutex, patience: Patience, pc: u64) -> c_int {
    let (address, pc) = (mutex.address(), users_call(pc));
    let timed_out = patience.point(Operation::new(EventKind::Lock, pc, address), Wait::Mutex(mutex));
    let (outcome, error) = if timed_out {
        (Outcome::TimedOut, libc::ETIMEDOUT)
    } else {
        scheduler::with(|sched| mutex.take(sched, scheduler::current(), patience))
    };
    Entry::new(EventKind::Lock, pc, address).outcome(outcome).write();
    error
}

pub fn unlock(mutex: &'static Mutex, pc: u64) -> c_int {
    let (address, pc) = (mutex.address(), users_call(pc));
    point(Operation::new(EventKind::Unlock, pc, address));
    let is_checked = matches!(mutex.kind(), Mutex::RECURSIVE | Mutex::ERROR_CHECK);
    if is_checked && !mutex.is_owned_by(scheduler::current()) {
        Entry::new(EventKind::Unlock, pc, address).outcome(Outcome::Error).write();
        return libc::EPERM;
    }
    Entry::new(EventKind::Unlock, pc, address).write();
    mutex.release();
    0
}

/// The holder says that what a robust mutex protects is in order again.
pub fn make_consistent(mutex: &Mutex) -> c_int {
    if !mutex.is_inconsistent() {
        return libc::EINVAL;
    }
    mutex.count.set(mutex.count.get() & !Mutex::INCONSISTENT);
    0
}

#[cfg(test)]
mod tests {
    use threadbare_trace::Plan;

    use super::*;
    use crate::schedule::test_support::{FIRST, SECOND, with_threads};

    fn mutex(kind: c_int) -> Mutex {
        let [lock, owner, kind] = [0, 0, kind].map(Cell::new);
        Mutex { lock, count: Cell::new(0), owner, users: Cell::new(0), kind }
    }

    /// What a thread finds that locks a mutex it holds, by kind: only some kinds come back from that.
    #[test]
    fn locking_twice() {
        with_threads(2, Plan::default(), |sched| {
            let again = |kind, patience| {
                let mutex = mutex(kind);
                assert_eq!(mutex.take(sched, FIRST, patience), (Outcome::Done, 0));
                (mutex.can_lock(sched, FIRST), mutex.take(sched, FIRST, patience))
            };
            const NORMAL: c_int = 0;
            assert_eq!(again(NORMAL, Patience::Endless), (false, (Outcome::Failed, libc::EBUSY)));
            assert_eq!(again(Mutex::RECURSIVE, Patience::Endless), (true, (Outcome::Done, 0)));
            assert_eq!(again(Mutex::ERROR_CHECK, Patience::Endless), (true, (Outcome::Error, libc::EDEADLK)));
            assert_eq!(again(Mutex::ERROR_CHECK, Patience::None), (true, (Outcome::Failed, libc::EBUSY)));
        });
    }

    /// Another thread's mutex cannot be had, whatever its kind, and its owner is known.
    #[test]
    fn owners() {
        with_threads(3, Plan::default(), |sched| {
            for kind in [0, Mutex::RECURSIVE, Mutex::ERROR_CHECK, Mutex::ROBUST] {
                let mutex = mutex(kind);
                assert_eq!(mutex.owner(), None);
                mutex.take(sched, FIRST, Patience::Endless);
                assert_eq!(mutex.owner(), Some(FIRST));
                assert!(mutex.is_owned_by(FIRST) && !mutex.is_owned_by(SECOND));
                assert!(!mutex.can_lock(sched, SECOND));
                assert_eq!(mutex.take(sched, SECOND, Patience::None), (Outcome::Failed, libc::EBUSY));
            }
        });
    }

    /// The mutex of a thread that has ended: a robust one is inherited and has to be made consistent, others are lost.
    #[test]
    fn orphans() {
        with_threads(3, Plan::default(), |sched| {
            let [robust, plain] = [Mutex::ROBUST, 0].map(mutex);
            for mutex in [&robust, &plain] {
                mutex.take(sched, FIRST, Patience::Endless);
            }
            sched.threads[FIRST].done = true;
            assert!(robust.can_lock(sched, SECOND) && !plain.can_lock(sched, SECOND));
            assert_eq!(robust.take(sched, SECOND, Patience::Endless), (Outcome::Done, libc::EOWNERDEAD));
            assert!(robust.is_inconsistent());
            assert_eq!([make_consistent(&robust), make_consistent(&robust)], [0, libc::EINVAL]);
            robust.set_free();
            robust.owner.set(Mutex::LOST);
            assert_eq!(robust.owner(), None);
            assert_eq!(
                robust.take(sched, SECOND, Patience::Endless),
                (Outcome::Error, libc::ENOTRECOVERABLE)
            );
        });
    }
}
