//! The exported text of small runs, letter by letter, and what holds for every trace.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use threadbare_trace::{
    End, Event, EventKind, Failure, FailureKind, Frame, Location, LocationIndex, MemoryOrder, Object,
    ObjectIndex, ObjectName, Outcome, Pending, Related, Role, StackIndex, StackNode, ThreadId, ThreadIndex,
    TracePlace, arbitrary,
};

fn object(display: &str) -> Object {
    Object { name: ObjectName::Global { symbol: display.into(), offset: 0 }, display: display.into() }
}

/// An event of `thread`, at the location with the number of the object.
fn event(thread: u32, kind: EventKind, object: u32) -> Event {
    Event {
        thread: ThreadIndex::new(thread),
        kind,
        order: MemoryOrder::Relaxed,
        outcome: Outcome::Done,
        size: 0,
        object: ObjectIndex::new(object),
        location: LocationIndex::new(object),
        stack: StackIndex::EMPTY,
        value: 0,
    }
}

fn place(thread: u32, location: u32) -> TracePlace {
    let (thread, location) = (ThreadIndex::new(thread), LocationIndex::new(location));
    TracePlace { thread, location, stack: StackIndex::EMPTY }
}

fn failed(event: Event) -> Event {
    Event { outcome: Outcome::Failed, ..event }
}

/// Main and its two children, with objects 1 and 2 for the children and then `names`.
fn trace(names: &[&str], events: Vec<Event>) -> Trace {
    let child = |ordinal| ThreadId::main().child(ordinal);
    let thread =
        |i| Object { name: ObjectName::Thread(ThreadIndex::new(i)), display: format!("thread {}", child(i)) };
    let frame = |line| Frame { function: "transfer".into(), file: "/src/account.c".into(), line, column: 1 };
    let location = |i: u64| Location { address: 0x1000 + i, frames: vec![frame(40 + i as u32)] };
    let mut objects = vec![Object::none(), thread(1), thread(2)];
    objects.extend(names.iter().map(|name| object(name)));
    Trace {
        program: "./account".into(),
        arguments: vec!["2".into()],
        threads: vec![ThreadId::main(), child(1), child(2)],
        locations: std::iter::once(Location::default())
            .chain((1..objects.len() as u64).map(location))
            .collect(),
        objects,
        stacks: vec![StackNode::default()],
        events,
        pending: vec![],
        end: End::Finished,
    }
}

fn text(export: impl Fn(&Trace, &mut Vec<u8>) -> io::Result<()>, trace: &Trace) -> String {
    let mut out = Vec::new();
    export(trace, &mut out).expect("a vector takes every write");
    String::from_utf8(out).expect("exports are UTF-8")
}

#[test]
fn accesses_locks_and_threads_are_said_in_std_and_csv() {
    use EventKind::*;
    let events = vec![
        event(0, Fork, 1),
        event(1, Begin, 0),
        event(1, Lock, 3),
        event(1, Write, 4),
        failed(event(0, Lock, 3)),
        event(1, Unlock, 3),
        event(1, End, 0),
        event(0, Join, 1),
        event(0, Read, 4),
        event(0, NotifyAll, 3),
    ];
    let trace = trace(&["lock", "accounts[1].amount"], events);
    assert_eq!(
        text(std, &trace),
        "\
T0|fork(T1)|1
T1|acq(lock)|3
T1|w(accounts[1].amount)|4
T1|rel(lock)|3
T0|join(T1)|1
T0|r(accounts[1].amount)|4
"
    );
    assert_eq!(
        text(csv, &trace),
        "\
start(T1)
,acq(lock)
,w(accounts[1].amount)
,rel(lock)
join(T1)
r(accounts[1].amount)
"
    );
}

#[test]
fn atomics_are_reads_and_writes() {
    use EventKind::*;
    let events = vec![
        event(0, AtomicLoad, 3),
        event(0, AtomicStore, 3),
        event(0, AtomicRmw, 3),
        failed(event(0, AtomicRmw, 3)),
        event(0, Fence, 0),
    ];
    assert_eq!(text(csv, &trace(&["a"], events)), "r(a)\nw(a)\nr(a)\nw(a)\nr(a)\n");
}

#[test]
fn a_writer_takes_the_lock_of_every_reader() {
    use EventKind::*;
    let events = vec![
        event(1, ReadLock, 3),
        event(2, ReadLock, 3),
        event(1, ReadUnlock, 3),
        event(2, ReadUnlock, 3),
        event(0, Lock, 3),
        event(0, Unlock, 3),
    ];
    assert_eq!(
        text(csv, &trace(&["rw"], events)),
        "\
,acq(rw#r1)
,,acq(rw#r2)
,rel(rw#r1)
,,rel(rw#r2)
acq(rw)
acq(rw#r1)
acq(rw#r2)
rel(rw#r2)
rel(rw#r1)
rel(rw)
"
    );
}

#[test]
fn a_recursive_lock_is_taken_once_and_what_is_not_held_is_not_released() {
    use EventKind::*;
    let events = vec![
        event(0, Unlock, 3),
        event(0, Lock, 3),
        event(0, Lock, 3),
        event(0, Unlock, 3),
        event(1, Unlock, 3),
        event(0, Unlock, 3),
    ];
    assert_eq!(text(csv, &trace(&["m"], events)), "acq(m)\nrel(m)\n");
}

#[test]
fn names_are_made_safe_and_stay_apart() {
    let names = ["a b", "a|b", "f(x,\ny)", "", "x#r1", "é"];
    let events = (3..9).map(|object| event(0, EventKind::Read, object)).collect();
    assert_eq!(text(csv, &trace(&names, events)), "r(a_b#3)\nr(a_b#4)\nr(f_x__y_)\nr(#6)\nr(x#r1#7)\nr(é)\n");
}

#[test]
fn json_resolves_names_and_leaves_out_what_says_nothing() {
    use EventKind::*;
    let events = vec![
        event(0, Fork, 1),
        Event { size: 4, value: 100, ..event(1, Write, 3) },
        Event { size: 8, order: MemoryOrder::SeqCst, ..failed(event(2, AtomicRmw, 4)) },
        event(1, Yield, 0),
    ];
    let mut trace = trace(&["accounts[1].amount", "flag"], events);
    let at = place(1, 3);
    trace.end = threadbare_trace::End::Failed(threadbare_trace::Failure::new(
        FailureKind::Assertion,
        "`sum == 200`",
        at,
    ));
    trace.pending = vec![Pending {
        thread: ThreadIndex::MAIN,
        kind: Join,
        object: ObjectIndex::new(1),
        location: LocationIndex::NONE,
        stack: StackIndex::EMPTY,
        blocked: true,
        holders: vec![ThreadIndex::new(1)],
    }];
    assert_eq!(
        text(json, &trace),
        r#"{"program":"./account","arguments":["2"],"threads":["0","0.1","0.2"],"events":4}
{"thread":"0","kind":"fork","object":"thread 0.1","location":"account.c:41","function":"transfer","value":"0x0","outcome":"done"}
{"thread":"0.1","kind":"write","object":"accounts[1].amount","location":"account.c:43","function":"transfer","size":4,"value":"0x64","outcome":"done"}
{"thread":"0.2","kind":"atomic-rmw","object":"flag","location":"account.c:44","function":"transfer","size":8,"value":"0x0","order":"seq-cst","outcome":"failed"}
{"thread":"0.1","kind":"yield","value":"0x0","outcome":"done"}
{"end":"failed","failure":"assertion failed","message":"`sum == 200`","thread":"0.1","location":"account.c:43","function":"transfer","pending":[{"thread":"0","kind":"join","object":"thread 0.1","blocked":true,"holders":["0.1"]}]}
"#
    );
}

#[test]
fn json_describes_every_end() {
    let last_line = |end| {
        let trace = Trace { end, ..trace(&[], vec![]) };
        text(json, &trace).lines().last().expect("there is a last line").to_owned()
    };
    assert_eq!(last_line(End::Finished), r#"{"end":"finished","pending":[]}"#);
    assert_eq!(last_line(End::EventBound), r#"{"end":"event-bound","pending":[]}"#);
    assert_eq!(last_line(End::TimeLimit { at: None }), r#"{"end":"time-limit","pending":[]}"#);
    let at = place(1, 2);
    assert_eq!(
        last_line(End::TimeLimit { at: Some(at) }),
        r#"{"end":"time-limit","thread":"0.1","location":"account.c:42","function":"transfer","pending":[]}"#
    );
    assert_eq!(last_line(End::MemoryLimit), r#"{"end":"memory-limit","pending":[]}"#);
    assert_eq!(
        last_line(End::Diverged { step: 3, reason: "0.1 is blocked".into() }),
        r#"{"end":"diverged","step":3,"message":"0.1 is blocked","pending":[]}"#
    );
    assert_eq!(
        last_line(End::Unsupported { message: "vfork".into(), at: TracePlace::default() }),
        r#"{"end":"unsupported","message":"vfork","thread":"0","pending":[]}"#
    );
    assert_eq!(
        last_line(End::Exec { program: "/bin/sh".into(), at: TracePlace::default() }),
        r#"{"end":"exec","message":"/bin/sh","thread":"0","pending":[]}"#
    );
    let mut failure = Failure::new(FailureKind::DoubleFree, "a block is freed again", TracePlace::default());
    failure.related = vec![Related { role: Role::Freed, at }];
    assert_eq!(
        last_line(End::Failed(failure)),
        r#"{"end":"failed","failure":"double free","message":"a block is freed again; freed by thread 0.1 in transfer (account.c:42)","thread":"0","related":[{"role":"freed","thread":"0.1","location":"account.c:42","function":"transfer"}],"pending":[]}"#
    );
}

/// Protects readers of the export: every kind of failure is written, with the words of the table.
#[test]
fn json_names_every_kind_of_failure() {
    for &kind in FailureKind::ALL {
        let end = End::Failed(Failure::new(kind, "", TracePlace::default()));
        let text = text(json, &Trace { end, ..trace(&[], vec![]) });
        assert!(text.contains(&format!(r#""failure":"{kind}","message":"""#)), "{text}");
    }
}

/// Protects the form of texts: what JSON demands is escaped, and all else is written as it is.
#[test]
fn json_texts_are_escaped() {
    let mut trace = trace(&[], vec![]);
    trace.program = "a \"quoted\\path\"\n\r\t\0\u{1f}\u{7f}\u{2028}é😀/[{:".into();
    trace.arguments = vec![String::new()];
    assert_eq!(
        text(json, &trace).lines().next(),
        Some(concat!(
            r#"{"program":"a \"quoted\\path\"\n\r\t\u0000\u001f"#,
            "\u{7f}\u{2028}",
            r#"é😀/[{:","arguments":[""],"threads":["0","0.1","0.2"],"events":0}"#
        ))
    );
}

/// Fails on a line that RAPID would not read as it was meant.
fn check_std_line(line: &str) -> Result<(), TestCaseError> {
    let fields: Vec<&str> = line.split('|').collect();
    let [thread, operation, location] = fields[..] else {
        return Err(TestCaseError::fail(format!("{line:?} has {} fields", fields.len())));
    };
    prop_assert!(thread.strip_prefix('T').is_some_and(|index| index.parse::<u32>().is_ok()));
    prop_assert!(location.parse::<i32>().is_ok(), "location of {:?}", line);
    let (verb, operand) = operation.split_once('(').expect("an operation has an operand");
    prop_assert!(["r", "w", "acq", "rel", "fork", "join"].contains(&verb), "verb of {:?}", line);
    let operand = operand.strip_suffix(')').expect("an operand ends in a parenthesis");
    let allowed = |c: char| !c.is_whitespace() && !c.is_control() && !"(),|".contains(c);
    prop_assert!(!operand.is_empty() && operand.chars().all(allowed), "operand of {:?}", line);
    Ok(())
}

proptest! {
    #[test]
    fn std_is_well_formed(trace in arbitrary::trace()) {
        let mut held = HashSet::new();
        for line in text(std, &trace).lines() {
            check_std_line(line)?;
            let (thread, rest) = line.split_once('|').expect("checked");
            let (operation, _) = rest.split_once('|').expect("checked");
            if let Some(lock) = operation.strip_prefix("acq") {
                prop_assert!(held.insert((thread, lock)), "taken again: {line}");
            } else if let Some(lock) = operation.strip_prefix("rel") {
                prop_assert!(held.remove(&(thread, lock)), "not held: {line}");
            }
        }
    }

    #[test]
    fn csv_has_the_operations_of_std(trace in arbitrary::trace()) {
        let (std, csv) = (text(std, &trace), text(csv, &trace));
        prop_assert_eq!(std.lines().count(), csv.lines().count());
        for (std, csv) in std.lines().zip(csv.lines()) {
            let cell = csv.trim_start_matches(',').replace("start(", "fork(");
            let thread = csv.len() - csv.trim_start_matches(',').len();
            prop_assert!(std.starts_with(&format!("T{thread}|{cell}|")), "{std:?} and {csv:?}");
        }
    }

    #[test]
    fn json_has_one_line_for_each_event(trace in arbitrary::trace()) {
        let text = text(json, &trace);
        prop_assert_eq!(text.lines().count(), trace.events.len() + 2);
        for line in text.lines() {
            let line: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(line);
            prop_assert!(line.is_ok(), "{:?}", line);
        }
    }

    #[test]
    fn names_are_unique(trace in arbitrary::trace()) {
        let names = names(&trace);
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), trace.objects.len());
    }
}
