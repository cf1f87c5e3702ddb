//! The fork server: the program runs once up to its first thread, and every run is a fork from there.

use std::sync::atomic::Ordering;

use threadbare_trace::Extent;
use threadbare_trace::wire::{Ending, SOCKET_FD, Snapshot, message, snapshot};

use crate::hooks::{LEARN, LOOK, WATCH};
use crate::plan::{self, Follower};
use crate::process::{self, die};
use crate::{chance, files, heap, learn, log, scheduler, shadow, state, system, threads};

/// Contexts made before anything is known of the program.
const FIRST_CONTEXTS: usize = 4;

/// Called before the first thread is created. Serves the tool's plans; returns once in each run.
pub fn serve() {
    system::keeping_errno(serve_plans);
}

fn serve_plans() {
    threads::ensure_contexts(FIRST_CONTEXTS);
    log::prologue(heap::live_blocks());
    files::remember();
    send(&[message::READY]);
    loop {
        let request = receive();
        log::control().ending.store(Ending::Silent as u32, Ordering::Relaxed);
        log::control().allocated.thread.store(0, Ordering::Relaxed);
        log::control().freed.thread.store(0, Ordering::Relaxed);
        log::control().other.thread.store(0, Ordering::Relaxed);
        let status = match request {
            Request::Run => {
                threads::ensure_contexts(log::control().contexts.load(Ordering::Relaxed) as usize);
                log::restart();
                match process::fork_quietly() {
                    0 => return start_run(),
                    ..0 => die(&["threadbare: cannot fork\n"]),
                    child => {
                        log::control().run_pid.store(child as u32, Ordering::Release);
                        wait_for_run(None)
                    }
                }
            }
            Request::Resume(slot) => {
                let slot = &log::control().snapshots[slot % snapshot::SLOTS];
                slot.command.store(snapshot::GO_ON, Ordering::Release);
                let address = (&raw const slot.command) as u64;
                system::call(libc::SYS_futex, [address, libc::FUTEX_WAKE as u64, 1, 0, 0, 0]);
                wait_for_run(Some(slot))
            }
        };
        log::control().run_pid.store(0, Ordering::Release);
        match status {
            Some(status) => {
                let mut answer = [message::DONE; 5];
                answer[1..].copy_from_slice(&status.to_ne_bytes());
                send(&answer);
            }
            None => send(&[message::LOST]),
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

enum Request {
    Run,
    /// From the snapshot in this slot.
    Resume(usize),
}

/// Waits for the next plan; the process ends with the tool.
fn receive() -> Request {
    let mut bytes = [0u8; 2];
    loop {
        // SAFETY: a plain system call into two bytes.
        let got = unsafe { libc::recv(SOCKET_FD, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match got {
            1 if bytes[0] == message::RUN => return Request::Run,
            2 if bytes[0] == message::RESUME => return Request::Resume(usize::from(bytes[1])),
            // SAFETY: errno of this thread.
            -1 if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            _ => die(&[]),
        }
    }
}

/// Waits for the run under way to end; `None` if it never began, because the snapshot it was to come from has
/// ended.
fn wait_for_run(source: Option<&Snapshot>) -> Option<i32> {
    let mut status = 0;
    loop {
        let any = -1i64 as u64;
        let options = libc::__WALL as u64;
        let ended = system::call(libc::SYS_wait4, [any, (&raw mut status) as u64, options, 0, 0, 0]);
        if ended < 0 {
            continue;
        }
        let is = |snapshot: &&Snapshot| i64::from(snapshot.pid.load(Ordering::Acquire)) == ended;
        match log::control().snapshots.iter().find(is) {
            None => return Some(status),
            Some(snapshot) => {
                snapshot.pid.store(0, Ordering::Release);
                if source.is_some_and(|source| std::ptr::eq(source, snapshot)) {
                    return None;
                }
            }
        }
    }
}

/// In the new process: takes the plan.
fn start_run() {
    // The run must not outlive the server, nor the server the tool.
    process::die_with_parent();
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
