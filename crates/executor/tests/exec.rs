//! Programs that become other programs: what those do, and what the tool does to them, is no failure.

mod support;

use std::time::Duration;

use support::{Built, outcome};
use threadbare_executor::{CodePlace, Limits, StartError, Target, Worker};
use threadbare_trace::{End, Policy};

fn ended(built: &Built, scenario: &str) -> End<CodePlace> {
    let mut subject = built.hanging_scenario(scenario);
    let plan = subject.under(Policy::RunToBlock);
    subject.run(&plan).ended().clone()
}

/// A run is over where it becomes another program, and says which.
#[test]
fn a_run_ends_where_it_becomes_another_program() {
    let built = Built::new("exec.c");
    for scenario in ["late_sleep", "by_number", "in_a_thread"] {
        let ended = ended(&built, scenario);
        assert!(
            matches!(&ended, End::Exec { program, .. } if program.ends_with("/sleep")),
            "{scenario}: {ended:?}"
        );
    }
    built.check(&[
        ("nothing_there", &["-1 No such file or directory 2 1", "-1 No such file or directory 2 2"]),
        ("child", &["0 2 1", "0 2 2"]),
    ]);
}

/// A program that starts itself anew before its first thread is still the one under test.
#[test]
fn a_program_may_start_itself_anew() {
    let built = Built::new("exec.c");
    let scenarios = [
        ("anew", "2 2"),
        ("anew_list", "8 2"),
        ("anew_list_environment", "8 2"),
        ("anew_descriptor", "2 2"),
        ("wrapped", "2 2"),
    ];
    for (scenario, expected) in scenarios {
        let mut subject = built.scenario(scenario);
        let plan = subject.under(Policy::RunToBlock);
        let run = subject.run(&plan);
        assert_eq!((outcome(&run).as_str(), run.threads()), (expected, 3), "{scenario}");
        let named = run.trace().locations.iter().any(|location| location.to_string().contains("exec.c:"));
        assert!(named, "{scenario}: lines are found");
    }
}

#[test]
fn what_it_became_early_is_said() {
    let built = Built::new("exec.c");
    for (scenario, name) in [("early_sleep", "sleep"), ("early_true", "true")] {
        let target = Target {
            program: built.program().to_owned(),
            arguments: vec![scenario.into()],
            ..Target::default()
        };
        let limits = Limits { time: Duration::from_secs(3), ..Limits::default() };
        match Worker::start(&target, &limits) {
            Err(StartError::Became { new, is_instrumented: false, .. }) => {
                assert!(new.ends_with(name), "{scenario}: {new}");
            }
            Err(error) => panic!("{scenario}: {error}"),
            Ok(_) => panic!("{scenario}: it started"),
        }
    }
}
