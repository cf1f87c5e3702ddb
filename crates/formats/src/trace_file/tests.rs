//! What the trace format promises: every trace survives, every damaged file is refused or read, nothing
//! panics.

use proptest::prelude::*;

use super::*;
use threadbare_trace::{
    End, EndKind, Event, Failure, FailureKind, Frame, Location, LocationIndex, MemoryOrder, Object,
    ObjectIndex, ObjectName, Outcome, Pending, Related, Role, StackIndex, StackNode, ThreadId, ThreadIndex,
    Trace, TracePlace, arbitrary,
};

fn bytes_of(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(trace, &mut bytes).expect("a vector takes every write");
    bytes
}

fn place(thread: u32, location: u32, stack: u32) -> TracePlace {
    let (thread, location) = (ThreadIndex::new(thread), LocationIndex::new(location));
    TracePlace { thread, location, stack: StackIndex::new(stack) }
}

/// Two threads, and main waiting for the other at the end.
fn small() -> Trace {
    let event = |thread, kind, object, location, stack, value| Event {
        thread: ThreadIndex::new(thread),
        kind,
        order: MemoryOrder::Relaxed,
        outcome: Outcome::Done,
        size: 4,
        object: ObjectIndex::new(object),
        location: LocationIndex::new(location),
        stack: StackIndex::new(stack),
        value,
    };
    let frame = Frame { function: "go".into(), file: "a.c".into(), line: 300, column: 7 };
    Trace {
        program: "./a".into(),
        arguments: vec!["2".into()],
        threads: vec![ThreadId::main(), ThreadId::main().child(1)],
        objects: vec![
            Object::none(),
            Object { name: ObjectName::Global { symbol: "x".into(), offset: 8 }, display: "x[2]".into() },
            Object { name: ObjectName::Thread(ThreadIndex::new(1)), display: "thread 0.1".into() },
        ],
        locations: vec![Location::default(), Location { address: 0x401_000, frames: vec![frame] }],
        stacks: vec![
            StackNode::default(),
            StackNode { parent: StackIndex::EMPTY, location: LocationIndex::new(1) },
        ],
        events: vec![
            event(0, EventKind::Write, 1, 1, 1, 200),
            Event {
                order: MemoryOrder::SeqCst,
                outcome: Outcome::Failed,
                ..event(1, EventKind::AtomicRmw, 1, 1, 0, 0)
            },
            event(0, EventKind::Read, 1, 1, 1, 1),
        ],
        pending: vec![Pending {
            thread: ThreadIndex::MAIN,
            kind: EventKind::Join,
            object: ObjectIndex::new(2),
            location: LocationIndex::new(1),
            stack: StackIndex::new(1),
            blocked: true,
            holders: vec![ThreadIndex::new(1)],
        }],
        end: End::Failed(Failure {
            kind: FailureKind::Signal(11),
            message: "boom".into(),
            at: place(1, 1, 0),
            related: vec![Related { role: Role::Freed, at: place(0, 1, 1) }],
        }),
    }
}

/// The bytes of the small trace up to its end, which is where versions differ.
fn up_to_the_end(version: u8) -> Vec<u8> {
    #[rustfmt::skip]
    let bytes: &[&[u8]] = &[
        b"TBTRACE\n", &[version],
        &[3], b"./a",
        &[1], &[1], b"2",
        &[2], &[1, 0], &[2, 0, 1],                                           // threads
        &[2], &[0, 0], &[0x80, 0xc0, 0x80, 0x04, 1], &[2], b"go", &[3], b"a.c", &[0xac, 0x02, 7],
        &[2], &[0, 0], &[1, 1],                                              // stacks
        &[3], &[0, 0], &[1, 1], b"x", &[8, 4], b"x[2]", &[4, 1, 10], b"thread 0.1",
        &[3],
        &[0x02, 2, 2, 2, 4, 0xc8, 0x01],                                     // write of 200
        &[0xc5, 1, 0x15, 2, 0, 2, 4, 0],                                     // failed read-modify-write
        &[0x41, 0, 0, 0, 0, 4, 1],                                           // read of 1
        &[1], &[0, 18, 1, 2, 1, 1, 1, 1],                                    // pending
    ];
    bytes.concat()
}

/// Protects files on disk: what is written changes only with the version.
#[test]
fn the_bytes_of_version_5_are_these() {
    let end: &[&[u8]] = &[&[1, 3, 22, 4], b"boom", &[1, 1, 0], &[1], &[2, 0, 1, 1]];
    let expected = [up_to_the_end(5), end.concat()].concat();
    assert_eq!(bytes_of(&small()), expected);
    assert_eq!(read(&expected), Ok(small()));
}

/// Protects traces that were recorded before there were related places and stacks of failures.
#[test]
fn version_1_is_still_read() {
    let end_of = |bytes: &[&[u8]]| read(&[up_to_the_end(1), bytes.concat()].concat()).map(|trace| trace.end);
    let message = "write of 4 bytes; freed by thread 0 in go (a.c:300)";
    let at = place(1, 1, 0);
    let failed = Ok(End::Failed(Failure::new(FailureKind::UseAfterFree, message, at)));
    assert_eq!(end_of(&[&[1, 8, message.len() as u8], message.as_bytes(), &[1, 1]]), failed);
    assert_eq!(end_of(&[&[3]]), Ok(End::TimeLimit { at: None }));
    let unsupported = Ok(End::Unsupported { message: "fork".into(), at });
    assert_eq!(end_of(&[&[6, 4], b"fork", &[1, 1]]), unsupported);
}

/// Protects traces that were recorded before there were destroyed primitives, before places were watched, and before
/// atomic operations told that they changed nothing.
#[test]
fn older_versions_are_still_read() {
    for version in [2, 3, 4] {
        let mut bytes = bytes_of(&small());
        bytes[MAGIC.len()] = version;
        assert_eq!(read(&bytes), Ok(small()));
    }
}

/// Protects old readers: they refuse a file with what they do not know at its head, by its version.
#[test]
fn a_new_kind_needs_a_new_version() {
    let events = (EventKind::ALL.len(), MemoryOrder::ALL.len(), Outcome::ALL.len());
    let ends = (EndKind::ALL.len(), FailureKind::ALL.len(), Role::ALL.len());
    assert_eq!((VERSION, events, ends), (5, (40, 6, 6), (8, 17, 5)));
}

/// Protects every row of the table of failures: none is missing in files, and none is taken for another.
#[test]
fn every_kind_of_failure_survives() {
    for &kind in FailureKind::ALL {
        let mut trace = small();
        trace.end = End::Failed(Failure::new(kind.with_detail(-3), "words", TracePlace::default()));
        assert_eq!(read(&bytes_of(&trace)), Ok(trace));
    }
}

/// The alternatives of a rule of the grammar in the module's documentation.
fn alternatives(rule: &str) -> Vec<String> {
    let lines = include_str!("../trace_file.rs").lines().filter_map(|line| line.strip_prefix("//! "));
    let mut lines = lines.skip_while(|line| line.split_whitespace().next() != Some(rule));
    let first = lines.next().and_then(|line| line.split_once('=')).expect("the grammar has the rule").1;
    let more = lines.take_while(|line| line.trim_start().starts_with('|'));
    let text = std::iter::once(first).chain(more).collect::<Vec<_>>().join(" ");
    text.split('|').map(|words| words.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Protects whoever writes a reader of their own: the grammar has every number, with its name and what follows it.
#[test]
fn the_grammar_lists_every_number() {
    let debug_name = |debug: String| debug.split('(').next().unwrap_or_default().to_owned();
    let failures = FailureKind::ALL.iter().map(|kind| {
        let name = debug_name(format!("{kind:?}"));
        let detail = match kind {
            FailureKind::Signal(_) => ", signed: its number",
            FailureKind::ExitCode(_) => ", signed: the code",
            _ => "",
        };
        format!("{} {name}{detail}", kind.number())
    });
    assert_eq!(alternatives("failure"), failures.collect::<Vec<_>>());
    let roles = Role::ALL.iter().map(|&role| format!("{} {role:?}", role as u8));
    assert_eq!(alternatives("role"), roles.collect::<Vec<_>>());
    let ends = alternatives("end");
    assert_eq!(ends.len(), EndKind::ALL.len());
    for (line, &kind) in ends.iter().zip(EndKind::ALL) {
        assert!(
            line.starts_with(&format!("{} ", kind as u8)) && line.ends_with(&format!("{kind:?}")),
            "{line}"
        );
    }
}

#[test]
fn a_store_in_a_loop_takes_six_bytes() {
    let mut trace = small();
    let one = bytes_of(&trace).len();
    let last = trace.events[2];
    trace.events.extend([last; 100]);
    assert_eq!(bytes_of(&trace).len(), one + 100 * 6);
}

#[test]
fn events_beyond_one_buffer_are_all_written() {
    let mut trace = small();
    trace.events = trace.events.repeat(20_000);
    assert_eq!(read(&bytes_of(&trace)).as_ref(), Ok(&trace));
}

/// Replaces the one place where `from` stands in the small trace's bytes.
fn patched(from: &[u8], to: &[u8]) -> Vec<u8> {
    let bytes = bytes_of(&small());
    let at: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i..].starts_with(from)).collect();
    let [at] = at[..] else { panic!("{from:?} is at {at:?}") };
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn errors_say_where_and_what() {
    let error = |bytes: &[u8]| read(bytes).expect_err("the file is broken").to_string();
    assert_eq!(error(b""), "expected a Threadbare trace, found another kind of file");
    assert_eq!(error(b"\x7fELF\x02\x01\x01\0\0"), "expected a Threadbare trace, found another kind of file");
    assert_eq!(error(b"TBTRACE\n"), "expected a version at byte 8, found the end of the file");
    assert_eq!(error(b"TBTRACE\n\x06"), "expected version 1 to 5 of the trace format, found version 6");
    assert_eq!(
        error(&patched(b"boom", b"\xffoom")),
        "expected a message at byte 105, found bytes that are not UTF-8"
    );
    assert_eq!(
        error(&patched(&[0x41, 0, 0, 0, 0, 4, 1], &[0x3f, 0, 0, 0, 0, 4, 1])),
        "expected an event kind at byte 86, found 63"
    );
    let mut bytes = bytes_of(&small());
    bytes.push(0);
    assert_eq!(error(&bytes), "expected the end of the file at byte 118, found more");
}

#[test]
fn indices_outside_their_tables_are_refused() {
    let refused = |from: &[u8], to: &[u8], what: &str, size: usize| match read(&patched(from, to)) {
        Err(FormatError::OutOfRange { expected, entries, .. }) => {
            assert_eq!((expected, entries), (what, size))
        }
        other => panic!("{other:?}"),
    };
    refused(&[0x02, 2, 2, 2, 4], &[0x02, 4, 2, 2, 4], "a location", 2);
    refused(&[0x02, 2, 2, 2, 4], &[0x02, 1, 2, 2, 4], "a location", 2);
    refused(&[0x02, 2, 2, 2, 4], &[0x02, 2, 4, 2, 4], "a stack", 2);
    refused(&[0x02, 2, 2, 2, 4], &[0x02, 2, 2, 6, 4], "an object", 3);
    refused(&[0xc5, 1, 0x15], &[0xc5, 2, 0x15], "a thread", 2);
    refused(&[4, 1, 10, b't'], &[4, 2, 10, b't'], "a thread", 2);
    refused(&[2, 0, 0, 1, 1, 3], &[2, 0, 0, 1, 2, 3], "a stack's location", 2);
}

#[test]
fn an_event_without_any_thread_is_refused() {
    let mut trace = small();
    (trace.threads, trace.pending, trace.end) = (vec![], vec![], End::Finished);
    trace.objects.pop();
    trace.events.truncate(1);
    assert!(matches!(read(&bytes_of(&trace)), Err(FormatError::OutOfRange { entries: 0, .. })));
}

#[test]
fn a_stack_never_leads_in_a_circle() {
    for (stack, parent) in [(1, 1), (1, 2), (0, 1)] {
        let mut trace = small();
        trace.stacks[stack].parent = StackIndex::new(parent);
        assert!(read(&bytes_of(&trace)).is_err(), "stack {stack} has parent {parent}");
    }
}

#[test]
fn a_count_is_not_believed_beyond_the_bytes_that_are_left() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    // As the length of the program's path, and as the number of arguments.
    for start in [&[1][..], &[1, 0]] {
        let bytes = [MAGIC, start, &huge].concat();
        assert!(matches!(read(&bytes), Err(FormatError::Truncated { .. })));
    }
}

#[test]
fn a_number_is_at_most_64_bits() {
    let program_of = |len: &[u8]| read(&[MAGIC, &[1][..], len].concat());
    assert!(matches!(program_of(&[0xff; 11]), Err(FormatError::Unexpected { offset: 9, .. })));
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert!(matches!(program_of(&most), Err(FormatError::Truncated { offset: 9, .. })));
}

/// A trace that was read has only indices that a user of it may follow.
fn follow_everything(trace: &Trace) {
    for event in &trace.events {
        let _ = (trace.thread(event.thread), trace.object(event.object));
        trace
            .calls(event.location, event.stack)
            .for_each(|location| assert!(location.index() < trace.locations.len()));
    }
    let _ = trace.end_text();
    let _ = trace.steps();
}

proptest! {
    /// Protects recordings: what is read is what was written, whatever it ends in.
    #[test]
    fn every_trace_survives(trace in arbitrary::trace()) {
        prop_assert_eq!(read(&bytes_of(&trace)), Ok(trace));
    }

    #[test]
    fn any_bytes_are_read_or_refused(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&tail);
        let _ = read(&[MAGIC, &[VERSION][..], &tail].concat()).map(|trace| follow_everything(&trace));
    }

    #[test]
    fn no_part_of_a_file_passes_for_the_whole(trace in arbitrary::trace()) {
        let bytes = bytes_of(&trace);
        for len in 0..bytes.len() {
            prop_assert!(read(&bytes[..len]).is_err(), "{} of {} bytes", len, bytes.len());
        }
    }

    #[test]
    fn a_damaged_byte_never_leads_astray(trace in arbitrary::trace(), bytes in any::<[u8; 4]>()) {
        let mut file = bytes_of(&trace);
        for at in 0..file.len() {
            for byte in bytes {
                let good = std::mem::replace(&mut file[at], byte);
                let _ = read(&file).map(|trace| follow_everything(&trace));
                file[at] = good;
            }
        }
    }
}
