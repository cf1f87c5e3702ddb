//! Predictions from a program and from a trace.

use std::path::Path;

use serde_json::Value;

use crate::support::{json, path, root, run, tool, write};

/// Predicts for a subject and gives back the findings and the summary.
fn predict(subject: &str, arguments: &[&str]) -> (Vec<Value>, Value) {
    let out = tempfile::tempdir().expect("a directory");
    let source = root().join("subjects/c").join(subject);
    let mut command = tool(&["predict", path(&source), "--json", "--out", path(out.path())]);
    let (stdout, stderr, _) = run(command.args(arguments));
    let mut lines = json(&stdout);
    let summary = lines.pop().unwrap_or_else(|| panic!("no summary: {stderr}"));
    assert_eq!(summary["type"], "summary");
    (lines, summary)
}

fn fails_with(findings: &[Value], words: &str) -> bool {
    findings.iter().any(|finding| finding["failure"].as_str().is_some_and(|failure| failure.contains(words)))
}

/// The error of figure 1 needs a statement that no plain run reaches; a confirmed violation reaches it, and the next
/// prediction is made from there.
#[test]
fn the_error_of_figure_1_is_predicted_and_shown() {
    let (findings, summary) = predict("pecan_fig1.c", &[]);
    assert!(fails_with(&findings, "the error of figure 1"), "{findings:?}");
    assert!(findings.iter().all(|finding| finding["confirmed"] == true));
    assert_eq!(summary["confirmed"], findings.len());
}

#[test]
fn figure_5_both_ways() {
    let (findings, _) = predict("pecan_fig5.c", &[]);
    let race = findings.iter().find(|finding| finding["kind"] == "data-race").expect("the race is confirmed");
    assert_eq!(race["failure"], "assertion failed: seen == 1");
    let (findings, summary) = predict("pecan_fig5.c", &["--cc-arg=-DFIXED"]);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(summary["confirmed"], 0);
}

#[test]
fn a_deadlock_is_predicted_from_a_run_that_had_none() {
    let (findings, _) = predict("account_ring_dl.c", &[]);
    let deadlock = findings.iter().find(|finding| finding["kind"] == "deadlock").expect("it is confirmed");
    assert_eq!(deadlock["harm"], "failure");
}

/// The schedules of these lead a thread past a read whose new value sends it another way than recorded.
#[test]
fn a_thread_may_go_another_way_once_the_anomaly_has_happened() {
    let (findings, _) = predict("loader.c", &[]);
    assert!(fails_with(&findings, "count_inversions(count) == 0"), "{findings:?}");
    let (findings, _) = predict("manager.c", &[]);
    assert!(fails_with(&findings, "released == blocks"), "{findings:?}");
}

/// The setter has read a note that the cleaner then takes back; it is the setter that has to go on first.
#[test]
fn what_happens_after_an_anomaly_is_tried_both_ways() {
    let (findings, _) = predict("cache4j_cleaner.c", &[]);
    assert!(fails_with(&findings, "!interrupted"), "{findings:?}");
}

/// What is certain from the trace alone needs no luck: the first run of its schedule shows it.
#[test]
fn what_is_witnessed_is_confirmed() {
    let directory = tempfile::tempdir().expect("a directory");
    for subject in ["manager.c", "account_ring.c", "stringbuffer.c"] {
        let source = root().join("subjects/c").join(subject);
        let trace = directory.path().join("run.tbt");
        run(&mut tool(&["record", path(&source), "--out", path(&trace)]));
        let (stdout, _, _) = run(&mut tool(&["predict", "--trace", path(&trace), "--json"]));
        let (findings, _) = predict(subject, &["--runs=1"]);
        for witnessed in json(&stdout).iter().filter(|line| line["label"] == "witnessed") {
            let is_it = |finding: &Value| {
                ["kind", "pattern", "unit", "locations"].iter().all(|key| finding[key] == witnessed[key])
            };
            assert!(findings.iter().any(is_it), "{subject}: {witnessed} is not among {findings:?}");
        }
    }
}

#[test]
fn what_a_prediction_showed_is_replayed() {
    let out = tempfile::tempdir().expect("a directory");
    let source = root().join("subjects/c/account_total.c");
    let (stdout, _, code) = run(&mut tool(&["predict", path(&source), "--json", "--out", path(out.path())]));
    assert_eq!(code, 1);
    for finding in json(&stdout).iter().filter(|line| line["type"] == "finding") {
        let clip = finding["clip"].as_str().expect("a clip was written");
        let (stdout, stderr, code) = run(&mut tool(&["replay", clip]));
        assert_eq!(code, 1, "{stdout}{stderr}");
        assert!(stdout.contains("reproduced in 1 of 1 runs"), "{stdout}");
    }
}

const RACE: &str = "T0|fork(T1)|1\nT0|w(x)|2\nT1|w(x)|3\n";

#[test]
fn a_trace_without_a_program_is_labelled() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path(), "run.std", RACE);
    let (stdout, _, code) = run(&mut tool(&["predict", "--trace", path(&trace)]));
    assert_eq!(code, 1);
    assert!(stdout.contains("data race (write, write): witnessed"), "{stdout}");
    assert!(stdout.contains("thread 0.1: write x at location:3"), "{stdout}");
}

/// Predicts from a file that is not right, and demands these words on standard error.
fn refuses(directory: &Path, name: &str, bytes: &str, words: &str) {
    let trace = write(directory, name, bytes);
    let (stdout, stderr, code) = run(&mut tool(&["predict", "--trace", path(&trace)]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stderr.contains(words), "`{words}` is not in: {stderr}");
}

#[test]
fn a_trace_that_is_not_one_is_refused_with_the_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let refuses = |name, bytes, words| refuses(directory.path(), name, bytes, words);
    refuses("a.std", "T0|acq(l)|1\nT1|rel(l)|2\n", "line 2: T1 releases l, which T0 holds");
    refuses("b.std", "T0|w(x)|1\nT1|acq(lo", "line 2: the file ends where");
    refuses("c.csv", "r(x)\njump(x)\n", "line 2: unknown operation `jump`");
    refuses("d.tbt", "TBTRACE\n\u{1}", "byte 9");
}

/// What help there is fits what is wrong: a word about formats for a file in none of them, and not for a slip in a line.
#[test]
fn a_refusal_helps_with_what_is_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let help = |name: &str, bytes: &str| {
        let trace = write(directory.path(), name, bytes);
        let (_, stderr, code) = run(&mut tool(&["predict", "--trace", path(&trace)]));
        assert_eq!(code, 2, "{stderr}");
        stderr.lines().find_map(|line| line.trim().strip_prefix("help: ").map(str::to_owned))
    };
    for name in ["a.txt", "a.csv"] {
        let formats = help(name, "Dear reader,\n").expect("there is help");
        assert!(formats.contains("`threadbare record`"), "{formats}");
    }
    assert_eq!(help("b.std", "T0|w(x)|1\nT1|acq(lo"), None);
    assert_eq!(help("c.std", "T0|acq(l)|1\nT1|rel(l)|2\n"), None);
    for (name, text) in [("d.std", "T0|jump(x)|1\n"), ("d.csv", "r(x)\njump(x)\n")] {
        let operations = help(name, text).expect("there is help");
        assert!(operations.contains("acq, rel, fork"), "{operations}");
    }
}

#[test]
fn a_users_pattern_is_looked_for_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path(), "run.std", RACE);
    let pattern = "[[pattern]]\nname = \"mine\"\nkind = \"atomicity-violation\"\n\
                   T = \"a-b\"\nSV = \"s-s\"\nAR = \"u-v\"\nAT = \"w-w\"\n";
    let patterns = write(directory.path(), "mine.toml", pattern);
    let arguments = ["predict", "--trace", path(&trace), "--patterns", path(&patterns)];
    let (stdout, _, _) = run(&mut tool(&arguments));
    assert!(stdout.contains("atomicity violation (mine): witnessed"), "{stdout}");
    let wrong = write(directory.path(), "wrong.toml", &pattern.replace("w-w", "w-x"));
    let (_, stderr, code) = run(&mut tool(&["predict", "--trace", path(&trace), "--patterns", path(&wrong)]));
    assert_eq!(code, 2);
    assert!(stderr.contains("pattern \"mine\": \"x\" in AT is neither r nor w"), "{stderr}");
}
