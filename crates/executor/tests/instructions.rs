//! Instructions that tell of the machine and of real time.

mod support;

use support::{Built, outcome};
use threadbare_trace::Policy;

/// What `rdtsc` tells is virtual time, and the same in every run of a plan.
#[test]
fn the_time_stamp_counter_is_virtual() {
    let built = Built::new("instructions.c");
    built.check(&[("sleeping", &["1 h"])]);
    let mut subject = built.scenario("counters");
    for seed in 0..10 {
        let plan = subject.under(Policy::Random { seed });
        let (first, again) = (outcome(&subject.run(&plan)), outcome(&subject.run(&plan)));
        assert_eq!(first, again);
        assert!(first.lines().all(|line| line.starts_with("1 1 0 ")), "{first}");
    }
}

/// A program that asks the processor for what it has does not find random numbers there, which no plan could fix. Nor
/// does it find the kernel's own functions for real time. Some processors do not let the kernel hide anything.
#[test]
fn features_that_make_runs_differ_are_hidden() {
    let processor = std::fs::read_to_string("/proc/cpuinfo").expect("what the processor has");
    let has = |feature: &str| processor.split_whitespace().any(|word| word == feature);
    let is_seen = !has("cpuid_fault") && (has("rdrand") || has("rdseed"));
    let expected = if is_seen { "1 1 12 0" } else { "1 0 12 0" };
    Built::new("instructions.c").check(&[("features", &[expected])]);
}

/// A program that is started would have the faults, and no handler for them.
#[test]
fn children_have_the_instructions_as_they_are() {
    Built::new("instructions.c").check(&[("children", &["7 8 7 0"])]);
}
