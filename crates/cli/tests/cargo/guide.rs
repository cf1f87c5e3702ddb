//! Tests of a cargo project that are driven through given locations.

use serde_json::Value;

use crate::support::{Project, Said};

/// What came of the only sequence.
fn guided(said: &Said) -> Value {
    let mut lines = said.json().into_iter().filter(|line| line["type"] == "guided");
    lines.next().unwrap_or_else(|| panic!("no answer: {} {}", said.stdout, said.stderr))
}

/// One project for all, since it takes long to build: a failure that a sequence leads to, a function by its path, a test
/// that keeps what it should, and mistakes.
#[test]
fn a_test_is_driven_through_locations() {
    let project = Project::new("bank");
    let guide = |test: &str, sequence: &str| {
        project.threadbare(&["guide", test, "--json", "--budget", "60runs", "--through", sequence])
    };
    let lost = guide("loses_a_deposit", "src/lib.rs:12@a, src/lib.rs:13@b, src/lib.rs:13@a");
    let answer = guided(&lost);
    assert_eq!((&answer["verdict"], lost.code), (&"real".into(), 1), "{answer}");
    let clip = answer["clip"].as_str().expect("a clip");
    assert_eq!(project.threadbare(&["replay", clip, "--json"]).json()[0]["reproduced"], 1);

    let said =
        guide("tests::loses_a_deposit", "Account::deposit_in_two_steps@a, Account::deposit_in_two_steps@b");
    assert_ne!(guided(&said)["verdict"], "not shown", "{}", said.stdout);

    let said = guide("keeps_deposits", "Account::deposit@a, Account::deposit@b");
    let answer = guided(&said);
    assert_eq!((&answer["verdict"], said.code), (&"reached".into(), 0), "{answer}");

    let said = guide("nobody", "Account::deposit");
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("no test is called `nobody`"), "{}", said.stderr);
    let said = guide("loses", "Account::deposit");
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("tests are called `loses`"), "{}", said.stderr);
    let said = guide("keeps_deposits", "Account::depositt");
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("no instrumented function is called Account::depositt"), "{}", said.stderr);
    assert!(said.stderr.contains("there is ") && said.stderr.contains("::deposit"), "{}", said.stderr);
}
