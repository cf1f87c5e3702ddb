//! Threads begin and end as they would without us, and so does the process.

mod support;

use support::Built;
use threadbare_trace::{EventKind, Failure, FailureKind, Policy};

#[test]
fn threads_end_and_are_joined() {
    Built::new("threads.c").check(&[
        ("results", &["7 8"]),
        ("errors", &["1 0 1 1"]),
        ("alive", &["0"]),
        ("joins", &["joined at once", "joined in time", "timed out"]),
        ("main_returns", &["", "x"]),
        ("main_leaves", &["xy", "yx"]),
        ("exit_in_thread", &["exit code 3"]),
        ("keys", &["first other again own"]),
        ("keys_at_exit", &[""]),
        ("keys_of_main", &["main"]),
        ("cleaning_up", &["inner inner outer joined"]),
        ("errnos", &["1"]),
        ("thread_variables", &["4"]),
    ]);
}

/// One schedule of each kind is enough here: what matters is the memory, and there is much of it.
#[test]
fn threads_have_the_stacks_they_ask_for() {
    let built = Built::new("threads.c");
    let mut wrong = Vec::new();
    for (scenario, expected) in [
        ("default_stack", "Success 5000"),
        ("small_stack", "Success 10"),
        ("large_stack", "Success 10000"),
        ("huge_stack", "Success 50000"),
        ("impossible_stack", "Resource temporarily unavailable 0"),
        ("own_stack", "Success 500"),
    ] {
        let mut subject = built.scenario(scenario);
        for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }] {
            let plan = subject.under(policy);
            let outcome = support::outcome(&subject.run(&plan));
            if outcome != expected {
                wrong.push(format!("{scenario}: {outcome}, expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn threads_are_named_by_who_created_them() {
    let built = Built::new("threads.c");
    built.sample(&[("nested", &["4"])]);
    let mut subject = built.scenario("nested");
    for seed in 0..20 {
        let plan = subject.under(Policy::Random { seed });
        let run = subject.run(&plan);
        let mut names: Vec<String> = run.thread_ids().iter().map(ToString::to_string).collect();
        names.sort();
        assert_eq!(names, ["0", "0.1", "0.1.1", "0.1.2", "0.2", "0.2.1", "0.2.2"]);
    }
}

#[test]
fn two_hundred_threads() {
    let built = Built::new("threads.c");
    let mut subject = built.scenario("many");
    let plan = subject.under(Policy::Random { seed: 1 });
    // The first run makes the threads' stacks itself; later ones find them made.
    let runs: Vec<Vec<u8>> = (0..3)
        .map(|_| {
            let run = subject.run(&plan);
            assert_eq!((support::outcome(&run), run.threads()), ("200".to_owned(), 201));
            run.bytes().to_vec()
        })
        .collect();
    assert!(runs[0] == runs[1] && runs[1] == runs[2], "the first run differs from later ones");
    assert_eq!(subject.repeats_and_replays(), Vec::<String>::new());
}

/// That our threads take more room than the system's, which are used again, is nothing that a program may hear of.
#[test]
fn a_program_that_needs_more_threads_than_there_are_is_stopped() {
    let built = Built::new("threads.c");
    for (scenario, expected) in [("too_many_in_turn", "EventBound"), ("too_many_at_once", "exit code 90")] {
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::RunToBlock);
        assert_eq!(support::outcome(&subject.run(&plan)), expected, "{scenario}");
    }
}

#[test]
fn failures_are_told_apart() {
    Built::new("failures.c").check(&[
        ("aborts", &["aborted"]),
        ("asserts", &["assertion failed"]),
        ("null_read", &["SIGSEGV"]),
        ("division", &["SIGFPE"]),
        ("stack_overflow", &["SIGSEGV"]),
        ("raised", &["SIGABRT"]),
        ("null_call", &["SIGSEGV"]),
        ("exit_now", &["exit code 3"]),
        ("double_free", &["double free"]),
        ("code", &["exit code 3"]),
        ("main_crashes", &["SIGSEGV"]),
    ]);
}

/// `atexit` is a function that libtsan has and libc.so has not, so the linker takes it from there.
#[test]
fn exit_handlers_run_to_their_end() {
    Built::new("handlers.c")
        .check(&[("handlers", &["handler last"]), ("handlers_after_main", &["handler last"])]);
}

/// The place of a failure is the thread and the line that failed.
#[test]
fn failures_have_a_place() {
    let built = Built::new("failures.c");
    for (scenario, thread, function) in [
        ("aborts", 1, "abort_here"),
        ("asserts", 1, "assert_here"),
        ("null_read", 1, "read_null"),
        ("null_in_library", 1, "measure_null"),
        ("division", 1, "divide"),
        ("stack_overflow", 1, "endless"),
        ("double_free", 1, "free_twice"),
        ("main_crashes", 0, "main_crashes"),
    ] {
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::RunToBlock);
        let trace = subject.run(&plan).trace();
        let Some(&Failure { at, .. }) = trace.end.failure() else { panic!("{scenario}: {:?}", trace.end) };
        assert_eq!(at.thread.number(), thread, "{scenario}");
        let place = trace.location(at.location).frames.first();
        assert_eq!(place.map(|frame| frame.function.as_str()), Some(function), "{scenario}");
    }
}

#[test]
fn a_stack_overflow_is_called_so() {
    let built = Built::new("failures.c");
    let mut subject = built.scenario("stack_overflow");
    let plan = subject.under(Policy::RunToBlock);
    let run = subject.run(&plan);
    let failure = run.ended().failure().expect("a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Signal(11), "stack overflow"));
}

/// Who waits for whom: each of the two threads for the other, and main for the first.
#[test]
fn a_deadlock_names_the_holders() {
    let built = Built::new("mutex.c");
    let mut subject = built.scenario("crossed");
    subject.learn();
    let plans = subject.plans();
    let plan = plans
        .iter()
        .find(|plan| subject.run(plan).ended().failure_kind() == Some(FailureKind::Deadlock))
        .expect("one of the schedules deadlocks");
    let trace = subject.run(plan).trace();
    let waits: Vec<_> = trace
        .pending
        .iter()
        .map(|pending| {
            let holders: Vec<u32> = pending.holders.iter().map(|holder| holder.number()).collect();
            (pending.thread.number(), pending.kind, pending.blocked, holders)
        })
        .collect();
    assert_eq!(
        waits,
        [
            (0, EventKind::Join, true, vec![1]),
            (1, EventKind::Lock, true, vec![2]),
            (2, EventKind::Lock, true, vec![1]),
        ]
    );
    let objects: Vec<_> =
        trace.pending.iter().map(|pending| trace.object(pending.object).display.clone()).collect();
    assert_eq!(objects[1..], ["b", "a"]);
}
