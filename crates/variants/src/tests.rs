//! The search against brute force, on programs of a model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use threadbare_search::Settings;
use threadbare_trace::Plan;

use crate::Reachability;
use crate::simulated::{Explored, Op, Program, all_classes, explored};

fn check(program: &Program, at_a_time: usize) -> Result<usize, String> {
    let Some(all) = all_classes(program, 60_000) else { return Ok(0) };
    let mut strategy = Reachability::new(Settings::new(Plan::default()));
    let Explored { classes: seen, wasted, blocked } = explored(program, &mut strategy, at_a_time);
    let set: BTreeSet<u64> = seen.iter().copied().collect();
    let problem = |what: &str| {
        Err(format!(
            "{what}: {} of {} classes in {} runs, {wasted} wasted, {blocked} blocked",
            set.len(),
            all.len(),
            seen.len()
        ))
    };
    if !set.is_subset(&all) {
        return problem("a class that is none");
    }
    if set != all {
        return problem("missed");
    }
    if seen.len() != set.len() {
        return problem("twice");
    }
    if wasted > 0 {
        return problem("wasted");
    }
    Ok(all.len())
}

#[test]
fn known_counts() {
    let readers = |n: usize| -> Program {
        std::iter::once(vec![Op::Write(0, 1)]).chain((0..n).map(|_| vec![Op::Read(0)])).collect()
    };
    assert_eq!(check(&readers(3), 1), Ok(8));
    assert_eq!(check(&vec![vec![Op::Add(0)]; 4], 1), Ok(24));
    let locked: Vec<Op> = [Op::Lock(0), Op::Add(0), Op::Unlock(0)].repeat(2);
    assert_eq!(check(&vec![locked; 2], 1), Ok(6));
    let lastzero: Program = vec![
        vec![Op::Read(2), Op::Unless(1), Op::Read(1)],
        vec![Op::Read(0), Op::Write(1, 1)],
        vec![Op::Read(1), Op::Write(2, 1)],
    ];
    assert!(check(&lastzero, 1).is_ok_and(|count| count > 0), "{:?}", check(&lastzero, 1));
}

fn op(kinds: u8) -> BoxedStrategy<Op> {
    let memory = prop_oneof![
        3 => (0..2u8).prop_map(Op::Read),
        3 => (0..2u8, 0..2u8).prop_map(|(v, value)| Op::Write(v, value)),
        2 => (0..2u8).prop_map(Op::Add),
        2 => (0..2u8, 0..2u8, 0..2u8).prop_map(|(v, old, new)| Op::Cas(v, old, new)),
        2 => (0..2u8).prop_map(Op::Unless),
    ];
    let sync = prop_oneof![
        3 => (0..2u8).prop_map(Op::Lock),
        1 => (0..2u8).prop_map(Op::TryLock),
        3 => (0..2u8).prop_map(Op::Unlock),
        2 => (0..1u8).prop_map(Op::Post),
        2 => (0..1u8).prop_map(Op::Take),
    ];
    let condition = prop_oneof![
        1 => (0..1u8).prop_map(Op::Wait),
        1 => (0..1u8).prop_map(Op::Notify),
        1 => (0..1u8).prop_map(Op::NotifyAll),
        1 => Just(Op::Lock(0)),
        1 => Just(Op::Unlock(0)),
    ];
    match kinds {
        0 => memory.boxed(),
        1 => prop_oneof![2 => memory, 2 => sync].boxed(),
        _ => prop_oneof![2 => memory, 1 => sync, 3 => condition].boxed(),
    }
}

fn program(kinds: u8) -> impl Strategy<Value = Program> {
    prop::collection::vec(prop::collection::vec(op(kinds), 1..5), 2..4)
}

/// Loops that wait, beside other operations.
fn waiting() -> impl Strategy<Value = Program> {
    let until = |op: Op, count: u8, value: u8| {
        let op: Vec<Op> = if count == 2 { vec![Op::Read(0), op] } else { vec![op] };
        op.into_iter().chain([Op::BackUnless(count, value)]).collect()
    };
    let part = prop_oneof![
        2 => (0..2u8, 1..3u8, 0..2u8).prop_map(move |(v, count, value)| until(Op::Read(v), count, value)),
        2 => (0..2u8, 0..2u8, 0..2u8).prop_map(|(v, on, until)| {
            vec![Op::Read(v), Op::Unless(on), Op::Read(1 - v), Op::BackUnless(3, until)]
        }),
        1 => (0..2u8).prop_map(move |v| until(Op::Cas(v, 0, 1), 1, 0)),
        1 => (0..1u8).prop_map(move |lock| until(Op::TryLock(lock), 1, 1)),
        4 => (0..2u8, 0..2u8).prop_map(|(v, value)| vec![Op::Write(v, value)]),
        1 => (0..2u8).prop_map(|v| vec![Op::Read(v)]),
        1 => (0..1u8).prop_map(|lock| vec![Op::Unlock(lock)]),
        1 => op(1).prop_map(|op| vec![op]),
    ];
    let thread = prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat());
    prop::collection::vec(thread, 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn memory(program in program(0), at_a_time in 1..5usize) {
        prop_assert!(check(&program, at_a_time).is_ok(), "{:?}", check(&program, at_a_time));
    }

    #[test]
    fn locks(program in program(1), at_a_time in 1..5usize) {
        prop_assert!(check(&program, at_a_time).is_ok(), "{:?}", check(&program, at_a_time));
    }

    #[test]
    fn loops_that_wait(program in waiting(), at_a_time in 1..5usize) {
        prop_assert!(check(&program, at_a_time).is_ok(), "{:?}", check(&program, at_a_time));
    }

    #[test]
    fn conditions(program in program(2), at_a_time in 1..5usize) {
        prop_assert!(check(&program, at_a_time).is_ok(), "{:?}", check(&program, at_a_time));
    }
}

#[test]
fn a_notification_finds_nobody_wherever_it_comes() {
    use Op::*;
    let program: Program =
        vec![vec![Lock(0), Wait(0)], vec![Notify(0), Notify(0)], vec![Notify(0), TryLock(0)]];
    for at_a_time in 1..6 {
        assert_eq!(check(&program, at_a_time), Ok(28), "{at_a_time} at a time");
    }
}

/// Protects loops with two ways out, and knowledge of rounds in which the first look led to different second ones.
#[test]
fn peterson() {
    use Op::*;
    let first = [Write(0, 1), Write(2, 1), Read(1), Unless(1), Read(2), BackUnless(3, 0), Write(0, 0)];
    let second = [Write(1, 1), Write(2, 0), Read(0), Unless(1), ReadNot(2), BackUnless(3, 0), Write(1, 0)];
    assert_eq!(check(&vec![first.to_vec(), second.to_vec()], 1), Ok(4));
    assert_eq!(check(&vec![first.repeat(2), second.repeat(2)], 1), Ok(48));
}

/// Protects the claim that a compare-exchange which fails in another place too is known to fail there.
#[test]
fn an_operation_that_fails_elsewhere_too() {
    use Op::*;
    let program = vec![
        vec![Unlock(0), Cas(0, 0, 0)],
        vec![Unlock(0), Read(0), Read(0), Read(0), BackUnless(2, 1)],
        vec![Write(0, 0), Cas(0, 0, 1), BackUnless(1, 0)],
    ];
    assert_eq!(check(&program, 1), Ok(36));
}
