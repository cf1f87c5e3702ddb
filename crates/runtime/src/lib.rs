//! The library that stands in for ThreadSanitizer's inside a tested program.
//!
//! A program compiled with `-fsanitize=thread` calls `__tsan_*` functions at its memory accesses, and the
//! functions of libpthread for the rest. This library provides both under their usual names. Loaded as
//! `libtsan.so.2` it comes before libc, so the program needs no change and no relinking.
//!
//! *Inactive*, which is what it is unless the tool started the program, every function forwards to libc or
//! returns at once. *Active*, it runs the program's threads one at a time on a single OS thread, the carrier,
//! in the order a plan gives, and writes down what they do:
//!
//! | directory | holds |
//! |---|---|
//! | `entry` | the boundary: interposed names, the fork server, the shared file, the start and end of the process |
//! | `hooks` | memory accesses and calls that the compiler's instrumentation and libc's memory functions report |
//! | `sync` | primitives that threads synchronise with, and threads themselves |
//! | `os` | descriptors, files, processes, randomness: the kernel's services, made the same in every run |
//! | `time` | virtual time: clocks, sleeping, timers |
//! | `signals` | signals between threads, and signals that a program dies of |
//! | `schedule` | who runs, who waits and for what, how a plan is followed |
//! | `memory` | the program's heap, the runtime's own memory, which bytes are tracked, which are shared |
//!
//! It lives in somebody else's process, so it uses nothing the program might be in the middle of: its heap is
//! its own, it takes no lock, and while active it calls libc only for what has no effect on the program.
//! The memory model is sequential consistency: each operation happens at once and for everybody.

mod entry;
mod hooks;
mod memory;
mod os;
mod schedule;
mod signals;
mod sync;
mod time;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_trace::hash;
use threadbare_wire as wire;

use crate::entry::{imports, log, modules, process};
use crate::hooks::accesses::{LOOK, WATCH};
use crate::memory::{arena, heap, shadow};
use crate::os::{dispatch, exec, instructions};
use crate::schedule::scheduler;
use crate::signals::handlers;

/// Set once, before any code of the program runs.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// The tool started this program, and the runtime controls it.
#[inline]
pub(crate) fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = initialise;

/// Runs when the library is loaded, before the constructors of whatever depends on it.
#[cfg_attr(test, allow(dead_code))]
extern "C" fn initialise(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    const NAME: &CStr = c"THREADBARE_RUN";
    const PRELOAD: &CStr = c"THREADBARE_PRELOAD";
    imports::bind();
    debug_assert_eq!(NAME.to_bytes(), wire::ENVIRONMENT.as_bytes());
    debug_assert_eq!(PRELOAD.to_bytes(), wire::PRELOAD.as_bytes());
    // SAFETY: the environment is not changed by anybody else this early. What was set for this library alone
    // is taken back, for the program and for its children.
    let preload = unsafe {
        if libc::getenv(NAME.as_ptr()).is_null() {
            return;
        }
        let preload = libc::getenv(c"LD_PRELOAD".as_ptr());
        libc::unsetenv(NAME.as_ptr());
        let users = libc::getenv(PRELOAD.as_ptr());
        if users.is_null() || *users == 0 {
            libc::unsetenv(c"LD_PRELOAD".as_ptr());
        } else {
            put_back(libc::getenv(c"LD_PRELOAD".as_ptr()), users);
        }
        libc::unsetenv(PRELOAD.as_ptr());
        // What was there stays in memory, though it is no longer in the list.
        if preload.is_null() { c"" } else { CStr::from_ptr(preload) }
    };
    let problem = match log::open() {
        Err(problem) => problem,
        Ok(()) if !(arena::prepare() && heap::prepare() && shadow::prepare() && scheduler::start()) => {
            "cannot reserve address space (is there a limit on virtual memory, such as ulimit -v?)"
        }
        Ok(()) => {
            std::panic::set_hook(Box::new(process::internal_error));
            modules::find();
            exec::remember(preload);
            handlers::catch();
            dispatch::watch();
            instructions::watch();
            ACTIVE.store(true, Ordering::Relaxed);
            WATCH.store(LOOK, Ordering::Relaxed);
            return;
        }
    };
    process::die(&["threadbare: ", problem, "\n"]);
}

/// Puts the user's value of a variable in the place of the tool's, which has the user's at its end. `setenv` would
/// allocate memory, and a program's own `malloc` may not be ready for that.
///
/// # Safety
/// Both are strings, or null. Nobody else uses the first.
unsafe fn put_back(tools: *mut c_char, users: *const c_char) {
    if tools.is_null() {
        return;
    }
    // SAFETY: the caller's promise. What is written is no longer than what was there.
    unsafe {
        let (room, users) = (CStr::from_ptr(tools).count_bytes(), CStr::from_ptr(users).to_bytes_with_nul());
        if users.len() <= room {
            std::ptr::copy(users.as_ptr().cast(), tools, users.len());
        }
    }
}
