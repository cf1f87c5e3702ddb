//! `std::sync::Condvar`.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError};
use std::time::{Duration, Instant};

use super::mutex::MutexGuard;
use crate::raw;

pub struct Condvar {
    raw: raw::Shared<raw::Condition>,
}

impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}

#[derive(Debug, PartialEq, Eq, Copy, Clone)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    #[must_use]
    #[inline(always)]
    pub const fn new() -> Condvar {
        Condvar { raw: raw::Shared::<raw::Condition>::new() }
    }

    #[inline(always)]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        // SAFETY: a condition that lives as long as `self`, and a mutex that this thread holds.
        unsafe { raw::pthread_cond_wait(self.raw.get(), guard.raw()) };
        guard.again()
    }

    #[inline(always)]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    #[inline(always)]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let until = raw::after(duration);
        // SAFETY: as in `wait`; the time is a variable of ours.
        let result =
            unsafe { raw::pthread_cond_clockwait(self.raw.get(), guard.raw(), raw::MONOTONIC, &until) };
        let result = WaitTimeoutResult(result == raw::TIMED_OUT);
        match guard.again() {
            Ok(guard) => Ok((guard, result)),
            Err(error) => Err(PoisonError::new((error.into_inner(), result))),
        }
    }

    #[inline(always)]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let start = Instant::now();
        loop {
            if !condition(&mut *guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let Some(left) = duration.checked_sub(start.elapsed()) else {
                return Ok((guard, WaitTimeoutResult(true)));
            };
            guard = self.wait_timeout(guard, left)?.0;
        }
    }

    #[inline(always)]
    pub fn wait_timeout_ms<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        milliseconds: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        match self.wait_timeout(guard, Duration::from_millis(milliseconds.into())) {
            Ok((guard, result)) => Ok((guard, !result.timed_out())),
            Err(error) => {
                let (guard, result) = error.into_inner();
                Err(PoisonError::new((guard, !result.timed_out())))
            }
        }
    }

    #[inline(always)]
    pub fn notify_one(&self) {
        // SAFETY: a condition that lives as long as `self`.
        unsafe { raw::pthread_cond_signal(self.raw.get()) };
    }

    #[inline(always)]
    pub fn notify_all(&self) {
        // SAFETY: as in `notify_one`.
        unsafe { raw::pthread_cond_broadcast(self.raw.get()) };
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
