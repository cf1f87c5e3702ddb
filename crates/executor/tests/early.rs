//! Limits hold before the first thread too, and are named.

mod support;

use std::time::Duration;

use support::Built;
use threadbare_executor::{Limits, StartError, Target, Worker};

/// Starts a scenario that comes to no end.
fn refused(built: &Built, scenario: &str, limits: &Limits) -> StartError {
    let target =
        Target { program: built.program().to_owned(), arguments: vec![scenario.into()], ..Target::default() };
    match Worker::start(&target, limits) {
        Ok(_) => panic!("{scenario}: it started"),
        Err(error) => error,
    }
}

/// The time limit is never reached.
#[test]
fn memory_is_limited_before_the_first_thread() {
    let built = Built::new("early.c");
    let limits = Limits { time: Duration::from_secs(600), memory: 300 << 20, ..Limits::default() };
    for scenario in ["allocates", "children_allocate"] {
        let error = refused(&built, scenario, &limits);
        assert!(matches!(error, StartError::TooMuchMemory { limit, .. } if limit == 300 << 20), "{error}");
    }
    let error = refused(&built, "allocates", &limits).to_string();
    assert!(error.ends_with("used more than 300 MiB of memory before it started a thread"), "{error}");
}

/// Children that share their memory with the program do not count twice.
#[test]
fn shared_memory_counts_once() {
    let built = Built::new("early.c");
    let limits = Limits { time: Duration::from_secs(3), memory: 1 << 30, ..Limits::default() };
    let error = refused(&built, "forks", &limits);
    assert!(matches!(error, StartError::TooSlow { .. }), "{error}");
}

#[test]
fn time_is_limited_before_the_first_thread() {
    let built = Built::new("early.c");
    let limits = Limits { time: Duration::from_secs(3), memory: 1 << 30, ..Limits::default() };
    for scenario in ["spins", "prints"] {
        let error = refused(&built, scenario, &limits);
        assert!(matches!(error, StartError::TooSlow { .. }), "{scenario}: {error}");
    }
}
