//! Each oracle fires on a program made for it, and not on the same program without its bug.

mod support;

use std::collections::BTreeSet;

use support::{Built, Subject};
use threadbare_trace::{FailureKind, Plan, Trace};

/// The oracles: a scenario of `oracles.cpp`, the failure, the functions it may be in, and words of its message.
type Row = (&'static str, FailureKind, &'static [&'static str], &'static [&'static str]);

const ORACLES: [Row; 11] = [
    ("assertion", FailureKind::Assertion, &["assertion"], &["counter == 2"]),
    ("exit_code", FailureKind::ExitCode(3), &[], &[]),
    ("abortion", FailureKind::Abort, &["abort_if_seen"], &[]),
    ("exception", FailureKind::Exception, &["throw_if_seen"], &["runtime_error"]),
    ("fatal_signal", FailureKind::Signal(libc::SIGSEGV), &["use_if_there"], &["address 0x0"]),
    ("deadlock", FailureKind::Deadlock, &[], &[]),
    ("livelock", FailureKind::Livelock, &[], &[]),
    (
        "use_after_free",
        FailureKind::UseAfterFree,
        &["use"],
        &["write of 4 bytes", ALLOCATED, "freed by thread 0.1 in drop_early (oracles.cpp:"],
    ),
    (
        "double_free",
        FailureKind::DoubleFree,
        &["drop_if_there"],
        &[ALLOCATED, "freed by thread 0.", "in drop_if_there (oracles.cpp:"],
    ),
    ("invalid_free", FailureKind::InvalidFree, &["drop_if_there"], &[ALLOCATED, "4 bytes into"]),
    (
        "overflow",
        FailureKind::HeapOverflow,
        &["append"],
        &["write of 4 bytes, 0 bytes after the end of a block of 4 bytes", ALLOCATED],
    ),
];
const ALLOCATED: &str = "allocated by thread 0 in allocate (oracles.cpp:";

/// The plans that fail, over all the schedules, and how the others end.
fn failing(subject: &mut Subject) -> (Vec<Plan>, BTreeSet<String>) {
    // Enough for a livelock to show.
    subject.plan.max_events = 2000;
    subject.learn();
    let plans = subject.plans();
    let fails = |plan: &Plan| subject.run(plan).failure().is_some();
    let (failing, fine): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(fails);
    let endings = fine.iter().map(|plan| support::outcome(&subject.run(plan))).collect();
    (failing, endings)
}

/// What is wrong with a failing trace, for this row.
fn objection(row: &Row, trace: &Trace) -> Option<String> {
    let (scenario, kind, functions, words) = row;
    let (Some(failure), Some(message)) = (trace.end.failure(), trace.failure_message()) else {
        return Some(format!("{scenario}: {:?}", trace.end));
    };
    let found = failure.kind;
    let frame = trace.location(failure.at.location).frames.first();
    let function = frame.map_or("", |frame| frame.function.as_str());
    let placed = functions.is_empty() || functions.contains(&function);
    let said = words.iter().all(|word| message.contains(word));
    (found != *kind || !placed || !said).then(|| format!("{scenario}: {found} in {function:?}: {message}"))
}

/// Protects every promise to find something: under some schedules it is found, and nothing else is.
#[test]
fn each_fires_on_its_bug() {
    let built = Built::new("oracles.cpp");
    let mut wrong = Vec::new();
    for row in ORACLES {
        let mut subject = built.scenario(row.0);
        let (failing, _) = failing(&mut subject);
        if failing.is_empty() {
            wrong.push(format!("{}: no schedule shows it", row.0));
        }
        let some = failing.iter().step_by(10);
        let objections: BTreeSet<String> =
            some.filter_map(|plan| objection(&row, &subject.run(plan).trace())).collect();
        wrong.extend(objections);
        // Of a livelock only the way there is forced.
        if row.1 != FailureKind::Livelock {
            wrong.extend(subject.repeats_and_replays());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects from false alarms: the same schedules on the program without its bug.
#[test]
fn none_fires_on_the_fixed_program() {
    let built = Built::with_flags("oracles.cpp", &["-DFIXED"]);
    let mut wrong = Vec::new();
    for (scenario, ..) in ORACLES {
        let mut subject = built.scenario(scenario);
        let (failing, endings) = failing(&mut subject);
        if let Some(plan) = failing.first() {
            wrong.push(format!("{scenario}: {:?}", subject.run(plan).trace().end));
        }
        if endings != BTreeSet::from([String::new()]) {
            wrong.push(format!("{scenario}: {endings:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The races that any schedule shows, each run again so that it ends the run: its message.
fn races(built: &Built) -> BTreeSet<String> {
    let mut subject = built.scenario("data_race");
    subject.learn();
    let mut messages = BTreeSet::new();
    for plan in subject.plans() {
        let plan = Plan { races: true, ..plan };
        let races = subject.run(&plan).races(&plan);
        for (_, leading) in races {
            let trace = subject.run(&leading).trace();
            assert_eq!(
                trace.end.failure_kind(),
                Some(FailureKind::DataRace),
                "the race did not happen again"
            );
            messages.extend(trace.failure_message());
        }
    }
    messages
}

#[test]
fn data_races_are_seen_and_only_where_they_are() {
    let messages = races(&Built::new("oracles.cpp"));
    assert!(!messages.is_empty(), "no schedule shows the race");
    for message in messages {
        assert!(message.contains("of counter by thread 0.") && message.contains("in add"), "{message}");
    }
    assert_eq!(races(&Built::with_flags("oracles.cpp", &["-DFIXED"])), BTreeSet::new());
}
