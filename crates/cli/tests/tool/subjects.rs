//! What `hunt` makes of the subjects, with default settings. Each has a test of its own, so that a failure has its
//! name, and several run at a time.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{json, path, root, run, tool};

/// Declares a test for each of these subjects.
macro_rules! subjects {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        mod hunted {
            $(
                #[test]
                fn $name() {
                    super::is_found_and_gone_when_fixed(stringify!($name));
                }
            )*
        }
    };
}

subjects! {
    abslist account_check account_ring account_ring_dl account_total airline allocation_vector
    arraylist arraylist_dl arylist bank_account bounded_queue bubblesort bubblesort2 bufwriter
    buggyprogram cache4j cache4j_cleaner clock critical critical_spin currency deadlock dekker derby
    hashset hashset_dl jobo linkedlist linkedlist_dl linkedlist_sync loader manager mergesort
    mergesort_bug netmap order_patterns order_system password_safe pecan_fig1 pecan_fig5 petri
    pingpong piper pool producer_consumer reorder shop shop_orphan stringbuffer telnet thread_pool
    treeset treeset_dl twostage variants_fig13 variants_fig3 variants_fig5 variants_fig7 vector
    wronglock
}

/// Protects from a subject that nobody tests: those above are all there are.
#[test]
fn every_subject_has_a_test() {
    let files = std::fs::read_dir(root().join("subjects/c")).expect("the subjects are there");
    let files: Vec<PathBuf> = files.map(|entry| entry.expect("a directory entry").path()).collect();
    let with = |extension: &str| -> BTreeSet<&str> {
        let files = files.iter().filter(|file| file.extension().is_some_and(|found| found == extension));
        files.map(|file| file.file_stem().and_then(|stem| stem.to_str()).expect("names are UTF-8")).collect()
    };
    let tested: BTreeSet<&str> = TESTED.iter().copied().collect();
    assert_eq!(with("toml"), tested, "data files, and tests in this file");
    assert_eq!(with("c"), tested, "programs, and tests in this file");
}

fn is_expected(expected: &toml::Value, finding: &Value) -> bool {
    let text = |key: &str| expected.get(key).and_then(toml::Value::as_str);
    let failure = finding["failure"].as_str().expect("a finding has words");
    let locations = finding["locations"].as_array().expect("a finding has locations");
    finding["kind"].as_str() == text("kind")
        && locations.iter().any(|place| place["function"].as_str() == text("function"))
        && text("message").is_none_or(|message| failure.contains(message))
}

/// Protects the promise of the tool: each bug is found, nothing else is reported, and nothing at all on the
/// fixed program.
fn is_found_and_gone_when_fixed(name: &str) {
    let out = tempfile::tempdir().expect("a directory");
    let source = root().join("subjects/c").join(name).with_extension("c");
    let data = std::fs::read_to_string(source.with_extension("toml")).expect("a data file is readable");
    let data: toml::Table = data.parse().expect("a data file is TOML");
    let arguments = ["hunt", path(&source), "--json", "--out", path(out.path())];
    let (stdout, stderr, code) = run(&mut tool(&arguments));
    let lines = json(&stdout);
    let (summary, findings) = lines.split_last().expect("a summary");
    let expected = data["expected"].as_array().expect("expected findings");
    assert_eq!(code, i32::from(!expected.is_empty()), "{stdout}{stderr}");
    for finding in findings {
        assert_eq!(finding["confirmed"], true, "{stdout}");
        assert!(expected.iter().any(|expected| is_expected(expected, finding)), "unexpected: {finding}");
    }
    for expected in expected {
        assert!(findings.iter().any(|finding| is_expected(expected, finding)), "missing: {expected:?}");
    }
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["findings"], findings.len());

    let (stdout, stderr, code) = run(tool(&arguments).arg("--cc-arg=-DFIXED"));
    assert_eq!(code, 0, "fixed: {stdout}{stderr}");
    assert_eq!(json(&stdout).len(), 1, "{stdout}");
}

/// Protects the same hunt from the same seed: the number of workers makes no difference.
#[test]
fn a_hunt_is_the_same_with_one_worker_and_with_two() {
    let out = tempfile::tempdir().expect("a directory");
    let source = root().join("subjects/c/twostage.c");
    let hunt = |jobs| {
        let arguments = [
            "hunt",
            path(&source),
            "--json",
            "--budget",
            "300runs",
            "--jobs",
            jobs,
            "--out",
            path(out.path()),
        ];
        let (stdout, _, _) = run(&mut tool(&arguments));
        let mut lines = json(&stdout);
        lines.last_mut().expect("a summary")["seconds"] = Value::Null;
        lines
    };
    assert_eq!(hunt("1"), hunt("2"));
}
