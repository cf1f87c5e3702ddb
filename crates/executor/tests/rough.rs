//! Programs that are hard on whoever runs them: each run ends, and is what it would be otherwise.

mod support;

use support::{Built, outcome};
use threadbare_trace::{End, Policy, ThreadIndex};

/// Runs a scenario three times over, under two schedules.
fn outcomes(built: &Built, scenario: &str) -> Vec<String> {
    let mut subject = built.scenario(scenario);
    let policies = [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::RunToBlock];
    policies
        .map(|policy| {
            let plan = subject.under(policy);
            outcome(&subject.run(&plan))
        })
        .into()
}

#[test]
fn a_thousand_threads() {
    let built = Built::new("rough.c");
    let mut subject = built.scenario("thousand");
    subject.plan.max_events = 100_000;
    for policy in [Policy::RunToBlock, Policy::Random { seed: 1 }, Policy::Random { seed: 1 }] {
        let plan = subject.under(policy);
        let run = subject.run(&plan);
        assert_eq!((outcome(&run), run.threads()), ("1000".to_owned(), 1001));
    }
}

#[test]
fn a_loop_without_schedule_points_is_stopped_and_located() {
    let built = Built::new("rough.c");
    let mut subject = built.hanging_scenario("spinning");
    let plan = subject.under(Policy::RunToBlock);
    let &End::TimeLimit { at: Some(at) } = subject.run(&plan).ended() else { panic!("it was not stopped") };
    assert_eq!(at.thread, ThreadIndex::new(1));
    assert_eq!(subject.worker.program().location(at.pc).frames[0].function, "spin_here");
}

#[test]
fn much_output_is_kept() {
    let built = Built::new("rough.c");
    let mut subject = built.scenario("ten_megabytes");
    let plan = subject.under(Policy::RunToBlock);
    for _ in 0..2 {
        let output = subject.run(&plan).output(u64::MAX);
        assert_eq!(output.len(), 10_000_003);
        assert!(output.ends_with("x\nend"));
    }
}

/// Protects the machine's memory: of endless output only the end is kept. Where the run was stopped is the program's
/// own line, and not somewhere in libc.
#[test]
fn endless_output_is_bounded() {
    let built = Built::new("rough.c");
    let mut subject = built.hanging_scenario("endless_output");
    let plan = subject.under(Policy::RunToBlock);
    let (ended, kept) = {
        let run = subject.run(&plan);
        (run.ended().clone(), run.output(u64::MAX))
    };
    let End::TimeLimit { at: Some(at) } = ended else { panic!("{ended:?}") };
    assert_eq!(at.thread, ThreadIndex::new(1));
    assert_eq!(subject.worker.program().location(at.pc).frames[0].function, "print_much");
    assert!(kept.len() <= 128 << 20, "{} bytes are kept", kept.len());
    assert!(!kept.contains('\0'), "what was dropped is not part of it");
}

#[test]
fn a_program_may_close_every_descriptor() {
    let built = Built::new("rough.c");
    for scenario in ["closes", "closes_early"] {
        assert_eq!(outcomes(&built, scenario), [""; 3], "{scenario}");
    }
}

#[test]
fn a_program_may_change_its_directory() {
    let built = Built::new("rough.c");
    for (scenario, expected) in [("moves", "2"), ("moves_early", "3")] {
        assert_eq!(outcomes(&built, scenario), [expected; 3], "{scenario}");
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::RunToBlock);
        let trace = subject.run(&plan).trace();
        let known = |location: &threadbare_trace::Location| {
            location.frames.iter().any(|frame| frame.file.ends_with("rough.c") && frame.line > 0)
        };
        assert!(trace.locations.iter().any(known), "{scenario}: lines are still found");
    }
}

/// As root the program becomes nobody; as anybody else it stays who it is.
#[test]
fn a_program_may_drop_privileges() {
    let built = Built::new("rough.c");
    assert_eq!(outcomes(&built, "drops"), ["1 2"; 3]);
    assert_eq!(outcomes(&built, "drops_early"), ["1 Lin"; 3]);
}
