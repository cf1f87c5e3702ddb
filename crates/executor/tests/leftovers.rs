//! Processes that a program starts and leaves behind. They are told by descent: this process takes the place of `init`
//! for whoever loses its parent, so that all that its tests start stay below it, and nobody else's are.
//!
//! The tests take turns, because each looks at all descendants of the process.

mod support;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use support::{Built, outcome};
use threadbare_executor::{Input, Limits, RunError};
use threadbare_trace::Policy;

/// Held by the test whose turn it is.
static TURN: Mutex<()> = Mutex::new(());

fn take_turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a plain system call.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
    assert_eq!(descendants(), Vec::new(), "the test before has left something");
    turn
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    session: u32,
}

/// A process, from its `/proc/PID/stat`: number, name in brackets, state, parent, group, session.
fn process(stat: &str) -> Option<Process> {
    let (id, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    Some(Process { id: id.parse().ok()?, parent: number(1)?, session: number(3)? })
}

/// The children of this process, their children, and so on; also those that have ended, but nobody has noticed.
fn descendants() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let all: Vec<Process> = stats.filter_map(|stat| process(&stat)).collect();
    let mut descendants: Vec<Process> = Vec::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|process| process.parent == parent);
        parents.extend(children.clone().map(|child| child.id));
        descendants.extend(children.cloned());
    }
    descendants
}

/// Whether the server has got a daemon: a child of another session, whose own parent has ended. A run is a child of the
/// server too, but it stays in the server's session.
fn has_daemon(server: &Process) -> bool {
    descendants().iter().any(|process| process.parent == server.id && process.session != server.session)
}

/// A child that took care to outlive its parents ends with the run all the same.
#[test]
fn daemons_end_with_their_run() {
    let _turn = take_turn();
    let built = Built::new("rough.c");
    let mut subject = built.scenario("daemons");
    let before = descendants();
    for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::RunToBlock] {
        let plan = subject.under(policy);
        assert_eq!(outcome(&subject.run(&plan)), "started");
        assert_eq!(descendants(), before, "the server alone is left");
    }
    drop(subject);
    assert_eq!(descendants(), Vec::new());
}

/// The same for a run that is given up: here as soon as the daemon is there.
#[test]
fn daemons_end_with_their_worker() {
    let _turn = take_turn();
    let built = Built::new("rough.c");
    let cancelled = Arc::new(AtomicBool::new(false));
    // Reached only if no daemon ever appears.
    let limits =
        Limits { time: Duration::from_secs(60), cancelled: Arc::clone(&cancelled), ..Limits::default() };
    let mut subject = built.start_with("daemon_and_spin", Input::default(), limits);
    // The first is its keeper.
    let [_, server] = &descendants()[..] else { panic!("the server is not alone: {:?}", descendants()) };
    let plan = subject.under(Policy::RunToBlock);
    let is_over = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_daemon(server) && !is_over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            cancelled.store(true, Ordering::Relaxed);
        });
        let ended = subject.worker.run(&plan).map(|run| run.ended().clone());
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
    drop(subject);
    assert_eq!(descendants(), Vec::new());
}

fn names_with(part: &str) -> usize {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().contains(part)).count()
}

/// Shared memory and semaphores with names do not outlive the run that made them, so the next finds none either.
#[test]
fn names_of_shared_memory_end_with_their_run() {
    let _turn = take_turn();
    let built = Built::new("shared_names.c");
    let name = format!("threadbare-test-{}", std::process::id());
    let mut subject = built.scenario(&name);
    for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::RunToBlock] {
        let plan = subject.under(policy);
        assert_eq!(outcome(&subject.run(&plan)), "1 1 1");
        assert_eq!(names_with(&name), 0);
    }
}
