//! Panics of Rust programs.
//!
//! The facade tells of each panic before any hook prints it. Whether the panic is a failure is known only at the end:
//! it may be caught, or expected by a test. It is one if the process ends with [`EXIT_CODE`], or if it aborts in the
//! function that panicked. The latter happens with `panic = "abort"`, or where a panic must not unwind.

use std::ffi::{c_int, c_void};

use threadbare_trace::{End, EventKind, Failure, FailureKind};
use threadbare_wire::CodePlace;

use crate::active;
use crate::entry::intercept::export;
use crate::entry::log::Entry;
use crate::entry::modules::{self, _Unwind_Backtrace, _Unwind_GetCFA, _Unwind_GetIP, UnwindContext};
use crate::hooks::calls;
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::{finish, here};
use crate::schedule::scheduler;

/// What `std` and the test harness exit with after a panic.
pub const EXIT_CODE: c_int = 101;

struct Panic {
    at: CodePlace,
    /// The stack pointer of the innermost instrumented function.
    frame: u64,
    message: String,
}

/// In the order they happened.
static PANICS: Carrier<Vec<Panic>> = Carrier::new(Vec::new());

export! {
    /// The facade tells of a panic. There is no such function in libc.
    unsafe extern "C" fn __threadbare_panic(message: *const u8, length: usize) {
        if active() {
            // SAFETY: the facade passes a text of this length, which it keeps until this returns.
            panics(unsafe { std::slice::from_raw_parts(message, length) });
        }
    }
}

/// The running thread panics.
fn panics(message: &[u8]) {
    let at = here(innermost_instrumented_call());
    if scheduler::is_running() {
        Entry::new(EventKind::Failure, at.pc, 0).write();
    }
    let frame = calls::innermost_stack_pointer();
    let message = String::from_utf8_lossy(message).into_owned();
    PANICS.with(|panics| panics.push(Panic { at, frame, message }));
}

/// The call by which the innermost instrumented function has left instrumented code. That is the line that panics;
/// further out are calls that only carry the panic on.
pub fn innermost_instrumented_call() -> u64 {
    extern "C" fn visit(context: *mut UnwindContext, search: *mut c_void) -> c_int {
        // SAFETY: the unwinder's context, and the pair passed below.
        unsafe {
            let search = &mut *search.cast::<(u64, u64)>();
            let pc = _Unwind_GetIP(context) as u64;
            // What the unwinder calls this is the stack pointer of the frame at its call. A handler of a signal may be on
            // a stack that lies above.
            if (_Unwind_GetCFA(context) as u64) < search.0 || modules::is_ours(pc) || modules::is_system(pc) {
                return 0;
            }
            search.1 = pc;
        }
        // Stops the walk.
        4
    }
    let mut search = (calls::innermost_stack_pointer(), 0u64);
    // SAFETY: the unwinder walks the running thread's own stack, and `visit` keeps to the types that it is called with.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.1
}

/// The process exits with `code`: if that is because of a panic, the run ends with it.
pub fn exits(code: c_int) {
    if code == EXIT_CODE {
        finish_with_cause();
    }
}

/// The process aborts: if the panic of its thread was never left, the run ends with that.
pub fn aborts() {
    let current = scheduler::current();
    let frame = calls::innermost_stack_pointer();
    let is_in_it = |panic: &Panic| panic.at.thread == current && panic.frame == frame;
    if PANICS.with(|panics| panics.last().is_some_and(is_in_it)) {
        finish_with_cause();
    }
}

fn finish_with_cause() {
    let cause = PANICS.with(|panics| {
        // The last one ended the process, but it may only pass on what it heard from another thread.
        let cause = panics.iter().rev().find(|panic| !passes_on(&panic.message)).or(panics.last());
        cause.map(|Panic { at, message, .. }| Failure::new(FailureKind::Panic, message, *at))
    });
    if let Some(failure) = cause {
        finish(&End::Failed(failure));
    }
}

/// The panic follows from another one: of `join().unwrap()`, of a scope, of `lock().unwrap()` on a poisoned lock, or of
/// code that must not unwind.
fn passes_on(message: &str) -> bool {
    message.ends_with("Any { .. }")
        || message == "a scoped thread panicked"
        || message.contains("PoisonError { .. }")
        || message == "panic in a function that cannot unwind"
        || message == "panic in a destructor during cleanup"
}
