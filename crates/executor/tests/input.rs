//! Standard input: every run reads the same bytes from the start, whoever reads them and how.

mod support;

use std::collections::BTreeSet;

use support::Built;
use threadbare_executor::{Input, Limits};
use threadbare_trace::Policy;

const TEXT: &str = "10\n20\n";

/// Protects runs from one another: what one has read is there for the next.
#[test]
fn every_run_reads_all_of_it() {
    let built = Built::new("input.cpp");
    let input = Input::new(TEXT.as_bytes()).expect("an input can be kept");
    let mut wrong = Vec::new();
    for scenario in ["reading", "lines", "numbers", "streams", "early", "early_unbuffered"] {
        let mut subject = built.start_with(scenario, input.clone(), Limits::default());
        for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::RunToBlock] {
            let plan = subject.under(policy);
            let output = support::outcome(&subject.run(&plan));
            if output != TEXT.trim_end() {
                wrong.push(format!("{scenario}: {output:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn who_reads_what_is_up_to_the_schedule() {
    let built = Built::new("input.cpp");
    let input = Input::new(TEXT.as_bytes()).expect("an input can be kept");
    let mut subject = built.start_with("shared", input, Limits::default());
    subject.learn();
    assert_eq!(subject.outcomes(), BTreeSet::from(["x10\ny20".to_owned(), "y10\nx20".to_owned()]));
    assert_eq!(subject.repeats_and_replays(), Vec::<String>::new());
}

#[test]
fn there_is_none_unless_given() {
    Built::new("input.cpp").check(&[("reading", &[""]), ("lines", &[""]), ("streams", &[""])]);
}
