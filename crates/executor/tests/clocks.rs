//! What clocks say: time passes with a thread's own work, and never runs backwards between threads.

mod support;

use std::collections::BTreeSet;

use support::exhaust::exhaust;
use support::{Built, outcome};
use threadbare_trace::{End, Policy};

/// Protects programs that divide by a time they have measured: it is never nothing, whoever did the work.
#[test]
fn work_takes_time() {
    let built = Built::new("clocks.c");
    built.sample(&[
        ("divides", &["divided"]),
        ("usage", &["1 1 1 1"]),
        ("joined_work", &["divided"]),
        ("awaited_work", &["divided"]),
        ("deadlines", &["1 1 1"]),
    ]);
}

/// Protects programs that wait for a time to come: it comes, and until then they are not said to hang.
#[test]
fn a_loop_that_waits_for_a_clock_is_no_livelock() {
    let built = Built::new("clocks.c");
    built.sample(&[("waits", &["moved"]), ("spins_on_timer", &["over"])]);
    let mut subject = built.scenario("waits_for_long");
    let plan = subject.under(Policy::Random { seed: 1 });
    assert_eq!(*subject.run(&plan).ended(), End::EventBound);
}

/// A thread that hears of another's time in any way reads a later one.
#[test]
fn time_does_not_run_backwards_between_threads() {
    let built = Built::new("clocks.c");
    built.check(&[
        ("by_lock", &["in order"]),
        ("by_atomic", &["in order"]),
        ("by_race", &["in order"]),
        ("by_condition", &["in order"]),
        ("by_pipe", &["in order"]),
        ("by_barrier", &["in order"]),
    ]);
    built.sample(&[("by_signal", &["in order"])]);
}

/// Threads that have nothing to do with each other see the same times in every order, and the states that they come to
/// are the same.
#[test]
fn looks_at_clocks_commute() {
    let built = Built::new("clocks.c");
    let mut subject = built.scenario("independent");
    subject.learn();
    let mut last = BTreeSet::new();
    let exhausted = exhaust(&mut subject.worker, &subject.plan, 5000, |run| {
        last.insert((outcome(run), run.decisions().last().expect("somebody was picked").state));
    })
    .expect("the search ends");
    assert!(exhausted.complete && exhausted.runs > 5, "{exhausted:?}");
    assert_eq!(last.len(), 1, "{last:?}");
}
