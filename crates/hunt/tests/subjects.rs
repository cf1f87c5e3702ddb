//! The hunt on real programs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use threadbare_executor::{Limits, Target, Worker};
use threadbare_hunt::hunt;
use threadbare_search::{Search, Settings};
use threadbare_trace::Plan;

/// A worker for a subject.
fn worker(subject: &str, flags: &[&str], arguments: &[&str], directory: &Path) -> Worker {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../subjects/c/{subject}.c"));
    let program = directory.join(subject);
    let mut command = Command::new("cc");
    command
        .args(["-g", "-O0", "-fsanitize=thread", "-pthread"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&program);
    assert!(command.status().expect("the compiler can be started").success());
    let arguments = arguments.iter().map(Into::into).collect();
    let target = Target { program, arguments, ..Target::default() };
    Worker::start(&target, &Limits::default()).expect("the program starts")
}

/// Runs of a hunt up to its first failure, with the method that found it; `None` when there is none in so many.
fn first_failure(worker: &mut Worker, seed: u64, most: u64) -> Option<(u64, &'static str)> {
    let program = Arc::clone(worker.shared_program());
    let mut strategy = hunt(&Settings::new(Plan { seed, ..Plan::default() }), program);
    for (number, answered) in (1..=most).zip(Search::new(worker, &mut strategy)) {
        let answered = answered.expect("a run");
        if answered.feedback.ended.failure().is_some() {
            return Some((number, answered.schedule.method));
        }
    }
    None
}

/// Protects the bugs that hide behind many threads: their number makes no difference.
#[test]
fn few_runs_are_enough_however_many_threads_there_are() {
    let directory = tempfile::tempdir().expect("a directory");
    for (subject, arguments) in [
        ("reorder", ["2", "1"]),
        ("reorder", ["49", "1"]),
        ("twostage", ["2", "1"]),
        ("twostage", ["49", "1"]),
        ("wronglock", ["1", "2"]),
        ("wronglock", ["1", "49"]),
    ] {
        let mut worker = worker(subject, &[], &arguments, directory.path());
        for seed in [0, 1] {
            let found = first_failure(&mut worker, seed, 10);
            assert!(found.is_some(), "{subject} {arguments:?}: nothing in 10 runs");
        }
    }
}

/// Protects the share of predictions: the run that they are made from shows no failure, and one of them does.
#[test]
fn what_one_run_predicts_fails_in_another() {
    let directory = tempfile::tempdir().expect("a directory");
    for subject in ["account_ring_dl", "stringbuffer", "bank_account"] {
        let mut worker = worker(subject, &[], &[], directory.path());
        let found = first_failure(&mut worker, 0, 14);
        assert_eq!(found.map(|(_, method)| method), Some("predict"), "{subject}");
    }
}

#[test]
fn nothing_fails_in_programs_without_a_bug() {
    let directory = tempfile::tempdir().expect("a directory");
    for subject in ["account_ring_dl", "stringbuffer", "critical_spin"] {
        let mut worker = worker(subject, &["-DFIXED"], &[], directory.path());
        assert_eq!(first_failure(&mut worker, 0, 200), None, "{subject}");
    }
}
