//! Every class of interleavings of real programs, exactly once: known numbers of classes, and brute force.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use threadbare_executor::{Limits, Target, Worker};
use threadbare_search::{Explored, Feedback, Round, Schedule, Search, Settings, Strategy, Token};
use threadbare_trace::{End, Plan, Policy, ThreadIndex, Turns};
use threadbare_variants::{Reachability, classes};

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

    /// What the search explores: the classes in the order of its runs, the plan at its end, and its figures.
    fn explore(&mut self) -> (Vec<u64>, Plan, Explored) {
        let mut strategy = Reachability::new(Settings::new(Plan::default()));
        let (mut seen, mut last) = (Vec::new(), Plan::default());
        let mut search = Search::new(&mut self.worker, &mut strategy);
        while let Some(answered) = search.step(|_| {}).expect("a run") {
            if matches!(answered.schedule.plan.policy, Policy::Awake { .. }) && is_whole(&answered.feedback) {
                seen.extend(classes(&answered.feedback).last());
            }
            last = answered.schedule.plan;
        }
        let figures = strategy.explored().expect("it tells classes apart");
        assert_eq!(strategy.dropped(), 0);
        // Runs from before all shared memory was known are not of this search.
        let own = seen.split_off(seen.len() - figures.classes as usize);
        (own, last, figures)
    }

    /// The classes of all interleavings: every thread that can go on is tried after every beginning, except where a
    /// beginning of the same class was seen before.
    fn all_classes(&mut self, plan: &Plan) -> BTreeSet<u64> {
        let policy = Policy::Awake { asleep: Vec::new(), from: 0 };
        let plan = Plan { turns: Vec::new(), policy, learn: false, ..plan.clone() };
        let (mut seen, mut whole) = (BTreeSet::new(), BTreeSet::new());
        let mut branches: Vec<Vec<ThreadIndex>> = vec![Vec::new()];
        while let Some(picks) = branches.pop() {
            let plan = Plan { turns: Turns::of(picks.iter().copied()), ..plan.clone() };
            let schedule = Schedule { recorded: true, ..Schedule::new(Token(0), "brute force", plan) };
            let run = self.worker.run(&schedule.plan).expect("a run");
            let feedback = Feedback::of(&run, &schedule);
            let beginnings = classes(&feedback);
            let mut taken: Vec<ThreadIndex> = Vec::new();
            // Who could have gone on after what was taken so far. A round that the run is the same without may be asked for.
            let mut others: BTreeSet<ThreadIndex> = BTreeSet::new();
            for decision in &feedback.decisions {
                others.extend(decision.alternatives.iter().copied());
                if decision.round == Round::PassedOver {
                    continue;
                }
                let before = taken.len().checked_sub(1).map_or(0, |last| beginnings[last]);
                if taken.len() >= picks.len() {
                    if !seen.insert(before) {
                        break;
                    }
                    branches.extend(others.iter().map(|&other| [&taken[..], &[other]].concat()));
                }
                taken.push(decision.picked);
                others.clear();
            }
            if is_whole(&feedback) {
                whole.extend(beginnings.last());
            }
            assert!(seen.len() < 200_000, "there are too many");
        }
        whole
    }
}

/// The run is not the beginning of others.
fn is_whole(feedback: &Feedback) -> bool {
    let is_abandoned = feedback.decisions.iter().any(|decision| decision.round == Round::Abandoned);
    !is_abandoned && !matches!(feedback.ended, End::Diverged { .. })
}

/// Explores the scenario with so many threads, and compares with brute force where `by_brute_force` says so.
fn check(file: &str, scenario: &str, threads: u32, expected: u64, by_brute_force: bool) {
    let mut subject = Subject::new(file, scenario, threads);
    let (seen, plan, figures) = subject.explore();
    let set: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(seen.len(), set.len(), "{scenario}({threads}): a class was explored twice");
    if by_brute_force {
        let all = subject.all_classes(&plan);
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
