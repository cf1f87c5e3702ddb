//! Long runs in little memory. One test, because what it measures is the whole process's.

mod support;

use support::{Built, outcome};
use threadbare_trace::Policy;

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a process has a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Protects the memory of whoever tests long runs: an event takes 32 bytes, in a trace as many again, and none of it
/// in the program. (`bench memory` measures ten million of them.)
#[test]
fn two_million_events_in_little_memory() {
    let built = Built::new("rough.c");
    let mut subject = built.scenario("events");
    subject.learn();
    subject.plan.max_events = 4_000_000;
    let plan = subject.under(Policy::RunToBlock);
    let before = peak();
    let run = subject.run(&plan);
    assert_eq!(outcome(&run), "500000, program is small");
    assert!(run.events() > 2_000_000, "only {} events", run.events());
    let trace = run.trace();
    assert_eq!(trace.events.len() as u64, run.events());
    let most = before + trace.events.len() as u64 * 80 / 1024;
    assert!(peak() < most, "{} KiB, more than {most}", peak());
}
