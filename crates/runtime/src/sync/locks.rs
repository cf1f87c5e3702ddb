//! Mutexes, spin locks and read-write locks.

use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::{is_left_alone, users_call};
use crate::entry::real::real;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, point};
use crate::schedule::wait::{Mutex, RwLock, Wait, spin_lock};
use crate::time::clock;
use crate::time::clock::Clock;

type MutexPointer = *mut libc::pthread_mutex_t;
type RwLockPointer = *mut libc::pthread_rwlock_t;
type Spin = *mut c_int;
type Until = *const libc::timespec;

intercept! {
    pthread_mutex_lock/1 => mutex_lock;
    pthread_mutex_trylock/1 => mutex_try_lock;
    pthread_mutex_timedlock/2 => mutex_timed_lock;
    pthread_mutex_clocklock/3 => mutex_clock_lock;
    pthread_mutex_unlock/1 => mutex_unlock;
    pthread_mutex_consistent/1 => mutex_consistent;
    pthread_spin_lock/1 => spin_lock_;
    pthread_spin_trylock/1 => spin_try_lock;
    pthread_spin_unlock/1 => spin_unlock;
    pthread_rwlock_rdlock/1 => read_lock;
    pthread_rwlock_tryrdlock/1 => read_try_lock;
    pthread_rwlock_timedrdlock/2 => read_timed_lock;
    pthread_rwlock_clockrdlock/3 => read_clock_lock;
    pthread_rwlock_wrlock/1 => write_lock;
    pthread_rwlock_trywrlock/1 => write_try_lock;
    pthread_rwlock_timedwrlock/2 => write_timed_lock;
    pthread_rwlock_clockwrlock/3 => write_clock_lock;
    pthread_rwlock_unlock/1 => rwlock_unlock;
}

/// How long a lock operation is ready to wait.
#[derive(Clone, Copy)]
enum Patience {
    Endless,
    None,
    Until(Option<u64>),
}

impl Patience {
    /// Comes before a lock operation; `true` if it timed out.
    fn point(self, kind: EventKind, pc: u64, address: u64, wait: Wait) -> bool {
        let operation = Operation::new(kind, pc, address);
        point(match self {
            Patience::Endless => operation.waiting(wait),
            Patience::None => operation,
            Patience::Until(deadline) => operation.waiting(wait).until(deadline),
        })
    }
}

fn me() -> usize {
    scheduler::get().current
}

/// Locks a mutex as its kind says.
fn lock(address: u64, patience: Patience, pc: u64) -> c_int {
    let pc = users_call(pc);
    let timed_out = patience.point(EventKind::Lock, pc, address, Wait::Mutex(address));
    let (outcome, error) =
        if timed_out { (Outcome::TimedOut, libc::ETIMEDOUT) } else { take(address, patience) };
    Entry::new(EventKind::Lock, pc, address).outcome(outcome).write();
    error
}

fn take(address: u64, patience: Patience) -> (Outcome, c_int) {
    let (mutex, me) = (Mutex::at(address), me());
    match mutex.kind() {
        _ if mutex.is_robust() && mutex.owner == Mutex::LOST => (Outcome::Error, libc::ENOTRECOVERABLE),
        _ if mutex.is_orphan(scheduler::get()) => {
            mutex.take(me);
            mutex.count = Mutex::INCONSISTENT;
            (Outcome::Done, libc::EOWNERDEAD)
        }
        _ if mutex.lock == 0 => {
            mutex.take(me);
            (Outcome::Done, 0)
        }
        Mutex::RECURSIVE if mutex.is_owned_by(me) => {
            mutex.count += 1;
            (Outcome::Done, 0)
        }
        Mutex::ERROR_CHECK if mutex.is_owned_by(me) && !matches!(patience, Patience::None) => {
            (Outcome::Error, libc::EDEADLK)
        }
        _ => (Outcome::Failed, libc::EBUSY),
    }
}

fn unlock(address: u64, pc: u64) -> c_int {
    let pc = users_call(pc);
    point(Operation::new(EventKind::Unlock, pc, address));
    let mutex = Mutex::at(address);
    let checked = matches!(mutex.kind(), Mutex::RECURSIVE | Mutex::ERROR_CHECK);
    if checked && !mutex.is_owned_by(me()) {
        Entry::new(EventKind::Unlock, pc, address).outcome(Outcome::Error).write();
        return libc::EPERM;
    }
    Entry::new(EventKind::Unlock, pc, address).write();
    release(address);
    0
}

/// Gives up one hold of a mutex.
pub fn release(address: u64) {
    let mutex = Mutex::at(address);
    if mutex.is_robust() && mutex.count & Mutex::INCONSISTENT != 0 {
        mutex.count = 0;
        mutex.release();
        mutex.owner = Mutex::LOST;
        return scheduler::get().released(address);
    }
    if mutex.kind() == Mutex::RECURSIVE && mutex.count > 0 {
        mutex.count -= 1;
        return;
    }
    mutex.release();
    scheduler::get().released(address);
}

pub extern "C" fn mutex_lock(mutex: MutexPointer, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(pthread_mutex_lock(mutex => MutexPointer) -> c_int);
    }
    lock(mutex as u64, Patience::Endless, pc)
}

pub extern "C" fn mutex_try_lock(mutex: MutexPointer, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(pthread_mutex_trylock(mutex => MutexPointer) -> c_int);
    }
    lock(mutex as u64, Patience::None, pc)
}

pub extern "C" fn mutex_timed_lock(mutex: MutexPointer, until: Until, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(pthread_mutex_timedlock(mutex => MutexPointer, until => Until) -> c_int);
    }
    lock(mutex as u64, Patience::Until(clock::deadline(until)), pc)
}

extern "C" fn mutex_clock_lock(mutex: MutexPointer, clock: Clock, until: Until, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(pthread_mutex_clocklock(mutex => MutexPointer, clock => Clock, until => Until) -> c_int);
    }
    lock(mutex as u64, Patience::Until(clock::deadline(until)), pc)
}

pub extern "C" fn mutex_unlock(mutex: MutexPointer, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(pthread_mutex_unlock(mutex => MutexPointer) -> c_int);
    }
    unlock(mutex as u64, pc)
}

extern "C" fn mutex_consistent(mutex: MutexPointer, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(pthread_mutex_consistent(mutex => MutexPointer) -> c_int);
    }
    let mutex = Mutex::at(mutex as u64);
    if !mutex.is_robust() || mutex.count & Mutex::INCONSISTENT == 0 {
        return libc::EINVAL;
    }
    mutex.count &= !Mutex::INCONSISTENT;
    0
}

fn lock_spin(address: u64, patience: Patience, pc: u64) -> c_int {
    let pc = users_call(pc);
    patience.point(EventKind::Lock, pc, address, Wait::SpinLock(address));
    let free = *spin_lock(address) > 0;
    if free {
        *spin_lock(address) = 0;
    }
    let outcome = if free { Outcome::Done } else { Outcome::Failed };
    Entry::new(EventKind::Lock, pc, address).outcome(outcome).write();
    if free { 0 } else { libc::EBUSY }
}

extern "C" fn spin_lock_(spin: Spin, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_spin_lock(spin => Spin) -> c_int);
    }
    lock_spin(spin as u64, Patience::Endless, pc)
}

extern "C" fn spin_try_lock(spin: Spin, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_spin_trylock(spin => Spin) -> c_int);
    }
    lock_spin(spin as u64, Patience::None, pc)
}

extern "C" fn spin_unlock(spin: Spin, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_spin_unlock(spin => Spin) -> c_int);
    }
    let (address, pc) = (spin as u64, users_call(pc));
    point(Operation::new(EventKind::Unlock, pc, address));
    Entry::new(EventKind::Unlock, pc, address).write();
    *spin_lock(address) = 1;
    scheduler::get().released(address);
    0
}

fn lock_shared(address: u64, patience: Patience, pc: u64) -> c_int {
    let pc = users_call(pc);
    if RwLock::at(address).writer == me() as u32 + 1 && !matches!(patience, Patience::None) {
        return libc::EDEADLK;
    }
    let timed_out = patience.point(EventKind::ReadLock, pc, address, Wait::ReadLock(address));
    let lock = RwLock::at(address);
    let (outcome, error) = match (timed_out, lock.can_read(scheduler::get())) {
        (true, _) => (Outcome::TimedOut, libc::ETIMEDOUT),
        (false, true) => {
            lock.readers += 1;
            scheduler::get().threads[me()].read_locks.push(address);
            (Outcome::Done, 0)
        }
        _ => (Outcome::Failed, libc::EBUSY),
    };
    Entry::new(EventKind::ReadLock, pc, address).outcome(outcome).write();
    error
}

fn lock_exclusive(address: u64, patience: Patience, pc: u64) -> c_int {
    let pc = users_call(pc);
    if RwLock::at(address).writer == me() as u32 + 1 && !matches!(patience, Patience::None) {
        return libc::EDEADLK;
    }
    // A writer that begins to wait changes what readers may do: that is an event of its own.
    if RwLock::at(address).prefers_writers() && !matches!(patience, Patience::None) {
        Patience::None.point(EventKind::Lock, pc, address, Wait::Nothing);
        if take_exclusive(address, pc, false) == 0 {
            return 0;
        }
    }
    let timed_out = patience.point(EventKind::Lock, pc, address, Wait::WriteLock(address));
    take_exclusive(address, pc, timed_out)
}

/// Takes a read-write lock for writing if it is free, unless the time for that is over.
fn take_exclusive(address: u64, pc: u64, timed_out: bool) -> c_int {
    let lock = RwLock::at(address);
    let (outcome, error) = match (timed_out, lock.writer, lock.readers) {
        (true, ..) => (Outcome::TimedOut, libc::ETIMEDOUT),
        (false, 0, 0) => {
            lock.writer = me() as u32 + 1;
            (Outcome::Done, 0)
        }
        _ => (Outcome::Failed, libc::EBUSY),
    };
    Entry::new(EventKind::Lock, pc, address).outcome(outcome).write();
    // Readers may have waited behind this one.
    if timed_out {
        scheduler::get().released(address);
    }
    error
}

macro_rules! rwlock_functions {
    ($($function:ident => $real:ident, $lock:ident, ($($arg:ident: $ty:ty),*), $patience:expr;)+) => { $(
        extern "C" fn $function(lock: RwLockPointer, $($arg: $ty,)* pc: u64) -> c_int {
            if !active() {
                return real!($real(lock => RwLockPointer, $($arg => $ty),*) -> c_int);
            }
            $lock(lock as u64, $patience, pc)
        }
    )+ };
}

rwlock_functions! {
    read_lock => pthread_rwlock_rdlock, lock_shared, (), Patience::Endless;
    read_try_lock => pthread_rwlock_tryrdlock, lock_shared, (), Patience::None;
    read_timed_lock => pthread_rwlock_timedrdlock, lock_shared, (until: Until),
        Patience::Until(clock::deadline(until));
    write_lock => pthread_rwlock_wrlock, lock_exclusive, (), Patience::Endless;
    write_try_lock => pthread_rwlock_trywrlock, lock_exclusive, (), Patience::None;
    write_timed_lock => pthread_rwlock_timedwrlock, lock_exclusive, (until: Until),
        Patience::Until(clock::deadline(until));
}

extern "C" fn read_clock_lock(lock: RwLockPointer, clock: Clock, until: Until, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_rwlock_clockrdlock(lock => RwLockPointer, clock => Clock, until => Until) -> c_int);
    }
    lock_shared(lock as u64, Patience::Until(clock::deadline(until)), pc)
}

extern "C" fn write_clock_lock(lock: RwLockPointer, clock: Clock, until: Until, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_rwlock_clockwrlock(lock => RwLockPointer, clock => Clock, until => Until) -> c_int);
    }
    lock_exclusive(lock as u64, Patience::Until(clock::deadline(until)), pc)
}

extern "C" fn rwlock_unlock(lock: RwLockPointer, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_rwlock_unlock(lock => RwLockPointer) -> c_int);
    }
    let (address, pc) = (lock as u64, users_call(pc));
    let reading = RwLock::at(address).writer == 0;
    let kind = if reading { EventKind::ReadUnlock } else { EventKind::Unlock };
    point(Operation::new(kind, pc, address));
    Entry::new(kind, pc, address).write();
    let lock = RwLock::at(address);
    if reading {
        lock.readers = lock.readers.saturating_sub(1);
        let held = &mut scheduler::get().threads[me()].read_locks;
        if let Some(position) = held.iter().rposition(|&held| held == address) {
            held.remove(position);
        }
    } else {
        lock.writer = 0;
    }
    scheduler::get().released(address);
    0
}
