//! What a program synchronises with behaves under every schedule as its manual says.
//!
//! Each scenario's outcomes over all schedules are known by hand, and all schedules are gone through. Every
//! outcome must turn up and no other may; a schedule must give the same run again, and its steps must lead to the
//! same end.

mod support;

use support::Built;

#[test]
fn mutexes() {
    Built::new("mutex.c").check(&[
        ("order", &["xyz", "xzy", "yxz", "yzx", "zxy", "zyx"]),
        ("protected", &["2"]),
        ("unprotected", &["1", "2"]),
        ("recursion", &["0 0 0 0 0 0 1 busy", "0 0 0 0 0 0 1 free"]),
        ("error_check", &["0 1 1 1 0 1"]),
        ("trying", &["busy", "free"]),
        ("timed", &["locked", "timed out"]),
        ("timed_out", &["timed out, later"]),
        ("by_clock", &["timed out"]),
        ("self_deadlock", &["deadlock"]),
        ("crossed", &["deadlock", "done"]),
        ("destroyed", &["1 0"]),
        ("adaptive", &["busy", "free"]),
        ("robust", &["1 0"]),
    ]);
}

#[test]
fn condition_variables() {
    let built = Built::new("condition.c");
    built.check(&[
        ("lost", &["deadlock", "woken"]),
        ("everybody", &["xy", "yx"]),
        ("one_is_left", &["deadlock"]),
        ("predicate", &["ready"]),
        ("nobody_signals", &["1 1 1"]),
        ("timed", &["ready", "timed out"]),
        ("patient", &["ready"]),
        ("in_vain", &["timed out"]),
        ("monotonic", &["1 1 1 0"]),
        ("not_owned", &["1"]),
        ("held_twice", &["deadlock"]),
        ("held_once", &["done"]),
    ]);
    built.sample(&[("either", &["xy", "yx"])]);
}

/// Waits end for no reason only where a plan allows it, and no more often than it says.
#[test]
fn spurious_wake_ups_on_request() {
    let built = Built::new("condition.c");
    let mut wrong = Vec::new();
    for (scenario, spurious, expected) in [
        ("trusting", 0, &["ready"][..]),
        ("trusting", 1, &["early", "ready"]),
        ("predicate", 2, &["ready"]),
        ("one_is_left", 0, &["deadlock"]),
        ("one_is_left", 1, &["", "deadlock"]),
    ] {
        let mut subject = built.scenario(scenario);
        subject.learn();
        subject.plan.spurious = spurious;
        let seen = subject.all_outcomes();
        if seen.iter().ne(expected) || !subject.repeats_and_replays().is_empty() {
            wrong.push(format!("{scenario} with {spurious}: {seen:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn read_write_and_spin_locks() {
    Built::new("rwlock.c").check(&[
        ("readers", &["1", "2"]),
        ("writers", &["2"]),
        ("trying", &["0 1 3"]),
        ("timed", &["3 1 1"]),
        ("upgrade", &["deadlock"]),
        ("nested", &["done"]),
        ("nested_for_writers", &["deadlock", "done"]),
        ("impatient", &["busy free", "free free"]),
        ("spinning", &["ab busy", "ab free"]),
    ]);
}

#[test]
fn semaphores_barriers_once_and_futexes() {
    let built = Built::new("waiting.c");
    built.check(&[
        ("one_of_two", &["1 1"]),
        ("trying", &["none", "one"]),
        ("timed", &["one", "timed out"]),
        ("never_posted", &["deadlock"]),
        ("two_meet", &["1 0"]),
        ("too_few", &["deadlock"]),
        ("only_once", &["1xy", "1yx"]),
        ("futexes", &["woken"]),
        ("masks", &["1 1"]),
    ]);
    built.sample(&[("two_of_three", &["1 2", "2 2"]), ("barriers", &["2 0"])]);
}

/// Threads wait where a queue is full or empty, and no run finds what another has left in one.
#[test]
fn message_queues() {
    Built::new("message_queues.c").check(&[
        ("priorities", &["beacd"]),
        ("stream", &["abc"]),
        ("either", &["xy", "yx"]),
        ("locked", &["deadlock", "done"]),
        ("full", &["deadlock"]),
        ("trying", &["none", "one"]),
        ("timed", &["one", "timed out"]),
        ("timed_send", &["1 1"]),
        ("attributes", &["3 1 1, 1 1"]),
        ("errors", &["4 4 1 1 1 1"]),
        ("early", &["1"]),
    ]);
}

#[test]
fn signals_to_threads_and_to_the_process() {
    Built::new("suspending.c").check(&[
        ("suspend", &["-1 1 1"]),
        ("one_gets_it", &["deadlock"]),
        ("pause_", &["1 1", "deadlock"]),
    ]);
}

#[test]
fn time_is_virtual_and_passes() {
    let built = Built::new("time.c");
    built.check(&[("sleeps", &["1234"]), ("c11_clock", &["same"])]);
    built.sample(&[
        ("clocks", &["3660 3660 3600 3660"]),
        ("spin_atomic", &["done"]),
        ("spin_in_many", &["done"]),
        ("spin_plain", &["done"]),
        ("spin_for_sleeper", &["done"]),
        ("poll_flag", &["done"]),
        ("spin_on_clock", &["done"]),
    ]);
}
