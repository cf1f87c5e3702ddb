//! Freed memory that code without instrumentation uses: guarded runs see it.

mod support;

use std::collections::BTreeSet;

use support::{Built, Subject};
use threadbare_trace::{End, FailureKind, Plan, Role};

/// A scenario of `unseen.c`, the functions that its failure is said to be in, innermost first, and words of its message.
type Row = (&'static str, &'static [&'static str], &'static str);

const ROWS: [Row; 9] = [
    ("read", &["count", "read_it"], "read, 0 bytes into a freed block of 40 bytes"),
    ("written", &["clear", "write_it"], "write, 3 bytes into a freed block of 40 bytes"),
    ("libc", &["read_in_libc"], "read, 8 bytes into a freed block of 40 bytes"),
    ("libc_write", &["write_in_libc"], "0 bytes into a freed block of 40 bytes"),
    ("kernel", &["read_in_kernel"], "0 bytes into a freed block of 40 bytes"),
    ("large", &["count", "read_it"], "read, 0 bytes into a freed block of 300000 bytes"),
    ("in_run", &["count", "read_it"], "read, 0 bytes into a freed block of 40 bytes"),
    ("before", &["count", "read_it"], "read, 0 bytes into a freed block of 40 bytes"),
    ("alone", &["count", "read_it"], "read, 0 bytes into a freed block of 40 bytes"),
];

fn guarded(built: &Built, scenario: &str) -> Subject {
    let mut subject = built.scenario(scenario);
    subject.learn();
    subject.plan.guarded = true;
    subject
}

/// What is wrong with how `row` fails.
fn objections(built: &Built, row: &Row) -> Vec<String> {
    let (scenario, functions, words) = row;
    let mut subject = guarded(built, scenario);
    let plans = subject.plans();
    let failing: Vec<Plan> = plans.into_iter().filter(|plan| subject.run(plan).failure().is_some()).collect();
    let mut wrong = Vec::new();
    for plan in failing.iter().step_by(8) {
        let trace = subject.run(plan).trace();
        let failure = trace.end.failure().expect("the plan fails");
        let message = trace.failure_message().unwrap_or_default();
        let function = |location| trace.location(location).frames.first().map(|frame| frame.function.clone());
        let innermost = function(failure.at.location);
        let caller = trace.stacks.get(failure.at.stack.index()).and_then(|node| function(node.location));
        let seen: Vec<String> = [innermost, caller].into_iter().flatten().take(functions.len()).collect();
        let by = |role| failure.related(role).and_then(|place| function(place.location));
        let related = [by(Role::Allocated), by(Role::Freed)];
        if failure.kind != FailureKind::UseAfterFree
            || seen != *functions
            || !message.contains(words)
            || related != [Some("make".to_owned()), Some("drop".to_owned())]
        {
            wrong.push(format!("{scenario}: {} in {seen:?}, {related:?}: {message}", failure.kind));
        }
    }
    if failing.is_empty() {
        wrong.push(format!("{scenario}: no schedule shows it"));
    }
    wrong.truncate(1);
    wrong.extend(subject.repeats_and_replays());
    wrong
}

/// Protects what no hook tells of: accesses in code without instrumentation, in libc and in the kernel. Each failure is at
/// the line that made the access or the call, says who freed and who allocated, and is the same in every run of the plan.
#[test]
fn memory_that_is_gone_is_guarded() {
    let built = Built::new("unseen.c");
    let wrong: Vec<String> = ROWS.iter().flat_map(|row| objections(&built, row)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects what is handed to the kernel, which takes freed memory without a word: it is checked in every run.
#[test]
fn what_the_kernel_is_given_is_checked() {
    let built = Built::new("unseen.c");
    let mut subject = built.scenario("kernel");
    subject.learn();
    assert!(subject.outcomes().contains("use after free"), "{:?}", subject.outcomes());
}

/// Protects from false alarms: the same without the bug, and memory that is used again after it was freed.
#[test]
fn memory_that_is_there_may_be_used() {
    for flags in [&["-DFIXED"][..], &["-DFIXED", "-O2"]] {
        let built = Built::with_flags("unseen.c", flags);
        for (scenario, ..) in ROWS {
            let endings: BTreeSet<String> = guarded(&built, scenario).outcomes();
            assert_eq!(endings.len(), 1, "{scenario}: {endings:?}");
            assert!(endings.iter().all(|ending| ending.is_empty() || ending == "7777"), "{endings:?}");
        }
    }
}

/// Protects the heap of a guarded run: blocks leave the quarantine and are whole again, and those that find no page of
/// their own are as in any run.
#[test]
fn freed_memory_is_used_again() {
    let built = Built::new("unseen.c");
    let mut subject = built.scenario("churn");
    for guarded in [false, true] {
        let plan = Plan { guarded, max_events: 1_000_000, ..subject.plan.clone() };
        assert_eq!(*subject.run(&plan).ended(), End::Finished, "guarded: {guarded}");
    }
}
