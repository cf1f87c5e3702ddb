//! What `Mutex` and `RwLock` have in common.
//!
//! These are macros and not a generic type, because users see the names of the types in messages.

/// The methods that do not lock, for a lock with the fields `poison` and `data`.
macro_rules! unlocked_methods {
    ($lock:ident) => {
        impl<T> $lock<T> {
            pub fn into_inner(self) -> LockResult<T> {
                self.poison.wrap(self.data.into_inner())
            }
        }

        impl<T: ?Sized> $lock<T> {
            pub fn is_poisoned(&self) -> bool {
                self.poison.get()
            }

            pub fn clear_poison(&self) {
                self.poison.clear();
            }

            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                self.poison.wrap(self.data.get_mut())
            }
        }

        impl<T: ?Sized> UnwindSafe for $lock<T> {}
        impl<T: ?Sized> RefUnwindSafe for $lock<T> {}

        impl<T: Default> Default for $lock<T> {
            fn default() -> $lock<T> {
                $lock::new(T::default())
            }
        }

        impl<T> From<T> for $lock<T> {
            fn from(data: T) -> $lock<T> {
                $lock::new(data)
            }
        }
    };
}

/// Access to the data through a guard with the field `lock`, whose thread alone has the lock.
macro_rules! exclusive_access {
    ($guard:ident) => {
        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            #[inline(always)]
            fn deref(&self) -> &T {
                // SAFETY: the guard exists while its thread has the lock.
                unsafe { &*self.lock.data.get() }
            }
        }

        impl<T: ?Sized> DerefMut for $guard<'_, T> {
            #[inline(always)]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: the guard exists while its thread has the lock, and no other thread has it.
                unsafe { &mut *self.lock.data.get() }
            }
        }
    };
}

/// Prints a guard as its data.
macro_rules! shown_as_data {
    ($($guard:ident),+) => { $(
        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )+ };
}

pub(super) use {exclusive_access, shown_as_data, unlocked_methods};
