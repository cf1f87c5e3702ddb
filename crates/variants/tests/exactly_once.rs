//! Every class of interleavings of real programs, exactly once: known numbers of classes, and brute force.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use threadbare_executor::{Limits, RunError, Target, Worker};
use threadbare_search::{Explored, Feedback, Schedule, Settings, Strategy, run_schedule};
use threadbare_trace::Plan;
use threadbare_variants::Reachability;
use threadbare_variants::brute_force::{self, Found};

struct Subject {
    worker: Worker,
    _directory: tempfile::TempDir,
}

impl Subject {
    fn new(file: &str, scenario: &str, threads: u32) -> Subject {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let program = directory.path().join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(file);
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O1", "-fsanitize=thread", "-pthread", "-Wno-tsan"])
            .arg(source)
            .arg("-o")
            .arg(&program);
        assert!(gcc.status().expect("the compiler can be started").success());
        let arguments = vec![scenario.into(), threads.to_string().into()];
        let target = Target { program, arguments, ..Target::default() };
        let worker = Worker::start(&target, &Limits::default()).expect("the program starts");
        Subject { worker, _directory: directory }
    }

    fn run(&mut self, schedule: &Schedule) -> Result<Feedback, RunError> {
        let run = run_schedule(&mut self.worker, schedule)?;
        Ok(Feedback::of(&run, schedule))
    }

    fn explore(&mut self) -> Found {
        let mut strategy = Reachability::new(Settings::new(Plan::default()));
        let found = brute_force::explore(&mut strategy, usize::MAX, |schedule| self.run(schedule));
        let found = found.expect("a run").expect("there is no limit");
        assert_eq!(strategy.dropped(), 0);
        found
    }
}

/// Explores the scenario with so many threads, and compares with brute force where `by_brute_force` says so.
fn check(file: &str, scenario: &str, threads: u32, expected: u64, by_brute_force: bool) {
    let mut subject = Subject::new(file, scenario, threads);
    let Found { classes: seen, plan, figures } = subject.explore();
    let set: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(seen.len(), set.len(), "{scenario}({threads}): a class was explored twice");
    if by_brute_force {
        let all = brute_force::all_classes(&plan, 200_000, |schedule| subject.run(schedule));
        let all = all.expect("a run").expect("not too many");
        assert_eq!(set.len(), all.len(), "{scenario}({threads}): {figures:?}");
        assert!(set == all, "{scenario}({threads}): other classes");
    }
    let Explored { classes, redundant, blocked, .. } = figures;
    assert_eq!((classes, redundant), (expected, 0), "{scenario}({threads})");
    // Only loops that wait are tried in vain.
    assert!(blocked == 0 || file == "structures.c", "{scenario}({threads}): {blocked} blocked");
}

/// Tests by the name of their scenario, with their file: numbers of threads, each with its number of classes. The scenarios that say so
/// are compared with brute force for their first number of threads.
macro_rules! scenarios {
    ($file:literal $($name:ident: $($how:ident)? $(($threads:literal, $classes:literal)),+;)+) => {
        $(#[test] fn $name() {
            let by_brute_force = stringify!($($how)?) == "brute_force";
            for (place, (threads, classes)) in [$(($threads, $classes)),+].into_iter().enumerate() {
                check($file, stringify!($name), threads, classes, by_brute_force && place == 0);
            }
        })+
    };
}

scenarios! {
    "classes.c"
    locked: brute_force (2, 20);
    counts: brute_force (2, 14), (3, 762);
    // n!
    increments: brute_force (3, 6), (4, 24);
    // 2 to the number of readers
    readers: brute_force (3, 4), (6, 32);
    plain_readers: brute_force (3, 4), (6, 32);
    // (n + 3) * 2^(n - 2) for n threads besides the one that looks for the zero
    last_zero: brute_force (3, 5), (6, 64);
    indexer: (12, 8);
    condition: brute_force (3, 10), (4, 52);
    semaphore: brute_force (3, 4);
    barrier: brute_force (2, 4);
    tries: brute_force (2, 26);
    timed_lock: brute_force (2, 4);
    read_write_lock: brute_force (3, 4);
    once: brute_force (3, 3);
    timed_wait: brute_force (2, 3);
    allocations: brute_force (3, 6);
    no_join: brute_force (2, 20);
}

scenarios! {
    "structures.c"
    // (2n)! / 2^n: the orders of n threads that enter twice each
    test_and_set: brute_force (2, 6), (3, 90);
    test_first: brute_force (2, 34);
    ticket: brute_force (2, 6), (3, 90);
    mcs: brute_force (2, 78);
    peterson: brute_force (2, 48);
    seqlock: (2, 2647);
    treiber: brute_force (2, 11);
    michael_scott: brute_force (2, 24);
    chase_lev: brute_force (2, 23), (3, 516);
    sense_barrier: brute_force (2, 4), (3, 36);
}
