//! `pthread_cancel`.
//!
//! A request takes effect when its thread comes to a cancellation point, or waits at one. Of libc's many
//! cancellation points those that wait are the ones that matter; an asynchronous request takes effect at the
//! thread's next operation of any kind.

use std::ffi::{c_int, c_void};

use threadbare_trace::{EventKind, Outcome};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, Thread, point};
use crate::sync::threads;

/// A thread's part in it.
#[derive(Clone, Copy, Default)]
pub struct Cancellation {
    requested: bool,
    disabled: bool,
    asynchronous: bool,
}

impl Cancellation {
    /// The thread is to end at its next cancellation point.
    pub fn is_due(self) -> bool {
        self.requested && !self.disabled
    }
}

const CANCELED: *mut c_void = usize::MAX as *mut c_void;

intercept! {
    pthread_cancel/1 => cancel;
    pthread_testcancel/0 => test;
}

fn me() -> &'static mut Thread {
    let sched = scheduler::get();
    &mut sched.threads[sched.current]
}

extern "C" fn cancel(handle: libc::pthread_t, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_cancel(handle => libc::pthread_t) -> c_int);
    }
    let Some(target) = threads::find(handle) else { return libc::ESRCH };
    let pc = users_call(pc);
    point(Operation::new(EventKind::Cancel, pc, target as u64));
    Entry::new(EventKind::Cancel, pc, target as u64).value(target as u64).write();
    let sched = scheduler::get();
    sched.threads[target].cancellation.requested = true;
    sched.ready.insert(target);
    0
}

extern "C" fn test(_: u64) {
    if !active() {
        return real!(pthread_testcancel());
    }
    act();
}

/// A cancellation point that was waited at: if the thread is to end, the operation did not happen.
pub fn act_at(kind: EventKind, pc: u64, object: u64) {
    if me().cancellation.is_due() {
        Entry::new(kind, pc, object).outcome(Outcome::Error).write();
        act();
    }
}

/// A cancellation point: ends the thread if that is due.
pub fn act() {
    if me().cancellation.is_due() {
        me().cancellation.disabled = true;
        threads::exit_thread(CANCELED, 0);
    }
}

/// Comes before every operation.
pub fn act_asynchronously() {
    if me().cancellation.asynchronous {
        act();
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int {
    if !active() {
        return real!(pthread_setcancelstate(state => c_int, old => *mut c_int) -> c_int);
    }
    const DISABLE: c_int = 1;
    exchange(&mut me().cancellation.disabled, state == DISABLE, old)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
    if !active() {
        return real!(pthread_setcanceltype(kind => c_int, old => *mut c_int) -> c_int);
    }
    const ASYNCHRONOUS: c_int = 1;
    exchange(&mut me().cancellation.asynchronous, kind == ASYNCHRONOUS, old)
}

fn exchange(setting: &mut bool, new: bool, old: *mut c_int) -> c_int {
    let before = std::mem::replace(setting, new);
    if !old.is_null() {
        // SAFETY: the program's place for the old setting.
        unsafe { old.write(c_int::from(before)) };
    }
    0
}
