//! `rank`: one strategy, and what it says of its search.

use crate::support::{json, path, root, run, tool};

fn subject(name: &str) -> std::path::PathBuf {
    root().join("subjects/c").join(name).with_extension("c")
}

#[test]
fn a_finding_names_its_tuple() {
    let out = tempfile::tempdir().expect("a directory");
    let source = subject("linkedlist");
    let arguments = ["rank", path(&source), "--first", "--json", "--out", path(out.path())];
    let (stdout, stderr, code) = run(&mut tool(&arguments));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let finding = &json(&stdout)[0];
    assert_eq!(finding["method"], "rank");
    assert_eq!(finding["tuple"], serde_json::json!([1, "all", 2, 1]));
}

/// Protects the claim that every schedule was tried, and that nobody makes it who has not.
#[test]
fn a_search_says_whether_it_is_exhausted() {
    let out = tempfile::tempdir().expect("a directory");
    let source = subject("deadlock");
    let arguments = ["rank", path(&source), "--cc-arg=-DFIXED", "--json", "--out", path(out.path())];
    for (budget, exhausted) in [("2000runs", true), ("10runs", false)] {
        let (stdout, stderr, code) = run(tool(&arguments).args(["--budget", budget]));
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert_eq!(json(&stdout)[0]["exhausted"], exhausted, "{budget}: {stdout}");
    }
}

#[test]
fn every_strategy_can_be_named_and_no_other() {
    let out = tempfile::tempdir().expect("a directory");
    let source = subject("airline");
    for name in threadbare_hunt::methods::all().map(|entry| entry.name) {
        let arguments =
            ["rank", path(&source), "--strategy", name, "--first", "--json", "--out", path(out.path())];
        let (stdout, stderr, code) = run(&mut tool(&arguments));
        assert_eq!(code, 1, "{name}: {stdout}{stderr}");
        assert_eq!(json(&stdout)[0]["method"], name);
    }
    let (_, stderr, code) = run(&mut tool(&["rank", path(&source), "--strategy", "luck"]));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("preemption-bound"), "{stderr}");
}
