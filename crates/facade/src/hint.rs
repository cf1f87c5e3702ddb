//! `std::hint`.

pub use std::hint::*;

/// A thread that spins waits for another one: it gives way, which ends its turn under the runtime.
#[inline(always)]
pub fn spin_loop() {
    // SAFETY: takes nothing and cannot fail.
    unsafe { crate::raw::sched_yield() };
}
