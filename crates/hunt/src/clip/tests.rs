//! Clips of runs, from the trace through the text and back.

use proptest::prelude::*;
use threadbare_trace::{
    End, Event, Failure, Location, LocationIndex, MemoryOrder, Object, ObjectIndex, Outcome, Outlasting,
    Related, Role, StackIndex, ThreadIndex, TracePlace, arbitrary,
};

use super::*;

/// A program with names: the one that runs these tests.
fn program() -> Program {
    Program::open(&std::env::current_exe().expect("the path of this test")).expect("a program")
}

fn origin() -> Origin {
    Origin {
        directory: None,
        target: "a.c".into(),
        compiler_arguments: Vec::new(),
        arguments: Vec::new(),
        input: None,
    }
}

/// What a reader of the clip's text gets.
fn written_and_read(clip: &Clip) -> Clip {
    clip.to_string().parse().expect("what was written can be read")
}

/// A main thread that does these operations at these addresses.
fn trace(operations: &[(EventKind, u64)], end: End<TracePlace>) -> Trace {
    let addresses = operations.iter().map(|&(_, address)| Location { address, frames: Vec::new() });
    let event = |(number, &(kind, _)): (usize, &(EventKind, u64))| Event {
        thread: ThreadIndex::MAIN,
        kind,
        order: MemoryOrder::Relaxed,
        outcome: Outcome::Done,
        size: 0,
        object: ObjectIndex::NONE,
        location: LocationIndex::at(number + 1),
        stack: StackIndex::EMPTY,
        value: 0,
    };
    Trace {
        program: String::new(),
        arguments: Vec::new(),
        threads: vec![ThreadId::main()],
        objects: vec![Object::none()],
        locations: std::iter::once(Location::default()).chain(addresses).collect(),
        stacks: vec![Default::default()],
        events: operations.iter().enumerate().map(event).collect(),
        pending: Vec::new(),
        end,
    }
}

/// No module lies there, so that there is no name.
const NAMELESS: u64 = 0x10;

/// Protects the replay of every kind of failure: a clip of it, written and read, is kept by the same run, and by no run
/// that ends otherwise.
#[test]
fn a_clip_of_every_failure_promises_that_failure() {
    let program = program();
    for &kind in FailureKind::ALL {
        let mut failure = Failure::new(kind.with_detail(3), "at (a.c:12)", TracePlace::default());
        failure.related = vec![Related { role: Role::Allocated, at: TracePlace::default() }];
        let failed = trace(&[(EventKind::Lock, NAMELESS)], End::Failed(failure.clone()));
        let clip = written_and_read(&clip(&program, &Plan::default(), &failed, &origin()));
        assert_eq!(clip.finding, kind.finding());
        assert!(is_as_promised(&clip, &failed), "{kind}: {clip}");
        assert_eq!(compare(&clip, &program, &failed), None);
        let others = FailureKind::ALL.iter().filter(|other| other.finding() != kind.finding());
        for &other in others {
            let end = End::Failed(Failure { kind: other, ..failure.clone() });
            assert!(!is_as_promised(&clip, &Trace { end, ..failed.clone() }), "{kind} and {other}");
        }
        failure.message = "other words".into();
        assert!(!is_as_promised(&clip, &Trace { end: End::Failed(failure), ..failed.clone() }));
        assert!(!is_as_promised(&clip, &Trace { end: End::Finished, ..failed }));
    }
}

/// Protects clips of anomalies that did no harm: they promise events alone.
#[test]
fn a_clip_of_no_failure_promises_none() {
    let program = program();
    let finished = trace(&[(EventKind::Lock, NAMELESS)], End::Finished);
    let clip = written_and_read(&clip(&program, &Plan::default(), &finished, &origin()));
    assert_eq!((clip.finding.as_str(), clip.message.as_str()), ("", ""));
    assert!(is_as_promised(&clip, &finished));
}

/// Protects replays: the plan that a clip was made of comes back, for code with a name and for code without.
#[test]
fn a_plan_comes_back_from_its_clip() {
    let program = program();
    let until = |kind, address, occurrence| Until::Before { kind, address, occurrence };
    let step = |until| Step { thread: ThreadId::main().child(1), until };
    let plan = Plan {
        steps: vec![
            step(until(EventKind::Lock, NAMELESS, 2)),
            step(until(EventKind::End, 0, 1)),
            step(Until::End),
        ],
        tracked: [
            Extent::Heap { site: [NAMELESS, 0, 0], start: 8, len: 4 },
            Extent::Fixed { start: NAMELESS, len: 8 },
            Extent::Stack { thread: ThreadId::main(), start: -16, len: 8 },
        ]
        .into_iter()
        .collect(),
        strict: true,
        max_events: 77,
        spurious: 1,
        outlasting: Outlasting { sleeps: 1, longest: 5 },
        guarded: true,
        seed: 5,
        ..Plan::default()
    };
    let clip = written_and_read(&clip(&program, &plan, &trace(&[], End::Finished), &origin()));
    assert_eq!(clip.sites, [ClipSite::Address(NAMELESS)]);
    assert_eq!(resolve(&clip, &program), Ok(plan));
}

/// Protects the message for a program that has changed.
#[test]
fn a_step_at_code_that_is_gone_is_not_resolved() {
    let program = program();
    let plan = Plan {
        steps: vec![Step {
            thread: ThreadId::main(),
            until: Until::Before { kind: EventKind::Write, address: NAMELESS, occurrence: 1 },
        }],
        ..Plan::default()
    };
    let mut clip = clip(&program, &plan, &trace(&[], End::Finished), &origin());
    let gone = Site {
        function: "gone".into(),
        file: "a.c".into(),
        line: 3,
        text: "x = 1;".into(),
        ..Site::default()
    };
    clip.sites[0] = ClipSite::Source(gone);
    let unresolved = resolve(&clip, &program).expect_err("there is no such function");
    assert_eq!(unresolved.step, 0);
    assert_eq!(unresolved.to_string(), "`x = 1;` (a.c:3 in gone) is not in the program any more");
}

/// Protects the message of a replay that goes another way: it names the first event that differs, and both sides.
#[test]
fn the_first_event_that_differs_is_named() {
    let program = program();
    let recorded = trace(&[(EventKind::Lock, NAMELESS), (EventKind::Unlock, NAMELESS)], End::Finished);
    let clip = written_and_read(&clip(&program, &Plan::default(), &recorded, &origin()));
    let moved = trace(&[(EventKind::Lock, NAMELESS), (EventKind::Unlock, NAMELESS + 1)], End::Finished);
    let divergence = compare(&clip, &program, &moved).expect("another address");
    let text = |seen: Option<Seen>| seen.map(|seen| seen.to_string());
    assert_eq!(divergence.event, 2);
    assert_eq!(text(divergence.expected).as_deref(), Some("thread 0: unlock at 0x10"));
    assert_eq!(text(divergence.actual).as_deref(), Some("thread 0: unlock at 0x11"));
    let short = trace(&[(EventKind::Lock, NAMELESS)], End::Finished);
    assert_eq!(compare(&clip, &program, &short).map(|divergence| divergence.actual), Some(None));
}

/// Protects replays after a rebuild: lines and indentation may move, and hashes in names change.
#[test]
fn a_site_is_the_same_after_its_line_has_moved() {
    let site = Site {
        function: "_ZN4bank3pay17h0123456789abcdefE".into(),
        file: "bank.rs".into(),
        line: 7,
        column: 3,
        text: "a  = b;".into(),
        callee: "__tsan_write4".into(),
        nth: 1,
    };
    let identity = |site: &Site| identity(&ClipSite::Source(site.clone()));
    let moved = Site {
        function: "_ZN4bank3pay17hfedcba9876543210E".into(),
        line: 9,
        text: "a = b;".into(),
        ..site.clone()
    };
    assert!(identity(&site) == identity(&moved));
    assert!(identity(&site) != identity(&Site { nth: 2, ..site.clone() }));
    let textless = |line| Site { line, text: String::new(), ..site.clone() };
    assert!(identity(&textless(7)) != identity(&textless(9)), "without a text, the line is what there is");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Protects every clip: whatever a trace holds, its clip survives as text and is kept by the same run.
    #[test]
    fn the_clip_of_any_trace_is_kept_by_that_trace(trace in arbitrary::trace()) {
        let program = Program::open(std::path::Path::new("/bin/true")).expect("a program");
        let plan = Plan { steps: trace.steps(), ..Plan::default() };
        let clip = clip(&program, &plan, &trace, &origin());
        let read: Clip = clip.to_string().parse().expect("what was written can be read");
        prop_assert_eq!(&read, &clip);
        prop_assert!(is_as_promised(&read, &trace));
        prop_assert_eq!(compare(&read, &program, &trace), None);
    }
}
