//! Programs that handle the signals they would die of: a handler that gets away with it goes on, one that does not
//! leaves the failure where it was.

mod support;

use support::Built;
use threadbare_trace::{End, Failure, Policy, ThreadIndex};

#[test]
fn handlers_run_and_programs_go_on() {
    Built::new("signal_handlers.c").check(&[
        ("jumps_out", &["out out"]),
        ("both_jump_out", &["out out out out"]),
        ("repairs", &["r"]),
        ("own_stack", &["survived"]),
        ("switches", &["4"]),
        ("aborts", &["survived"]),
        ("ignores", &["ignored"]),
    ]);
}

#[test]
fn each_thread_has_a_mask_of_its_own() {
    Built::new("signal_handlers.c").check(&[("masks", &["apart"])]);
}

#[test]
fn alarms_come_when_nobody_can_run_before() {
    Built::new("alarms.c").check(&[
        ("posts", &["after 1 h"]),
        ("pauses", &["-1 after 1 h"]),
        ("guards", &["alive"]),
        ("guards_in_vain", &["deadlock"]),
        ("repeats", &["3 in 3 h"]),
        ("waited_for", &["alarm"]),
        ("settings", &["0 3600 -1 0 5 7 -1 5"]),
        ("many", &["2 in 2 h, 0 left, 0 -1 -1"]),
        ("jumps_out", &["given up"]),
        ("killed", &["handled"]),
        ("ticks_in_vain", &["deadlock"]),
        ("tells_a_value", &["7"]),
    ]);
}

#[test]
fn what_is_not_modelled_is_refused() {
    let built = Built::new("alarms.c");
    for (scenario, words) in [("starts_a_thread", "SIGEV_THREAD"), ("interrupts_a_wait", "interrupts a wait")]
    {
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::Random { seed: 1 });
        let run = subject.run(&plan);
        let ended = run.ended();
        assert!(
            matches!(ended, End::Unsupported { message, .. } if message.contains(words)),
            "{scenario}: {ended:?}"
        );
    }
}

/// The finding is the fault and its place, whatever way the handler takes to its end.
#[test]
fn what_a_handler_does_not_survive_is_reported_where_it_happened() {
    let built = Built::new("signal_handlers.c");
    let mut wrong = Vec::new();
    for (scenario, expected, message, function) in [
        ("jumps_out_once", "SIGSEGV", "address 0x0", "fault_twice_unsaved"),
        ("resets", "SIGSEGV", "address 0x0", "fault_here"),
        ("ignored_fault", "SIGSEGV", "address 0x0", "fault_here"),
        ("one_shot", "SIGSEGV", "address 0x0", "fault_here"),
        ("raises_again", "SIGSEGV", "address 0x0", "fault_here"),
        ("exits", "SIGSEGV", "address 0x0", "fault_here"),
        ("crashes_again", "SIGSEGV", "address 0x0", "crash"),
        ("stack_taken_back", "SIGSEGV", "stack overflow", "endless"),
        ("blocked", "SIGSEGV", "address 0x0", "fault_here"),
        ("asserts", "assertion failed", "null != NULL", "assert_here"),
    ] {
        let mut subject = built.scenario(scenario);
        for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }] {
            let plan = subject.under(policy);
            let trace = subject.run(&plan).trace();
            let Some(Failure { kind, message: words, at, .. }) =
                trace.end.failure().filter(|f| f.at.thread == ThreadIndex::new(1))
            else {
                wrong.push(format!("{scenario}: {:?}", trace.end));
                break;
            };
            let place = trace.location(at.location).frames.first().map(|frame| frame.function.as_str());
            if (kind.to_string().as_str(), words.as_str(), place) != (expected, message, Some(function)) {
                wrong.push(format!("{scenario}: {kind} {words} {place:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
