//! Memory, libc and the outside world, as a tested program meets them.

mod support;

use std::collections::BTreeSet;
use std::process::Command;

use support::{Built, outcome};
use threadbare_executor::{Limits, Target, Worker};
use threadbare_trace::{End, EndKind, EventKind, FailureKind, Plan, Policy, ThreadIndex, Turns};

#[test]
fn memory_keeps_its_contents() {
    let built = Built::new("memory.c");
    built.sample(&[("blocks", &["intact"]), ("sorting", &["sorted"])]);
    built.check(&[("overlapping", &["right"]), ("jumps", &["6"]), ("guarded", &["3"])]);
}

/// Where glibc has several versions of a function, the program gets the one it was compiled for.
#[test]
fn functions_are_of_the_present_version() {
    Built::new("versions.c").check(&[("conditions", &["0"]), ("paths", &["/"]), ("processors", &["some"])]);
}

/// A program that starts a thread for each processor starts the same ones on every machine.
#[test]
fn there_are_four_processors_everywhere() {
    Built::new("processors.c")
        .check(&[("counts", &["4 4 4 4 no limits"]), ("pinned", &["4 0 1 Invalid argument"])]);
}

/// What a run leaves in a pipe, an event descriptor or an epoll set that the program made before its first
/// thread, the next run does not find there.
#[test]
fn channels_made_early_are_each_runs_own() {
    Built::new("channels.c").check(&[
        ("pipes", &["2 bytes"]),
        ("sockets", &["1 byte"]),
        ("events", &["5"]),
        ("epolls", &["0, 1 ready"]),
        ("epolls_in_vain", &["deadlock"]),
    ]);
}

/// Timers are over in virtual time, in the order of their ends and of those of sleeps.
#[test]
fn timers_take_no_time() {
    Built::new("timers.c").check(&[
        ("epolls", &["1 ready after 1 h, all after 2 h"]),
        ("intervals", &["2 times in 2 h"]),
        ("settings", &["1 h left, -1, 8 bytes"]),
        ("never", &["deadlock"]),
        ("alone", &["8 bytes"]),
        ("polls", &["1 ready, 1 time"]),
        ("guards", &["in time"]),
        ("counts", &["2 3 1"]),
        ("numbers", &["1, -1"]),
        ("mistakes", &["-1 -1 -1 -1 0"]),
    ]);
}

#[test]
fn lines_are_printed_whole() {
    let built = Built::new("memory.c");
    let mut subject = built.scenario("printing");
    subject.learn();
    let outcomes = subject.outcomes();
    assert_eq!(outcomes.len(), 6, "every order of two and two lines: {outcomes:?}");
    for output in outcomes {
        assert!(output.lines().all(|line| line == "xxx" || line == "yyy"), "{output}");
    }
    assert_eq!(subject.repeats_and_replays(), Vec::<String>::new());
}

/// `memcpy` and its like read and write as a whole, and others see what was there before or after.
#[test]
fn copies_are_accesses() {
    let built = Built::new("memory.c");
    built.check(&[("copies", &["--", "x-", "xx"]), ("strings", &["aa 0", "bb 0"])]);
    let mut subject = built.scenario("copies");
    subject.learn();
    let plan = subject.under(Policy::RunToBlock);
    let trace = subject.run(&plan).trace();
    let accesses: Vec<(u32, EventKind, &str, u32)> = trace
        .events
        .iter()
        .filter(|event| event.thread != ThreadIndex::MAIN && event.kind.is_access())
        .map(|event| {
            (event.thread.number(), event.kind, trace.object(event.object).display.as_str(), event.size)
        })
        .collect();
    use EventKind::{Read, Write};
    assert_eq!(
        accesses,
        [
            (1, Write, "shared[0]", 32),
            (1, Read, "shared[0]", 16),
            (1, Write, "shared[32]", 16),
            (1, Read, "shared[0]", 32),
            (1, Write, "shared[8]", 32),
            (2, Write, "other[0]", 64),
            (2, Read, "shared[0]", 64),
        ]
    );
}

/// A copy reads at the very moment of its read event: if it saw what another thread wrote, that came before.
#[test]
fn a_copy_happens_when_its_events_do() {
    let built = Built::new("memory.c");
    let mut subject = built.scenario("copy_order");
    subject.learn();
    let mut wrong = 0;
    for plan in subject.plans() {
        let run = subject.run(&plan);
        let trace = run.trace();
        let position = |thread, kind| {
            trace.events.iter().position(|event| {
                (event.thread, event.kind) == (ThreadIndex::new(thread), kind)
                    && trace.object(event.object).display == "shared[0]"
            })
        };
        let (read, write) = (position(1, EventKind::Read), position(2, EventKind::Write));
        assert!(read.is_some() && write.is_some(), "both sides are events");
        wrong += u32::from((write < read) != (outcome(&run) == "after"));
    }
    assert_eq!(wrong, 0, "runs whose trace contradicts what the program saw");
}

#[test]
fn small_frames_may_be_many() {
    let built = Built::with_flags("memory.c", &["-O2", "-fno-optimize-sibling-calls"]);
    let mut subject = built.scenario("deep_recursion");
    for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }] {
        let plan = subject.under(policy);
        assert_eq!(outcome(&subject.run(&plan)), "380000 380000");
    }
}

#[test]
fn random_numbers_come_from_the_plan() {
    let built = Built::new("outside.c");
    let mut outputs = BTreeSet::new();
    for seed in [1, 1, 2] {
        let mut subject = built.scenario("chance");
        let plan = Plan { seed, ..subject.under(Policy::RunToBlock) };
        let output = outcome(&subject.run(&plan));
        assert_eq!(outcome(&subject.run(&plan)), output, "two runs of a plan");
        let numbers: BTreeSet<&str> = output.split_whitespace().collect();
        assert_eq!(numbers.len(), 5, "each source gives another number: {output}");
        outputs.insert(output);
    }
    assert_eq!(outputs.len(), 2, "one output for each seed: {outputs:?}");
}

#[test]
fn random_devices_of_cpp_come_from_the_plan() {
    let built = Built::new("random_device.cpp");
    let mut first = built.scenario("draw");
    let mut second = built.scenario("draw");
    let plan = Plan { seed: 7, ..first.under(Policy::RunToBlock) };
    assert_eq!(outcome(&first.run(&plan)), outcome(&second.run(&plan)));
    assert_ne!(outcome(&first.run(&plan)), outcome(&second.run(&Plan { seed: 8, ..plan.clone() })));
}

/// Programs name files by their process id, and some run at the same time.
#[test]
fn workers_have_process_ids_of_their_own() {
    let built = Built::new("outside.c");
    let id = |pid_offset: u32| {
        let program = built.program().to_owned();
        let target =
            Target { program, arguments: vec!["process_id".into()], pid_offset, ..Target::default() };
        let mut worker = Worker::start(&target, &Limits::default()).expect("it starts");
        outcome(&worker.run(&Plan::default()).expect("it runs"))
    };
    assert_eq!(id(0), id(0));
    assert_ne!(id(0), id(1));
}

/// What a run sees of the world does not depend on the runs before it.
#[test]
fn runs_do_not_see_each_other() {
    let built = Built::new("outside.c");
    let mut wrong = Vec::new();
    for (scenario, expected) in [
        ("process_id", None),
        ("file_position", None),
        ("early_output", Some("early late")),
        ("old_pipe", Some("early")),
        ("old_pair", Some("one")),
        ("old_event", Some("3")),
        ("old_epoll", Some("0 0 1 7")),
    ] {
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::RunToBlock);
        let outputs: BTreeSet<String> = (0..3).map(|_| outcome(&subject.run(&plan))).collect();
        if outputs.len() > 1 || expected.is_some_and(|expected| !outputs.contains(expected)) {
            wrong.push(format!("{scenario}: {outputs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_locked_stream_is_waited_for() {
    Built::new("outside.c").check(&[
        ("file_locks", &["xxyy", "yyxx"]),
        ("lock_and_print", &["xxy", "yxx"]),
        ("lock_and_put", &["xxy", "yxx"]),
        ("many_arguments", &["1 2 3 4 5 6 7 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5"]),
    ]);
}

#[test]
fn children_are_processes_of_their_own() {
    Built::new("outside.c").check(&[("forks", &["child 5"]), ("vforks", &["5"]), ("shells", &["6"])]);
}

/// What would block the one OS thread must block one thread of the program only, or be refused.
#[test]
fn waiting_for_the_outside_lets_others_run() {
    let built = Built::new("outside.c");
    let mut wrong = Vec::new();
    for (scenario, expected) in [
        ("pipes", "p"),
        ("polls", "p"),
        ("file_locks", "xxyy"),
        ("pausing", "done"),
        ("cancels", "cancelled"),
    ] {
        let mut subject = built.scenario(scenario);
        for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }] {
            let plan = subject.under(policy);
            let run = subject.run(&plan);
            let refused = run.ended().kind() == EndKind::Unsupported;
            let output = outcome(&run);
            if !refused && output != expected && !(scenario == "file_locks" && output == "yyxx") {
                wrong.push(format!("{scenario}: {output}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn c11_threads() {
    Built::new("c11.c").check(&[
        ("threads", &["xy xy", "yx xy"]),
        ("conditions", &["ready"]),
        ("once_and_keys", &["key key 1 3"]),
    ]);
}

#[test]
fn going_in_circles_is_a_livelock() {
    let built = Built::new("endless.c");
    let mut subject = built.scenario("polite");
    subject.learn();
    for policy in
        [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::Priorities { seed: 1, changes: vec![5] }]
    {
        let plan = subject.under(policy);
        let run = subject.run(&plan);
        assert!(run.ended().failure_kind() == Some(FailureKind::Livelock), "{:?}", run.ended());
    }
}

#[test]
fn a_long_run_is_no_livelock() {
    let built = Built::new("endless.c");
    let mut wrong = Vec::new();
    for scenario in ["counting", "locking"] {
        let mut subject = built.scenario(scenario);
        subject.learn();
        for policy in
            [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::Priorities { seed: 1, changes: vec![5] }]
        {
            let plan = subject.under(policy);
            let ended = subject.run(&plan).ended().clone();
            if ended != End::EventBound {
                wrong.push(format!("{scenario}: {ended:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A plan that never lets a thread have its turn shows nothing of what that would change.
#[test]
fn what_is_forced_is_no_livelock() {
    let built = Built::new("endless.c");
    let mut subject = built.scenario("waiting");
    subject.learn();
    // Main creates both; the first goes round and round.
    let turns = Turns::of([0; 2].into_iter().chain([1; 10_000]).map(ThreadIndex::new));
    let plan = Plan { turns, max_events: 5000, ..subject.under(Policy::RunToBlock) };
    assert_eq!(*subject.run(&plan).ended(), End::EventBound);
    assert_eq!(*subject.run(&subject.under(Policy::RunToBlock)).ended(), End::Finished);
}

/// A run that is stopped at its bound has that many schedule points and hardly more.
#[test]
fn the_bound_is_kept() {
    let built = Built::new("endless.c");
    let mut subject = built.scenario("counting");
    for max_events in [10, 100, 1000] {
        let plan = Plan { max_events, ..subject.under(Policy::Random { seed: 3 }) };
        let events = subject.run(&plan).events();
        assert!(
            (max_events..max_events + 5).contains(&events),
            "{events} events for a bound of {max_events}"
        );
    }
}

/// The same plan gives the same run in another process, too.
#[test]
fn two_workers_agree() {
    for (source, scenario) in [("mutex.c", "order"), ("memory.c", "blocks"), ("threads.c", "nested")] {
        let built = Built::new(source);
        let (mut one, mut two) = (built.scenario(scenario), built.scenario(scenario));
        one.learn();
        for seed in 0..10 {
            let plan = one.under(Policy::Random { seed });
            let first = one.run(&plan).bytes().to_vec();
            assert!(first == two.run(&plan).bytes(), "{scenario}, seed {seed}");
        }
    }
}

/// What is recorded besides does not change what happens.
#[test]
fn looking_closer_changes_nothing() {
    for (source, scenario) in [("mutex.c", "unprotected"), ("condition.c", "timed"), ("memory.c", "blocks")] {
        let built = Built::new(source);
        let mut subject = built.scenario(scenario);
        subject.learn();
        for seed in 0..10 {
            let plan = subject.under(Policy::Random { seed });
            let plain = support::points(&subject.run(&plan));
            let learning = support::points(&subject.run(&Plan { learn: true, ..plan.clone() }));
            let functions = support::points(&subject.run(&Plan { functions: true, ..plan.clone() }));
            assert!(plain == learning, "{scenario}, seed {seed}: learning");
            assert!(plain == functions, "{scenario}, seed {seed}: functions");
        }
    }
}

#[test]
fn shared_libraries_are_part_of_the_program() {
    let built = Built::new("endless.c");
    let library = built.directory().join("libwith.so");
    built.compile("library.c", &library, &["-shared", "-fPIC"]);
    let link = library.to_str().expect("a temporary path is text");
    built.compile("with_library.c", built.program(), &[link]);
    built.check(&[("unlocked", &["1", "2"]), ("locked", &["2"]), ("loading", &["loaded"])]);
}

/// Without the tool, a program behaves on our library as it does without.
#[test]
fn an_inactive_runtime_is_not_noticed() {
    let library = threadbare_executor::install().expect("the library can be installed");
    let mut wrong = Vec::new();
    let threads = Built::new("threads.c");
    let atomics = Built::with_flags("std_atomics.cpp", &["-mcx16"]);
    for (built, scenario, expected) in [
        (&threads, "results", "7 8"),
        (&threads, "keys", "first other again own"),
        (&threads, "keys_of_main", "main"),
        (&threads, "cleaning_up", "inner inner outer joined"),
        (&threads, "nested", "4"),
        (&threads, "many", "200"),
        (&threads, "huge_stack", "Success 50000"),
        (&threads, "errnos", "1"),
        (&atomics, "width128", "39 15 15 swapped"),
        (&atomics, "called_once_again", "2 1"),
        (&atomics, "futures", "42 1 1"),
        (&atomics, "barriers", "1"),
    ] {
        let mut command = Command::new(built.program());
        let done =
            command.arg(scenario).env("LD_LIBRARY_PATH", &library).output().expect("the program starts");
        let output = String::from_utf8_lossy(&done.stdout).trim_end().to_owned();
        if !done.status.success() || output != expected {
            let errors = String::from_utf8_lossy(&done.stderr);
            wrong.push(format!("{scenario}: {} {output:?} {errors}", done.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
