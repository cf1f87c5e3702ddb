//! State that belongs to the carrier, the one OS thread that runs every logical thread.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::cell::UnsafeCell;

/// A static that only the carrier touches.
///
/// A value is copied in and out ([`get`](Carrier::get), [`set`](Carrier::set)), or borrowed for as long as a closure
/// runs ([`with`](Carrier::with)). The closure must not come back to the same static, directly or through the
/// program's code. Builds with debug assertions check that and panic; the library that is shipped pays nothing for it.
/// CI runs the tests of `threadbare-executor` with a library that checks, which
/// `CARGO_PROFILE_RUNTIME_DEBUG_ASSERTIONS=true` builds.
///
/// A handler of a signal may interrupt a closure. So it touches no such static, unless the signal comes of what the
/// program does at that moment; no closure touches the program's memory, except those to which the scheduler is lent,
/// and these a handler knows (`scheduler::is_lent`).
#[repr(C)]
pub struct Carrier<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    borrowed: Cell<bool>,
}

// SAFETY: no two OS threads come here at once. While the runtime is active there is one that runs code: `context`
// parks every other in a loop of its own assembly. While it is inactive, `intercept!` leaves calls to libc.
unsafe impl<T> Sync for Carrier<T> {}

impl<T> Carrier<T> {
    pub const fn new(value: T) -> Carrier<T> {
        Carrier {
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            borrowed: Cell::new(false),
        }
    }

    /// Lends the value to `work`, which must not come back to this static.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(debug_assertions)]
        let _lent = self.lend();
        // SAFETY: there is one carrier, and no other borrow: `work` keeps to the rule above, which debug builds check.
        work(unsafe { &mut *self.value.get() })
    }

    #[cfg(debug_assertions)]
    fn lend(&self) -> impl Drop {
        struct Lent<'a>(&'a Cell<bool>);
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        assert!(!self.borrowed.replace(true), "a static of the carrier is borrowed twice");
        Lent(&self.borrowed)
    }
}

impl<T: Copy> Carrier<T> {
    #[inline(always)]
    pub fn get(&self) -> T {
        #[cfg(debug_assertions)]
        assert!(!self.borrowed.get(), "a static of the carrier is read while it is borrowed");
        // SAFETY: there is one carrier, and nobody has borrowed the value: debug builds check that.
        unsafe { *self.value.get() }
    }

    #[inline(always)]
    pub fn set(&self, new: T) {
        self.with(|value| *value = new);
    }

    /// Sets it; returns what it was.
    #[inline(always)]
    pub fn replace(&self, new: T) -> T {
        self.with(|value| std::mem::replace(value, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A borrow inside a borrow would be two mutable references to one value.
    #[test]
    #[should_panic(expected = "a static of the carrier is borrowed twice")]
    fn a_nested_borrow_is_noticed() {
        let carrier = Carrier::new(1);
        carrier.with(|_| carrier.set(2));
    }

    /// A value that is read while it is borrowed may be half changed.
    #[test]
    #[should_panic(expected = "a static of the carrier is read while it is borrowed")]
    fn a_read_inside_a_borrow_is_noticed() {
        let carrier = Carrier::new(1);
        carrier.with(|value| *value += carrier.get());
    }

    /// A closure that has returned must not keep others out.
    #[test]
    fn borrows_follow_one_another() {
        let carrier = Carrier::new(vec![1]);
        carrier.with(|value| value.push(2));
        assert_eq!(carrier.with(|value| value.len()), 2);
    }
}
