//! Some of the subjects in Rust. `bench subjects --rust` does the same for all.

use crate::support::Project;

/// Enough for these, and quicker than the default.
const BUDGET: &str = "500runs";

/// The only finding in a subject is of this kind, in this function, with these words, its clip is replayed every
/// time, and there is none in the fixed program.
fn expect(name: &str, kind: &str, function: &str, words: &str) {
    let project = Project::subjects();
    let run = ["run", "--bin", name, "--json", "--budget", BUDGET];
    let said = project.threadbare(&run);
    assert_eq!(said.code, 1, "{name}: {}{}", said.stdout, said.stderr);
    let lines = said.json();
    let [finding, summary] = &lines[..] else { panic!("{name}: more than one finding: {}", said.stdout) };
    assert_eq!(summary["type"], "summary");
    assert_eq!((finding["kind"].as_str(), finding["confirmed"].as_bool()), (Some(kind), Some(true)));
    let place = finding["locations"][0]["function"].as_str().expect("a place");
    assert!(place.ends_with(&format!("::{function}")), "{finding}");
    assert!(finding["failure"].as_str().is_some_and(|failure| failure.contains(words)), "{finding}");

    let clip = finding["clip"].as_str().expect("a clip");
    let replayed = project.threadbare(&["replay", clip, "--times", "5"]);
    assert!(replayed.stdout.contains("reproduced in 5 of 5 runs"), "{}{}", replayed.stdout, replayed.stderr);

    let said = project.threadbare(&[&run[..], &["--features", "fixed"]].concat());
    assert_eq!(said.code, 0, "{name} fixed: {}{}", said.stdout, said.stderr);
}

/// Protects unsafe code as people write it, and one report for an assertion that fails with many values.
#[test]
fn account_ring() {
    expect("account_ring", "panic", "check_amounts", "right: 1200");
}

/// Protects deadlocks of the locks of `std`.
#[test]
fn account_ring_dl() {
    expect("account_ring_dl", "deadlock", "transfer", "deadlock");
}

/// Protects read-write locks of `std`, and a bug without a data race.
#[test]
fn petri() {
    expect("petri", "panic", "observe", "a bug is in no cell");
}

/// Protects a panic that aborts, which is still a panic in the user's line.
#[test]
fn pingpong() {
    expect("pingpong", "panic", "play", "null pointer dereference occurred");
}

/// Protects what goes wrong between two critical sections of locks of `std`.
#[test]
fn twostage() {
    expect("twostage", "panic", "read", "the second stage is still to come");
}
