//! Child processes. They are not under test: they run in real time, as if the runtime were not there.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::hooks::accesses::{IGNORE, WATCH};
use crate::os::{identity, io, system};
use crate::schedule::scheduler;
use crate::{ACTIVE, active};

intercept! {
    fork/0 => fork_;
    vfork/0 => fork_;
    wait/1 => wait_;
    waitpid/3 => wait_for_process;
    wait3/3 => wait_with_usage;
    wait4/4 => wait_for_process_with_usage;
    waitid/4 => wait_by_id;
}

extern "C" fn fork_(_: u64) -> libc::pid_t {
    let parent = real!(getpid() -> libc::pid_t);
    let child = real!(fork() -> libc::pid_t);
    io::forked();
    if child == 0 && active() {
        ACTIVE.store(false, Ordering::Relaxed);
        WATCH.store(IGNORE, Ordering::Relaxed);
        // It must not outlive the run, which may be over already.
        identity::stay_bound();
        // SAFETY: a plain system call.
        if unsafe { libc::getppid() } != parent {
            system::exit(1);
        }
    }
    child
}

/// Exports functions of libc's that make a child process, with arguments as they come in registers.
macro_rules! spawn {
    ($($name:ident $(@ $version:literal)? ($($arg:ident),*);)+) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: usize),*) -> usize {
            io::forked();
            real!($name $(@ $version)? ($($arg => usize),*) -> usize)
        }
    )+ };
}

spawn! {
    posix_spawn @ c"GLIBC_2.15" (process, path, actions, attributes, arguments, environment);
    posix_spawnp @ c"GLIBC_2.15" (process, file, actions, attributes, arguments, environment);
    popen(command, mode);
    system(command);
}

/// The program's child processes.
pub fn all() -> Vec<libc::pid_t> {
    // Most programs never have any, and then this is all it costs.
    if !is_there(libc::P_ALL, 0) {
        return Vec::new();
    }
    let listed = system::read_file("/proc/thread-self/children");
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// There is such a child.
fn is_there(kind: libc::idtype_t, id: libc::pid_t) -> bool {
    const LOOK: u64 = (libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) as u64;
    system::call(libc::SYS_waitid, [kind.into(), id as u64, 0, LOOK, 0, 0]) >= 0
}

/// In milliseconds.
const SOON: u64 = 200;

/// Waits until one of the children has ended, the one with this number if there is one. The wait is the scheduler's,
/// since a child may wait for what another thread is to do.
fn await_end(process: libc::pid_t, options: c_int, pc: u64) {
    const SOMETHING_ELSE: c_int = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    if !active() || !scheduler::get().running || options & SOMETHING_ELSE != 0 {
        return;
    }
    let children = match process {
        1.. if is_there(libc::P_PID, process) => vec![process],
        1.. => return,
        _ => all(),
    };
    let watched =
        children.iter().map(|&child| system::call(libc::SYS_pidfd_open, [child as u64, 0, 0, 0, 0, 0]));
    let entry = |fd| libc::pollfd { fd: fd as c_int, events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = watched.filter(|&fd| fd >= 0).map(entry).collect();
    if let Some(&libc::pollfd { fd, .. }) = entries.first() {
        let pc = users_call(pc);
        // Most children end soon. To wait for that first keeps how long it takes out of the schedule.
        system::call(libc::SYS_poll, [entries.as_mut_ptr() as u64, entries.len() as u64, SOON, 0, 0, 0]);
        io::wait(&mut entries, true, None, pc);
        io::done(fd, pc);
    }
    for entry in entries {
        system::call(libc::SYS_close, [entry.fd as u64, 0, 0, 0, 0, 0]);
    }
}

type Status = *mut c_int;
type Usage = *mut libc::rusage;

extern "C" fn wait_(status: Status, pc: u64) -> libc::pid_t {
    wait_for_process(-1, status, 0, pc)
}

extern "C" fn wait_for_process(process: libc::pid_t, status: Status, options: c_int, pc: u64) -> libc::pid_t {
    await_end(process, options, pc);
    real!(waitpid(process => libc::pid_t, status => Status, options => c_int) -> libc::pid_t)
}

extern "C" fn wait_with_usage(status: Status, options: c_int, usage: Usage, pc: u64) -> libc::pid_t {
    wait_for_process_with_usage(-1, status, options, usage, pc)
}

extern "C" fn wait_for_process_with_usage(
    process: libc::pid_t,
    status: Status,
    options: c_int,
    usage: Usage,
    pc: u64,
) -> libc::pid_t {
    await_end(process, options, pc);
    real!(wait4(process => libc::pid_t, status => Status, options => c_int, usage => Usage) -> libc::pid_t)
}

extern "C" fn wait_by_id(
    kind: libc::idtype_t,
    id: libc::id_t,
    info: *mut libc::siginfo_t,
    options: c_int,
    pc: u64,
) -> c_int {
    match kind {
        libc::P_PID => await_end(id as libc::pid_t, options, pc),
        libc::P_ALL => await_end(-1, options, pc),
        _ => {}
    }
    real!(waitid(
        kind => libc::idtype_t, id => libc::id_t, info => *mut libc::siginfo_t, options => c_int
    ) -> c_int)
}
