//! System calls that a program makes without libc.

mod support;

use support::Built;
use threadbare_trace::{End, Policy};

/// They are modelled like the functions of libc's: threads wait and are woken, and time is virtual.
#[test]
fn calls_without_libc_are_seen() {
    let built = Built::new("raw_calls.c");
    built.check(&[
        ("futexes", &["2"]),
        ("futexes_without_wake", &["2", "deadlock"]),
        ("sleeping", &["1 h"]),
        ("pipes", &["1 x"]),
        ("pipes_without_writer", &["deadlock"]),
        ("keeping", &["4.5 7 9 1 -9"]),
    ]);
    built.check(&[("handlers", &["1 1"]), ("children", &["3 4 5"]), ("closing", &["1 still there"])]);
}

/// Compiled with optimisation, more is kept in registers.
#[test]
fn calls_without_libc_keep_what_the_kernel_keeps() {
    Built::with_flags("raw_calls.c", &["-O2", "-march=native"]).check(&[("keeping", &["4.5 7 9 1 -9"])]);
}

/// What would go past the scheduler is refused, with its name and its place.
#[test]
fn calls_that_are_not_modelled_are_named() {
    let built = Built::new("raw_calls.c");
    for (scenario, words) in
        [("rings", "system call io_uring_setup"), ("threads", "system call clone of a thread")]
    {
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::RunToBlock);
        match subject.run(&plan).ended() {
            End::Unsupported { message, at } => {
                assert_eq!(&**message, words);
                assert_ne!(at.pc, 0, "{scenario} has no place");
            }
            other => panic!("{scenario}: {other:?}"),
        }
    }
}
