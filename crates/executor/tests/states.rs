//! The number that stands for the state of the program.

mod support;

use std::collections::BTreeSet;

use support::exhaust::exhaust;
use support::{Built, outcome};

/// The last states of all schedules of a scenario, each with what the program printed; and how many schedules.
fn last_states(source: &str, scenario: &str) -> (BTreeSet<(String, u64)>, u64) {
    let built = Built::new(source);
    let mut subject = built.scenario(scenario);
    subject.learn();
    let mut states = BTreeSet::new();
    let exhausted = exhaust(&mut subject.worker, &subject.plan, 5000, |run| {
        let last = run.decisions().last().expect("somebody was picked");
        states.insert((outcome(run), last.state));
    })
    .expect("the search ends");
    assert!(exhausted.complete);
    (states, exhausted.runs)
}

#[test]
fn schedules_that_end_in_the_same_state_have_the_same_number() {
    let (states, runs) = last_states("mutex.c", "either_way");
    assert!(runs > 10, "{runs} schedules");
    assert_eq!(states.len(), 1, "{states:?}");
}

/// Who was first can be read off the value that it found.
#[test]
fn what_threads_have_read_tells_states_apart() {
    let (states, _) = last_states("mutex.c", "protected");
    assert_eq!(states.len(), 2, "{states:?}");
}

/// Three letters in some order: what is printed differs, and so does the state.
#[test]
fn different_outcomes_are_different_states() {
    let (states, _) = last_states("mutex.c", "order");
    let outcomes: BTreeSet<&String> = states.iter().map(|(outcome, _)| outcome).collect();
    let numbers: BTreeSet<u64> = states.iter().map(|(_, state)| *state).collect();
    assert_eq!((outcomes.len(), numbers.len()), (6, 6));
}
