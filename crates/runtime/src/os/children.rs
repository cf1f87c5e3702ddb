//! Child processes. They are not under test: they run in real time, as if the runtime were not there.

use std::cell::Cell;
use std::ffi::{c_int, c_long};
use std::sync::atomic::Ordering;

use crate::ACTIVE;
use crate::entry::intercept::intercept;
use crate::entry::modules::users_call;
use crate::entry::process;
use crate::hooks::accesses::{IGNORE, WATCH};
use crate::os::{identity, instructions, io, system};
use crate::schedule::scheduler;

intercept! {
    fn fork | vfork() -> libc::pid_t, calling fork {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        make(|| unsafe { fork() })
    }
}

/// Makes a child with `fork`.
fn make(fork: impl FnOnce() -> libc::pid_t) -> libc::pid_t {
    let parent = system::process_id();
    let child = fork();
    io::forked();
    if child == 0 {
        ACTIVE.store(false, Ordering::Relaxed);
        WATCH.store(IGNORE, Ordering::Relaxed);
        instructions::leave_alone();
        // It must not outlive the run, which may be over already.
        identity::stay_bound();
        // SAFETY: the kernel only gives a number.
        if unsafe { libc::getppid() } != parent {
            system::exit(1);
        }
    }
    child
}

/// The system calls `fork`, `vfork` and `clone`. A child that borrows its parent's memory gets a copy, as from `vfork`.
pub fn clone(number: c_long, arguments: [u64; 6], pc: u64) -> c_long {
    const BORROWS: u64 = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    let [flags, stack, ..] = arguments;
    let flags = match number {
        libc::SYS_clone if stack != 0 => {
            process::unsupported("system call clone with a stack of its own", pc)
        }
        libc::SYS_clone if flags & BORROWS == libc::CLONE_VM as u64 => {
            process::unsupported("system call clone of a thread", pc)
        }
        libc::SYS_clone => flags & !BORROWS,
        _ => libc::SIGCHLD as u64,
    };
    let arguments = [flags, 0, arguments[2], arguments[3], arguments[4], 0];
    // SAFETY: the child has a copy of all memory. The program promises the kernel the places for numbers that it asks
    // for.
    make(|| unsafe { system::call(libc::SYS_clone, arguments) } as libc::pid_t).into()
}

/// Exports functions of libc's that make a child process, with arguments as they come in registers.
macro_rules! spawn {
    ($($name:ident $(@ $version:literal)? ($($arg:ident),*);)+) => { intercept! { $(
        fn $name $(@ $version)? ($($arg: usize),*) -> usize, calling spawn {
            io::forked();
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            instructions::left_alone(|| unsafe { spawn($($arg),*) })
        }
    )+ } };
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
    if !system::has_child(libc::P_ALL, 0) {
        return Vec::new();
    }
    let listed = system::read_file("/proc/thread-self/children");
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// How long the real process waits for a child before the wait becomes the scheduler's.
const FIRST_WAIT_MS: u64 = 200;

/// Waits until one of the children has ended, the one with this number if there is one. The wait is the scheduler's,
/// since a child may wait for what another thread is to do.
fn await_end(process: libc::pid_t, options: c_int, pc: u64) {
    const SOMETHING_ELSE: c_int = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    if !scheduler::is_running() || options & SOMETHING_ELSE != 0 {
        return;
    }
    let children = match process {
        1.. if system::has_child(libc::P_PID, process) => vec![process],
        1.. => return,
        _ => all(),
    };
    let watched = children.into_iter().map(system::open_process);
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = watched.filter(|&fd| fd >= 0).map(entry).collect();
    if let Some(&libc::pollfd { fd, .. }) = entries.first() {
        let pc = users_call(pc);
        // Most children end soon. To wait for that first keeps how long it takes out of the schedule.
        system::poll(Cell::from_mut(entries.as_mut_slice()).as_slice_of_cells(), FIRST_WAIT_MS);
        io::wait(&mut entries, true, None, pc);
        io::done(fd, pc);
    }
    for entry in entries {
        system::close(entry.fd);
    }
}

type Status = *mut c_int;
type Usage = *mut libc::rusage;

intercept! {
    fn wait(status: Status; pc) -> libc::pid_t, calling wait {
        await_end(-1, 0, pc);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { wait(status) }
    }

    fn waitpid(process: libc::pid_t, status: Status, options: c_int; pc) -> libc::pid_t, calling wait {
        await_end(process, options, pc);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { wait(process, status, options) }
    }

    fn wait3(status: Status, options: c_int, usage: Usage; pc) -> libc::pid_t, calling wait {
        await_end(-1, options, pc);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { wait(status, options, usage) }
    }

    fn wait4(
        process: libc::pid_t, status: Status, options: c_int, usage: Usage; pc
    ) -> libc::pid_t, calling wait {
        await_end(process, options, pc);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { wait(process, status, options, usage) }
    }

    fn waitid(
        kind: libc::idtype_t, id: libc::id_t, info: *mut libc::siginfo_t, options: c_int; pc
    ) -> c_int, calling wait {
        match kind {
            libc::P_PID => await_end(id as libc::pid_t, options, pc),
            libc::P_ALL => await_end(-1, options, pc),
            _ => {}
        }
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { wait(kind, id, info, options) }
    }
}
