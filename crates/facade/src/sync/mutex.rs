//! `std::sync::Mutex`.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, TryLockError, TryLockResult};

use super::lock::{exclusive_access, shown_as_data, unlocked_methods};
use super::poisoning::{self, Flag, Held};
use crate::raw;

pub struct Mutex<T: ?Sized> {
    raw: raw::Shared<raw::Mutex>,
    poison: Flag,
    data: UnsafeCell<T>,
}

// SAFETY: the data goes with the mutex, and is only reached by the thread that holds the lock.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
unlocked_methods!(Mutex);

#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    lock: &'a Mutex<T>,
    held: Held,
    /// The thread that took a lock releases it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives out nothing but shared references to the data.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    #[inline(always)]
    pub const fn new(data: T) -> Mutex<T> {
        Mutex { raw: raw::Shared::<raw::Mutex>::new(), poison: Flag::new(), data: UnsafeCell::new(data) }
    }
}

impl<T: ?Sized> Mutex<T> {
    #[inline(always)]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        // SAFETY: a mutex that lives as long as `self`.
        unsafe { raw::pthread_mutex_lock(self.raw.get()) };
        self.guard()
    }

    #[inline(always)]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        // SAFETY: as in `lock`.
        match unsafe { raw::pthread_mutex_trylock(self.raw.get()) } {
            0 => Ok(self.guard()?),
            _ => Err(TryLockError::WouldBlock),
        }
    }

    /// The guard of a thread that has just taken the lock.
    #[inline(always)]
    fn guard(&self) -> LockResult<MutexGuard<'_, T>> {
        let held = self.poison.take();
        self.poison.wrap(MutexGuard { lock: self, held, not_send: PhantomData })
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex itself, for a condition to wait with.
    #[inline(always)]
    pub(super) fn raw(&self) -> *mut raw::Mutex {
        self.lock.raw.get()
    }

    /// The result of a condition wait. Another thread may have poisoned the lock meanwhile.
    #[inline(always)]
    pub(super) fn again(self) -> LockResult<MutexGuard<'a, T>> {
        self.lock.poison.wrap(self)
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.poison.give_back(&self.held);
        // SAFETY: this thread holds the lock.
        unsafe { raw::pthread_mutex_unlock(self.raw()) };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |out: &mut fmt::DebugStruct<'_, '_>, guard: &MutexGuard<'_, T>| {
            out.field("data", &&**guard);
        };
        // Toolchains differ in whether they put the words in quotes.
        let real = std::sync::Mutex::new(());
        let _taken = real.lock();
        let words = if format!("{real:?}").contains('"') { "\"<locked>\"" } else { "<locked>" };
        poisoning::debug(
            f.debug_struct("Mutex"),
            self.try_lock(),
            &format_args!("{words}"),
            self.is_poisoned(),
            show,
        )
    }
}

exclusive_access!(MutexGuard);
shown_as_data!(MutexGuard);
