//! Whether a panic happened while a lock was held.
//!
//! Nothing here is generic or inlined: it is the lock's own business and makes no events.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, PoisonError, TryLockError};

pub struct Flag(AtomicBool);

/// Taken with the lock, given back with it.
pub struct Held {
    /// The thread was panicking already: what it does now poisons nothing.
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

    /// The lock is about to be given back.
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

/// The rest of a lock's debugging output: `data` as a try to take the lock gave it, and what is said in its place while
/// the lock is taken.
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
