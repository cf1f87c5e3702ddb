//! Who the program is: process and thread ids that are the same in every run.

use crate::active;
use crate::real::real;
use crate::scheduler;

/// What `getpid` says, and `gettid` in the main thread; other threads follow.
const PROCESS: libc::pid_t = 30_000;

/// The running thread's id.
pub fn thread_id() -> libc::pid_t {
    PROCESS + scheduler::get().current as libc::pid_t
}

pub fn process_id() -> libc::pid_t {
    PROCESS
}

#[unsafe(no_mangle)]
extern "C" fn getpid() -> libc::pid_t {
    if active() { process_id() } else { real!(getpid() -> libc::pid_t) }
}

#[unsafe(no_mangle)]
extern "C" fn gettid() -> libc::pid_t {
    if active() { thread_id() } else { real!(gettid() -> libc::pid_t) }
}
