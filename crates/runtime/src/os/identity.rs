//! Process and thread ids, which are the same in every run, and changes of the user.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::entry::intercept::intercept;
use crate::entry::log;
use crate::schedule::scheduler;

/// What `getpid` says, and `gettid` in the main thread; other threads follow.
const PROCESS: libc::pid_t = 1_000_000;
/// The distance between the process ids of runs at the same time: more than there can be threads.
const PID_STRIDE: libc::pid_t = 70_000;
/// Linux has no higher ids.
const MAX_PID: libc::pid_t = 1 << 22;

/// The running thread's id.
pub fn thread_id() -> libc::pid_t {
    process_id() + scheduler::current().number() as libc::pid_t
}

pub fn process_id() -> libc::pid_t {
    let offsets = (MAX_PID - PROCESS) / PID_STRIDE;
    let pid_offset = log::control().pid_offset.load(Ordering::Relaxed) as libc::pid_t % offsets;
    PROCESS + pid_offset * PID_STRIDE
}

intercept! {
    fn getpid() -> libc::pid_t {
        process_id()
    }

    fn gettid() -> libc::pid_t {
        thread_id()
    }
}

/// Makes the process end with its parent, and lets it read its own `/proc`. The kernel takes both back when a process
/// changes its user.
pub fn stay_bound() {
    // SAFETY: both settings take numbers, and change no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_DUMPABLE, 1);
    }
}

macro_rules! becomes_another {
    ($($name:ident($($arg:ident),+);)+) => { intercept! { $(
        fn $name($($arg: libc::uid_t),+) -> c_int, calling change {
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            let result = unsafe { change($($arg),+) };
            stay_bound();
            result
        }
    )+ } };
}

becomes_another! {
    setuid(user);
    setgid(group);
    seteuid(user);
    setegid(group);
    setreuid(real, effective);
    setregid(real, effective);
    setresuid(real, effective, saved);
    setresgid(real, effective, saved);
}
