//! Calls that do not wait on descriptors that do, and the other way round.

mod support;

use std::process::Command;

use support::{Built, outcome};
use threadbare_trace::Policy;

const SCENARIOS: [&str; 5] = ["not_waiting", "waiting", "connecting", "locking", "splicing"];
const EXPECTED: &str = "as the kernel does";

/// The program says what the kernel does, call by call. Without this it would say what the runtime does.
#[test]
fn the_kernel_does_so() {
    let built = Built::with_flags("not_waiting.c", &["-fno-sanitize=thread"]);
    for scenario in SCENARIOS {
        let done = Command::new(built.program()).arg(scenario).output().expect("it can be started");
        assert_eq!(String::from_utf8_lossy(&done.stdout).trim_end(), EXPECTED, "{scenario}: {done:?}");
    }
}

#[test]
fn so_does_a_program_under_a_schedule() {
    let built = Built::new("not_waiting.c");
    for scenario in SCENARIOS {
        let mut subject = built.scenario(scenario);
        for policy in (0..50).map(|seed| Policy::Random { seed }).chain([Policy::RunToBlock]) {
            let plan = subject.under(policy);
            assert_eq!(outcome(&subject.run(&plan)), EXPECTED, "{scenario}: {:?}", plan.policy);
        }
        assert_eq!(subject.repeats_and_replays(), Vec::<String>::new());
    }
}
