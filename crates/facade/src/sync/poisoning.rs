//! Whether a panic happened while a lock was held.
//!
//! Almost nothing here is generic or inlined, so that it makes no events.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, PoisonError, TryLockError};

pub struct Flag(AtomicBool);

/// What a guard knows from when its thread took the lock.
pub struct Held {
    /// The thread was panicking already, so it does not poison the lock.
    panicking: bool,
}

impl Flag {
    pub const fn new() -> Flag {
        Flag(AtomicBool::new(false))
    }

    #[inline(never)]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(never)]
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    #[inline(never)]
    pub fn take(&self) -> Held {
        Held { panicking: std::thread::panicking() }
    }

    /// Called before the lock is released.
    #[inline(never)]
    pub fn give_back(&self, held: &Held) {
        if !held.panicking && std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// What a lock operation returns: the guard, inside an error when the lock is poisoned.
    #[inline(always)]
    pub fn wrap<G>(&self, guard: G) -> LockResult<G> {
        if self.get() { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }
}

/// Writes the debugging output of a lock. `data` is what `try_lock` returned. `locked` is printed instead of the data
/// while another thread has the lock.
pub fn debug<G>(
    mut out: fmt::DebugStruct<'_, '_>,
    data: Result<G, TryLockError<G>>,
    locked: &dyn fmt::Debug,
    poisoned: bool,
    show: impl Fn(&mut fmt::DebugStruct<'_, '_>, &G),
) -> fmt::Result {
    match data {
        Ok(guard) => show(&mut out, &guard),
        Err(TryLockError::Poisoned(error)) => show(&mut out, error.get_ref()),
        Err(TryLockError::WouldBlock) => {
            out.field("data", locked);
        }
    }
    out.field("poisoned", &poisoned);
    out.finish_non_exhaustive()
}
