//! The fork server: the program runs once up to its first thread, and every run is a fork from there. A program that
//! starts none is run once more, up to its `main`.

use std::sync::atomic::Ordering;

use threadbare_trace::{Extent, Influence, Policy, ThreadIndex};
use threadbare_wire::{SOCKET_FD, message, snapshot};

use crate::entry::log;
use crate::entry::process::{self, die};
use crate::hooks::accesses::{LEARN, LOOK, WATCH};
use crate::hooks::watched;
use crate::memory::{guard, heap, learn, shadow};
use crate::os::{channels, children, files, identity, io, leftovers, randomness, system};
use crate::schedule::follower::{self, Follower};
use crate::schedule::{scheduler, snapshots, state};
use crate::sync::threads;

/// How many contexts are made before it is known how many the program needs.
const FIRST_CONTEXTS: usize = 4;

/// Called before the first thread is created, or before `main`. Serves the tool's plans; returns once in each run.
pub fn serve() {
    system::keeping_errno(serve_plans);
}

fn serve_plans() {
    threads::ensure_contexts(FIRST_CONTEXTS);
    log::prologue(heap::live_blocks());
    files::remember();
    channels::remember();
    let before = children::all();
    adopt_orphans();
    leftovers::prepare();
    send(&[message::READY]);
    loop {
        let request = receive();
        log::control().end.clear();
        let run = match request {
            Request::Run => {
                threads::ensure_contexts(log::control().contexts.load(Ordering::Relaxed) as usize);
                log::restart();
                match process::fork_quietly() {
                    0 => return start_run(),
                    ..0 => die(&["threadbare: cannot fork\n"]),
                    child => Some(child as libc::pid_t),
                }
            }
            Request::Resume(slot) => snapshots::resume(&log::control().snapshots[slot % snapshot::SLOTS]),
        };
        let status = run.map(|run| {
            log::control().run_pid.store(run as u32, Ordering::Release);
            wait_for(run)
        });
        end_orphans(&before);
        leftovers::remove();
        snapshots::reap();
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
    if system::send(SOCKET_FD, bytes, libc::MSG_NOSIGNAL) != bytes.len() as i64 {
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
        match system::read(SOCKET_FD, &mut bytes) {
            1 if bytes[0] == message::RUN => return Request::Run,
            2 if bytes[0] == message::RESUME => return Request::Resume(usize::from(bytes[1])),
            error if error == -i64::from(libc::EINTR) => {}
            _ => die(&[]),
        }
    }
}

fn wait_for(child: libc::pid_t) -> i32 {
    loop {
        if let Some(status) = system::wait_for(child, libc::__WALL) {
            return status;
        }
    }
}

/// What the children of a run leave running becomes the server's.
fn adopt_orphans() {
    // SAFETY: the setting takes a number, and changes no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Ends the processes that a run has left running: all children, except snapshots and those from `before` any run.
fn end_orphans(before: &[libc::pid_t]) {
    // Those who die leave their own children to the server.
    let is_orphan = |child: &&libc::pid_t| !before.contains(child) && !snapshots::is_one(**child);
    while let Some(&orphan) = children::all().iter().find(is_orphan) {
        system::kill(orphan, libc::SIGKILL);
        wait_for(orphan);
    }
}

/// In the new process: takes the plan.
fn start_run() {
    // The run must not outlive the server, nor the server the tool.
    identity::stay_bound();
    files::separate();
    channels::separate();
    let plan = follower::read();
    randomness::seed(plan.seed);
    log::record_functions(plan.functions);
    log::allow(plan.max_events);
    if plan.learn {
        learn::start();
    }
    // Explorations go by what threads touch, and not by the states of the program.
    if plan.decisions && !matches!(plan.policy, Policy::Awake { .. }) {
        scheduler::with(|sched| state::start(sched.threads.iter().map(|(_, thread)| &thread.id)));
    }
    WATCH.store(if plan.learn { LEARN } else { LOOK }, Ordering::Relaxed);
    log::set_threads(1);
    if io::has_forked() {
        log::influenced_by(Influence::Children);
    }
    for extent in plan.tracked.extents() {
        if let Extent::Fixed { start, len } = *extent {
            shadow::set(start, len, true);
        }
    }
    match plan.guarded {
        true => heap::guard(),
        false => guard::stay_off(),
    }
    heap::track(plan.tracked.extents());
    watched::watch(&plan.watched);
    scheduler::start_run(Follower::new(plan));
    track_stack(ThreadIndex::MAIN);
}

/// Marks what the plan tracks on the stack of thread `index`.
pub fn track_stack(index: ThreadIndex) {
    let base = log::stack_span(index).base;
    scheduler::with(|sched| {
        for extent in sched.follower.plan().tracked.extents() {
            match extent {
                Extent::Stack { thread, start, len } if *thread == sched.threads[index].id => {
                    shadow::set(base.wrapping_add_signed(*start), *len, true);
                }
                _ => {}
            }
        }
    });
}
