//! State that belongs to the carrier, the one OS thread that runs every logical thread.

use std::cell::UnsafeCell;

/// A static that only the carrier touches.
///
/// While the runtime is active there is exactly one OS thread that runs code (parked threads never leave the
/// assembly of `context::park`), so nothing here is ever accessed by two threads at once. The price is a rule
/// the compiler cannot check: a reference from [`Carrier::get`] must not be used across a context switch or a
/// call into user code, because the code that runs meanwhile takes its own.
pub struct Carrier<T>(UnsafeCell<T>);

// SAFETY: see above; the carrier is one thread.
unsafe impl<T> Sync for Carrier<T> {}

impl<T> Carrier<T> {
    pub const fn new(value: T) -> Carrier<T> {
        Carrier(UnsafeCell::new(value))
    }

    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: one carrier, and no reference lives across a switch, which every caller keeps to.
        unsafe { &mut *self.0.get() }
    }
}
