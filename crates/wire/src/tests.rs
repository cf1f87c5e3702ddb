use std::collections::HashMap;
use std::sync::Arc;

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;

use crate::records::PC_BITS;
use crate::*;
use threadbare_trace::arbitrary::{self, kind, number, thread};
use threadbare_trace::{
    Afterwards, Demand, Distance, DistanceTable, End, EventKind, Extent, Failure, FailureKind, Guidance,
    KeptBack, MemoryOrder, MovedCode, Order, Others, Outcome, Outlasting, Plan, Policy, Preference, Relative,
    Sleeper, StackIndex, Step, ThreadIndex, Touch, Turns, Until, Watched, Waypoint, Weights, WhichThread,
};

fn extent() -> impl Strategy<Value = Extent> {
    prop_oneof![
        (number(), number()).prop_map(|(start, len)| Extent::Fixed { start, len }),
        (any::<[bool; 3]>(), number(), number()).prop_map(|(site, start, len)| Extent::Heap {
            site: site.map(u64::from),
            start,
            len
        }),
        (thread(), any::<i64>(), number()).prop_map(|(thread, start, len)| Extent::Stack {
            thread,
            start,
            len
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let until = prop_oneof![
        Just(Until::End),
        (kind(), any::<u64>(), any::<u32>()).prop_map(|(kind, address, occurrence)| Until::Before {
            kind,
            address,
            occurrence
        }),
    ];
    (thread(), until).prop_map(|(thread, until)| Step { thread, until })
}

fn policy() -> impl Strategy<Value = Policy> {
    let others = prop_oneof![Just(Others::ParentsFirst), Just(Others::ChildrenFirst)];
    prop_oneof![
        Just(Policy::RunToBlock),
        any::<u64>().prop_map(|seed| Policy::Random { seed }),
        (any::<u64>(), vec(any::<u64>(), 0..4))
            .prop_map(|(seed, changes)| Policy::Priorities { seed, changes }),
        (vec(thread(), 0..4), others, proptest::option::of(thread()))
            .prop_map(|(first, others, last)| Policy::Ordered(Order { first, others, last })),
        any::<u64>().prop_map(|seed| Policy::PartialOrder { seed }),
        (any::<u64>(), any::<[u64; 2]>(), vec((thread(), any::<u64>()), 0..4))
            .prop_map(|(seed, interesting, counts)| Policy::Weighted(Weights { seed, interesting, counts })),
        guidance().prop_map(Policy::Guided),
        (vec(sleeper(), 0..4), any::<u64>()).prop_map(|(asleep, from)| Policy::Awake { asleep, from }),
    ]
}

fn patience() -> impl Strategy<Value = OperationPatience> {
    use OperationPatience::{Endless, Limited, None};
    prop_oneof![Just(None), Just(Endless), Just(Limited)]
}

fn sleeper() -> impl Strategy<Value = Sleeper> {
    let touch = (0..5u8, 0..3u8, any::<[u64; 2]>()).prop_map(|(space, effect, [start, len])| {
        Touch::from_bytes(space, effect, start, len).expect("there are so many of each")
    });
    (any::<u32>(), vec(touch, 0..4))
        .prop_map(|(thread, touches)| Sleeper { thread: ThreadIndex::new(thread), touches: touches.into() })
}

/// Without tables, which travel apart.
fn guidance() -> impl Strategy<Value = Guidance> {
    let preference = prop_oneof![
        Just(Preference::Nearest(Arc::default())),
        Just(Preference::None),
        vec(thread(), 0..4).prop_map(Preference::Threads),
    ];
    let which = prop_oneof![
        Just(WhichThread::Any),
        thread().prop_map(WhichThread::Id),
        any::<u8>().prop_map(WhichThread::Variable),
    ];
    let demand = prop_oneof![Just(Demand::Pass), any::<u8>().prop_map(Demand::Arrive)];
    let kept_back = (thread(), any::<u64>()).prop_map(|(thread, before)| KeptBack { thread, before });
    let waypoint = (vec(any::<u64>(), 0..4), which, demand, vec(kept_back, 0..3))
        .prop_map(|(points, thread, demand, kept_back)| Waypoint { points, thread, demand, kept_back });
    let afterwards = prop::sample::select(&[Afterwards::RunOn, Afterwards::Random][..]);
    (any::<u64>(), vec(waypoint, 0..4), preference, afterwards).prop_map(
        |(seed, waypoints, preference, afterwards)| Guidance {
            seed,
            waypoints: waypoints.into(),
            preference,
            afterwards,
        },
    )
}

fn watched() -> impl Strategy<Value = Watched> {
    let relative = any::<(u32, u32, u64)>().prop_map(|(at, from, target)| Relative { at, from, target });
    let code = vec(any::<u8>(), 0..=MovedCode::MAX_BYTES);
    let moved = (any::<(u64, bool, u64)>(), code, vec(relative, 0..4));
    prop_oneof![
        any::<u64>().prop_map(Watched::Access),
        any::<u64>().prop_map(Watched::Call),
        moved.prop_map(|((place, is_before_call, start), code, relatives)| Watched::Code(MovedCode {
            place,
            is_before_call,
            start,
            code,
            relatives,
        })),
    ]
}

fn distance() -> impl Strategy<Value = Distance> {
    any::<[u32; 2]>().prop_map(|[to_waypoint, to_return]| Distance { to_waypoint, to_return })
}

fn guided_step() -> impl Strategy<Value = GuidedStep> {
    let distance = prop_oneof![0..u32::MAX - 1, Just(u32::MAX)];
    prop_oneof![Just(GuidedStep::Passes), distance.prop_map(GuidedStep::Distance)]
}

fn plan() -> impl Strategy<Value = Plan> {
    let turns =
        any::<[u32; 2]>().prop_map(|[thread, count]| Turns { thread: ThreadIndex::new(thread), count });
    let steps = (vec(turns, 0..6), vec(step(), 0..6), vec(watched(), 0..4));
    let outlasting = any::<(u32, u64)>().prop_map(|(sleeps, longest)| Outlasting { sleeps, longest });
    let numbers =
        (any::<u64>(), any::<u64>(), any::<u32>(), outlasting, proptest::option::of(any::<[u64; 2]>()));
    (steps, policy(), vec(extent(), 0..6), any::<[bool; 6]>(), numbers).prop_map(
        |(
            (turns, steps, watched),
            policy,
            extents,
            flags,
            (max_events, seed, spurious, outlasting, race),
        )| {
            let [strict, learn, functions, decisions, races, guarded] = flags;
            Plan {
                turns,
                decisions,
                spurious,
                outlasting,
                races,
                race,
                steps,
                strict,
                policy,
                tracked: extents.into_iter().collect(),
                watched,
                learn,
                guarded,
                functions,
                max_events,
                seed,
            }
        },
    )
}

/// A place of a process that may be.
fn code_place() -> impl Strategy<Value = CodePlace> + Clone {
    (0..MAX_THREADS, any::<u32>(), any::<u64>()).prop_map(|(thread, stack, pc)| CodePlace {
        thread: ThreadIndex::at(thread),
        stack: StackIndex::new(stack),
        pc,
    })
}

/// Shared memory where nothing was said yet.
fn silent() -> Box<EndSlot> {
    // SAFETY: all of it is atomic integers, for which zeros are valid.
    unsafe { Box::<EndSlot>::new_zeroed().assume_init() }
}

/// Words as a broken encoder might leave them: mostly small, so that they pass for tags and counts.
fn words() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![4 => 0..4u64, 1 => any::<u64>()], 0..40)
}

proptest! {
    /// Protects what the tool knows of an end: it is what the run has said, with places, words and all.
    #[test]
    fn an_end_survives_the_wire(ends in vec(arbitrary::end(code_place()), 1..4)) {
        let slot = silent();
        for end in ends {
            slot.put(&end);
            prop_assert_eq!(slot.get(), Some(end));
            slot.clear();
            prop_assert_eq!(slot.get(), None);
        }
    }

    #[test]
    fn a_plan_survives_the_wire(plan in plan()) {
        prop_assert_eq!(decode_plan(&encode_plan(&plan)), Ok(plan));
    }

    /// Protects guided runs: each address has the distances that were worked out for it, and no other address has any.
    #[test]
    fn tables_are_looked_up(tables in vec(hash_map(1..u64::MAX, distance(), 0..40), 0..4), other in any::<u64>()) {
        let encode = |table: &HashMap<u64, Distance>| DistanceTable {
            entries: table.iter().map(|(&address, &distance)| (address, distance)).collect(),
        };
        let words = encode_tables(&tables.iter().map(encode).collect::<Vec<_>>());
        for (number, table) in tables.iter().enumerate() {
            for address in table.keys().chain([&other, &0]) {
                prop_assert_eq!(Tables(&words).distance(number, *address), table.get(address).copied());
            }
        }
        prop_assert_eq!(Tables(&words).distance(tables.len(), other), None);
    }

    /// Protects the search of a guided test, which goes on from what a run tells of its decisions.
    #[test]
    fn guided_decisions_survive_the_wire(
        decisions in vec((any::<u32>(), vec(guided_step(), 1..130), any::<u64>(), patience()), 0..6),
    ) {
        let mut words = Vec::new();
        for (passed, steps, state, patience) in &decisions {
            let mut set = vec![0u64; steps.len().div_ceil(64)];
            (0..steps.len()).for_each(|thread| set[thread / 64] |= 1 << (thread % 64));
            let guidance = GuidedStep::words(*passed, steps);
            words.extend(Decisions::head(0, *state, (ThreadIndex::MAIN, *patience), set.len(), guidance.len()));
            words.extend(set);
            words.extend(guidance);
        }
        let read: Vec<_> = Decisions::new(&words)
            .map(|decision| {
                let steps = decision.steps().collect::<Vec<_>>();
                (decision.passed().unwrap_or(0), steps, decision.state, decision.patience)
            })
            .collect();
        prop_assert_eq!(read, decisions);
    }

    /// Protects explorations, which tell from it what an operation would do elsewhere and which steps to leave out.
    #[test]
    fn updates_and_rounds_survive_the_wire(
        found in any::<u64>(),
        (mask, value, changes_if_equal) in any::<(u64, u64, bool)>(),
        patience in patience(),
    ) {
        let update = Update { found, condition: Condition { mask, value, changes_if_equal } };
        for round in [Round::None, Round::PassedOver, Round::Last, Round::Abandoned] {
            let extra = update.words();
            let mut head = Decisions::head(1, 2, (ThreadIndex::MAIN, patience), 1, extra.len());
            let last = &mut head[Decisions::HEAD - 1];
            *last = Decisions::in_round(Decisions::in_round(Decisions::with_update(*last), Round::Last), round);
            let words = [&head[..], &[1], &extra].concat();
            let read: Vec<_> = Decisions::new(&words).collect();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!((read[0].round, read[0].update, read[0].patience), (round, Some(update), patience));
            prop_assert_eq!((read[0].passed(), read[0].alternatives().count()), (None, 1));
        }
    }

    #[test]
    fn extents_survive_the_wire(extents in vec(extent(), 0..8)) {
        prop_assert_eq!(decode_extents(&encode_extents(&extents)), Ok(extents));
    }

    #[test]
    fn any_words_are_decoded_or_garbled(words in words()) {
        let _ = decode_plan(&words);
        let _ = decode_extents(&words);
    }

    #[test]
    fn a_plan_that_was_cut_short_is_garbled(plan in plan()) {
        let words = encode_plan(&plan);
        for len in 0..words.len() {
            prop_assert_eq!(decode_plan(&words[..len]), Err(Garbled));
        }
    }

    #[test]
    fn a_damaged_word_never_panics(plan in plan(), damage in words()) {
        let mut words = encode_plan(&plan);
        for at in 0..words.len() {
            for &word in &damage {
                let good = std::mem::replace(&mut words[at], word);
                let _ = decode_plan(&words);
                words[at] = good;
            }
        }
    }

    #[test]
    fn a_record_gives_back_what_was_packed(
        pc in 0..1u64 << PC_BITS,
        size in number(),
        order in prop::sample::select(MemoryOrder::ALL),
        outcome in prop::sample::select(Outcome::ALL),
    ) {
        let record = Record {
            kind: EventKind::Allocate as u8,
            detail: Record::detail(order, outcome),
            thread: 0,
            stack: 0,
            pc_size: Record::pc_size(pc, size),
            object: 0,
            value: size,
        };
        prop_assert_eq!((record.pc(), record.size()), (pc, size));
        prop_assert_eq!((record.order(), record.outcome()), (Some(order), Some(outcome)));
    }
}

#[test]
fn switches_say_whose_turn_it_was() {
    let turns = |switches: &[(u64, usize)], count| {
        let switches: Vec<Switch> =
            switches.iter().map(|&(turn, thread)| Switch::new(turn, ThreadIndex::at(thread))).collect();
        let turns = Switch::turns(&switches, count);
        turns.iter().map(|turns| (turns.thread.number(), turns.count)).collect::<Vec<_>>()
    };
    assert_eq!(turns(&[], 0), []);
    assert_eq!(turns(&[], 3), [(0, 3)]);
    assert_eq!(turns(&[(0, 2)], 1), [(2, 1)], "the first turn is another thread's already");
    assert_eq!(turns(&[(1, 59_999), (4, 0)], 5), [(0, 1), (59_999, 3), (0, 1)]);
}

/// Protects every row of the table of failures: none is missing on the wire, and none is taken for another.
#[test]
fn every_kind_of_failure_survives_the_wire() {
    let slot = silent();
    for &kind in FailureKind::ALL {
        let end = End::Failed(Failure::new(kind.with_detail(-3), "words", CodePlace::default()));
        slot.put(&end);
        assert_eq!(slot.get(), Some(end));
    }
}

/// Protects the room for a message: what is too long is cut, not written past its end.
#[test]
fn a_message_that_is_too_long_is_cut() {
    let slot = silent();
    let end = |length| End::Unsupported { message: "x".repeat(length), at: CodePlace::default() };
    slot.put(&end(MESSAGE_BYTES + 1));
    assert_eq!(slot.get(), Some(end(MESSAGE_BYTES)));
}
