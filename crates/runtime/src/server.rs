//! The fork server: the program runs once up to its first thread, and every run is a fork from there.

use std::sync::atomic::Ordering;

use threadbare_trace::Extent;
use threadbare_trace::wire::{Ending, SOCKET_FD, message};

use crate::hooks::{LEARN, LOOK, WATCH};
use crate::plan::{self, Follower};
use crate::process::die;
use crate::{chance, files, heap, learn, log, scheduler, shadow, state, system, threads};

/// Contexts made before anything is known of the program.
const FIRST_CONTEXTS: usize = 4;

/// Called before the first thread is created. Serves the tool's plans; returns once in each run.
pub fn serve() {
    // SAFETY: errno of the running thread, which the program must find as it left it.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    serve_plans();
    *errno = before;
}

fn serve_plans() {
    threads::ensure_contexts(FIRST_CONTEXTS);
    log::prologue(heap::live_blocks());
    files::remember();
    send(&[message::READY]);
    loop {
        receive();
        threads::ensure_contexts(log::control().contexts.load(Ordering::Relaxed) as usize);
        log::control().ending.store(Ending::Silent as u32, Ordering::Relaxed);
        log::control().learnt_words.store(0, Ordering::Relaxed);
        log::control().decision_words.store(0, Ordering::Relaxed);
        log::control().allocated.thread.store(0, Ordering::Relaxed);
        log::control().freed.thread.store(0, Ordering::Relaxed);
        log::control().other.thread.store(0, Ordering::Relaxed);
        log::control().races.store(0, Ordering::Relaxed);
        log::restart();
        // The bare system call: glibc's fork would take the parked threads' stacks for garbage. Only the
        // carrier runs, so no lock of libc's is held by anybody else.
        match system::call(libc::SYS_fork, [0; 6]) {
            0 => return start_run(),
            ..0 => die(&["threadbare: cannot fork\n"]),
            child => {
                log::control().run_pid.store(child as u32, Ordering::Release);
                let status = wait_for(child as libc::pid_t);
                log::control().run_pid.store(0, Ordering::Release);
                let mut answer = [message::DONE; 5];
                answer[1..].copy_from_slice(&status.to_ne_bytes());
                send(&answer);
            }
        }
    }
}

fn send(bytes: &[u8]) {
    // SAFETY: a plain system call.
    let sent = unsafe { libc::send(SOCKET_FD, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if sent != bytes.len() as isize {
        die(&[]);
    }
}

/// Waits for the next plan; the process ends with the tool.
fn receive() {
    let mut byte = 0u8;
    loop {
        // SAFETY: a plain system call into one byte.
        let got = unsafe { libc::recv(SOCKET_FD, (&raw mut byte).cast(), 1, 0) };
        match got {
            1 if byte == message::RUN => return,
            // SAFETY: errno of this thread.
            -1 if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            _ => die(&[]),
        }
    }
}

fn wait_for(child: libc::pid_t) -> i32 {
    let mut status = 0;
    loop {
        let got = system::call(libc::SYS_wait4, [child as u64, (&raw mut status) as u64, 0, 0, 0, 0]);
        if got == i64::from(child) {
            return status;
        }
    }
}

/// In the new process: takes the plan.
fn start_run() {
    // SAFETY: plain system calls. The run must not outlive the server, nor the server the tool.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    files::separate();
    let plan = plan::read();
    chance::seed(plan.seed);
    log::record_functions(plan.functions);
    log::allow(plan.max_events);
    if plan.learn {
        learn::start();
    }
    if plan.decisions {
        state::start();
    }
    WATCH.store(if plan.learn { LEARN } else { LOOK }, Ordering::Relaxed);
    let sched = scheduler::get();
    sched.running = true;
    log::control().pending.store(1, Ordering::Relaxed);
    for extent in plan.tracked.extents() {
        if let Extent::Fixed { start, len } = *extent {
            shadow::set(start, len, true);
        }
    }
    heap::track(plan.tracked.extents());
    sched.follower = Follower::new(plan);
    track_stack(0);
}

/// Marks what the plan tracks on the stack of thread `index`.
pub fn track_stack(index: usize) {
    let sched = scheduler::get();
    let base = scheduler::stack_span(index).base;
    for extent in sched.follower.plan().tracked.extents() {
        match extent {
            Extent::Stack { thread, start, len } if *thread == sched.threads[index].id => {
                shadow::set(base.wrapping_add_signed(*start), *len, true);
            }
            _ => {}
        }
    }
}
