//! `std::sync::RwLock`.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, TryLockError, TryLockResult};

use super::lock::{exclusive_access, shown_as_data, unlocked_methods};
use super::poisoning::{self, Flag, Held};
use crate::raw;

pub struct RwLock<T: ?Sized> {
    raw: raw::Shared<raw::RwLock>,
    downgrading: Downgrading,
    poison: Flag,
    data: UnsafeCell<T>,
}

/// Whether a writer is becoming a reader. POSIX has no such operation, so the writer releases the lock and takes it
/// again. Another writer that gets the lock in between releases it at once.
struct Downgrading(AtomicBool);

impl Downgrading {
    #[inline(never)]
    fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    #[inline(never)]
    fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }
}

// SAFETY: the data goes with the lock, and is only reached by threads that hold it.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above; readers share the data.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
unlocked_methods!(RwLock);

#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    /// Not the whole lock: a guard is covariant in its data.
    data: NonNull<T>,
    raw: &'a raw::Shared<raw::RwLock>,
}

// SAFETY: a shared guard gives out nothing but shared references to the data.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}

#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    lock: &'a RwLock<T>,
    held: Held,
    /// The thread that took a lock releases it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: as for readers.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    #[inline(always)]
    pub const fn new(data: T) -> RwLock<T> {
        RwLock {
            raw: raw::Shared::<raw::RwLock>::new(),
            downgrading: Downgrading(AtomicBool::new(false)),
            poison: Flag::new(),
            data: UnsafeCell::new(data),
        }
    }
}

/// Panics if libc refused the lock, as `std` may. libc refuses it to a thread that holds it already.
#[inline(always)]
fn demand(answer: c_int) {
    if answer != 0 {
        refused();
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refused() -> ! {
    panic!("this thread holds the read-write lock already, and would wait for itself");
}

impl<T: ?Sized> RwLock<T> {
    #[inline(always)]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        // SAFETY: a lock that lives as long as `self`.
        demand(unsafe { raw::pthread_rwlock_rdlock(self.raw.get()) });
        self.read_guard()
    }

    #[inline(always)]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        // SAFETY: as in `read`.
        match unsafe { raw::pthread_rwlock_tryrdlock(self.raw.get()) } {
            0 => Ok(self.read_guard()?),
            _ => Err(TryLockError::WouldBlock),
        }
    }

    #[inline(always)]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        loop {
            // SAFETY: as in `read`.
            demand(unsafe { raw::pthread_rwlock_wrlock(self.raw.get()) });
            if !self.downgrading.get() {
                return self.write_guard();
            }
            // SAFETY: this thread has just taken it.
            unsafe { raw::pthread_rwlock_unlock(self.raw.get()) };
            crate::hint::spin_loop();
        }
    }

    #[inline(always)]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        // SAFETY: as in `read`.
        if unsafe { raw::pthread_rwlock_trywrlock(self.raw.get()) } != 0 {
            return Err(TryLockError::WouldBlock);
        }
        if self.downgrading.get() {
            // SAFETY: this thread has just taken it.
            unsafe { raw::pthread_rwlock_unlock(self.raw.get()) };
            return Err(TryLockError::WouldBlock);
        }
        Ok(self.write_guard()?)
    }

    /// The guard of a thread that has just taken the lock for reading.
    #[inline(always)]
    fn read_guard(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        // SAFETY: the address of a field.
        let data = unsafe { NonNull::new_unchecked(self.data.get()) };
        self.poison.wrap(RwLockReadGuard { data, raw: &self.raw })
    }

    /// The guard of a thread that has just taken the lock for writing.
    #[inline(always)]
    fn write_guard(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = self.poison.take();
        self.poison.wrap(RwLockWriteGuard { lock: self, held, not_send: PhantomData })
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    #[inline(always)]
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let lock = guard.lock;
        lock.downgrading.set(true);
        drop(guard);
        // SAFETY: a lock that lives as long as the guard's borrow of it. No writer keeps it for long.
        demand(unsafe { raw::pthread_rwlock_rdlock(lock.raw.get()) });
        lock.downgrading.set(false);
        // SAFETY: the address of a field.
        RwLockReadGuard { data: unsafe { NonNull::new_unchecked(lock.data.get()) }, raw: &lock.raw }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: whoever has the guard has the lock, and nobody writes.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock.
        unsafe { raw::pthread_rwlock_unlock(self.raw.get()) };
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.poison.give_back(&self.held);
        // SAFETY: this thread holds the lock.
        unsafe { raw::pthread_rwlock_unlock(self.lock.raw.get()) };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |out: &mut fmt::DebugStruct<'_, '_>, guard: &RwLockReadGuard<'_, T>| {
            out.field("data", &&**guard);
        };
        let locked = format_args!("<locked>");
        poisoning::debug(f.debug_struct("RwLock"), self.try_read(), &locked, self.is_poisoned(), show)
    }
}

exclusive_access!(RwLockWriteGuard);
shown_as_data!(RwLockReadGuard, RwLockWriteGuard);
