//! Snapshots: copies of a run in the middle, from which runs under other plans go on.
//!
//! All threads of the program are memory of one process with one OS thread (see
//! [`context`](crate::schedule::context)), so a fork copies them all. The copy waits in the kernel until the tool wants
//! a run that begins in the same way. That run is a copy of the copy. Both are children of the fork server and end with
//! it.
//!
//! A fork does not copy what is outside the process. So no snapshot is taken of a run that has made pipes or sockets,
//! has changed files, or has forked. The tool restores the shared file before a snapshot goes on.

use std::sync::atomic::Ordering;

use threadbare_wire::{PendingRecord, Snapshot, snapshot};

use crate::entry::{log, process};
use crate::os::{files, identity, io, system};
use crate::schedule::scheduler::Scheduler;
use crate::schedule::{follower, state};

/// The tool wants snapshots of this run.
pub fn are_wanted() -> bool {
    log::control().snapshots_wanted[0].turns.load(Ordering::Relaxed) != 0
}

/// After how many turns the next one is to be taken.
pub fn next() -> u64 {
    let taken = log::control().snapshots_taken.load(Ordering::Relaxed) as usize;
    let wanted =
        log::control().snapshots_wanted.get(taken).map(|wanted| wanted.turns.load(Ordering::Relaxed));
    wanted.filter(|&turns| turns != 0).unwrap_or(u64::MAX)
}

/// Takes a snapshot, if the tool wants one of this moment. Returns again in every run that goes on from it.
pub fn take_if_wanted(sched: &mut Scheduler) {
    let control = log::control();
    let next = control.snapshots_taken.load(Ordering::Relaxed) as usize;
    let Some(wanted) = control.snapshots_wanted.get(next) else { return };
    let turns = wanted.turns.load(Ordering::Relaxed);
    // A plan whose turns are those of a round in vain means another run.
    let can_be_shared = !sched.follower.has_gone_round_in_vain();
    if turns == 0
        || turns != sched.follower.decided()
        || !can_be_shared
        || system::keeping_errno(io::has_been_outside)
    {
        return;
    }
    control.snapshots_taken.store(next as u32 + 1, Ordering::Relaxed);
    sched.follower.look_for_next_snapshot();
    let slot = &control.snapshots[wanted.slot.load(Ordering::Relaxed) as usize % snapshot::SLOTS];
    slot.command.store(snapshot::STAY, Ordering::Relaxed);
    // Positions in files and the shared file are not copied, and this run goes on.
    system::keeping_errno(files::remember);
    let pending: Vec<PendingRecord> = sched.threads.indices().map(log::pending).collect();
    let begun = system::monotonic_time();
    match process::fork_beside() {
        0 => system::keeping_errno(|| stay(slot, sched, &pending)),
        ..0 => {}
        child => {
            slot.cost.store(system::monotonic_time() - begun, Ordering::Relaxed);
            describe(slot, child as u32);
        }
    }
}

/// Says what had been left in the shared file by now.
fn describe(slot: &Snapshot, child: u32) {
    let control = log::control();
    slot.events.store(control.events.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.stacks.store(control.stacks.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.threads.store(control.pending.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.races.store(control.races.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.learnt_words.store(control.learnt_words.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.decision_words.store(control.decision_words.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.turns.store(control.turns.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.switches.store(control.switches.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.output.store(state::bytes_flushed(), Ordering::Relaxed);
    slot.pid.store(child, Ordering::Release);
}

/// In the copy: waits to be wanted. Returns in a copy of this copy, which is a run.
fn stay(slot: &Snapshot, sched: &mut Scheduler, pending: &[PendingRecord]) {
    identity::stay_bound();
    loop {
        wait_while(slot, snapshot::STAY);
        if slot.command.load(Ordering::Acquire) == snapshot::LEAVE {
            system::exit(0);
        }
        slot.command.store(snapshot::STAY, Ordering::Relaxed);
        match process::fork_beside() {
            0 => break,
            ..0 => system::exit(1),
            child => {
                log::control().run_pid.store(child as u32, Ordering::Release);
                system::futex_wake(&log::control().run_pid);
            }
        }
    }
    identity::stay_bound();
    files::separate();
    for (index, record) in sched.threads.indices().zip(pending) {
        log::set_pending(index, *record);
    }
    let follower = std::mem::take(&mut sched.follower);
    sched.follower = follower.resume(follower::read());
    for index in sched.threads.indices() {
        sched.threads[index].spinning.resume();
    }
}

/// Waits until the server or the tool has put another command there.
fn wait_while(slot: &Snapshot, command: u32) {
    while slot.command.load(Ordering::Acquire) == command {
        system::futex_wait(&slot.command, command, None);
    }
}

/// In the server: lets a snapshot make a run of itself, which is then a child of the server too; `None` if it has
/// ended.
pub fn resume(slot: &Snapshot) -> Option<libc::pid_t> {
    /// How long to wait before looking whether it still is there.
    const POLL_NS: i64 = 50_000_000;
    let run = &log::control().run_pid;
    run.store(0, Ordering::Relaxed);
    slot.command.store(snapshot::GO_ON, Ordering::Release);
    system::futex_wake(&slot.command);
    loop {
        match run.load(Ordering::Acquire) {
            0 if has_ended(slot) => return None,
            0 => system::futex_wait(run, 0, Some(POLL_NS)),
            run => return Some(run as libc::pid_t),
        }
    }
}

/// In the server: is this child of its a snapshot?
pub fn is_one(child: libc::pid_t) -> bool {
    log::control().snapshots.iter().any(|slot| slot.pid.load(Ordering::Acquire) == child as u32)
}

/// In the server: frees the slots of snapshots that have ended.
pub fn reap() {
    let leaves = |slot: &&Snapshot| slot.command.load(Ordering::Acquire) == snapshot::LEAVE;
    log::control().snapshots.iter().filter(leaves).for_each(|slot| {
        has_ended(slot);
    });
}

/// In the server: there is no snapshot in the slot any more.
fn has_ended(slot: &Snapshot) -> bool {
    let pid = slot.pid.load(Ordering::Acquire);
    // It has ended, or was never there.
    if pid != 0 && !system::is_child_running(pid as libc::pid_t) {
        slot.pid.store(0, Ordering::Release);
    }
    slot.pid.load(Ordering::Acquire) == 0
}
