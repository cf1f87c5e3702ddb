//! Tests that abort, hang, print, sleep, and talk: a clear line each, and the others go on.

use crate::support::Project;

#[test]
fn each_kind_of_trouble_has_its_line_and_the_others_go_on() {
    let project = Project::new("trouble");
    // None of these tests hangs, so none comes near its limit, however busy the machine is.
    let options = ["--json", "--budget", "60runs", "--time-limit", "60"];
    let said = project.threadbare(&[&["test"], &options[..], &["--", "--skip", "never_ends"]].concat());
    // What builds is tested, though something does not.
    assert!(said.stderr.contains("mismatched types"), "{}", said.stderr);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let results = said.results();
    let expected = [
        ("main", "failed"),
        ("tests::aborts", "failed"),
        ("tests::aborts_after_a_caught_panic", "failed"),
        ("tests::begins_long_before_its_threads", "failed"),
        ("tests::closes_half_and_waits_with_a_limit", "passed"),
        ("tests::counts_processors", "passed"),
        ("tests::is_a_stress_test", "passed-in-part"),
        ("tests::is_long_and_fails", "failed"),
        ("tests::leaves_files_behind", "passed"),
        ("tests::makes_files_and_removes_them", "passed"),
        ("tests::prints_10_mb", "passed"),
        ("tests::starts_a_process", "passed"),
        ("tests::takes_its_time", "passed"),
        ("tests::talks_over_loopback", "passed"),
        ("tests::talks_with_a_process", "passed"),
    ];
    assert_eq!(
        results,
        expected.map(|(test, result)| (test.into(), result.into())).into(),
        "{}",
        said.stdout
    );
    for test in ["tests::aborts", "tests::aborts_after_a_caught_panic"] {
        let finding = &said.findings(test)[0];
        assert_eq!(finding["failure"], "aborted", "{}", said.stdout);
        let places = finding["locations"].to_string();
        assert!(places.contains("lib.rs"), "{places}");
        assert_eq!(finding["timing"], "always", "cargo test shows it too: {}", said.stdout);
    }
    // What fails by itself has failed, though there is no schedule to show.
    for (test, words) in [
        (
            "main",
            "exit code 3 before its first thread, and without Threadbare's scheduling too (exit code 3)",
        ),
        (
            "tests::is_long_and_fails",
            "no run came to its end; without Threadbare's scheduling it fails: exit code 101",
        ),
    ] {
        let line = said.json().into_iter().find(|line| line["type"] == "test" && line["test"] == test);
        assert_eq!(line.expect("a line")["problem"], words, "{}", said.stdout);
    }
    let stress = said.json().into_iter().find(|line| line["test"] == "tests::is_a_stress_test");
    assert!(stress.expect("a line")["plain"].is_string(), "it was tried without us: {}", said.stdout);
}

/// A test that fails under `cargo test` as well says so on its line.
#[test]
fn a_test_that_always_fails_is_told_apart() {
    let project = Project::new("trouble");
    let said = project.threadbare(&["test", "--lib", "aborts", "--budget", "60runs", "--time-limit", "60"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let words =
        "tests::aborts (10 runs, fails without Threadbare's scheduling too: it does not depend on timing)";
    assert!(said.stdout.contains(words), "{}", said.stdout);
}

/// Where there is little time, only the beginning of a run is searched; but not if it has no threads.
#[test]
fn a_test_that_begins_long_before_its_threads_is_searched_behind_that() {
    let project = Project::new("trouble");
    let said = project.threadbare(&["test", "--lib", "begins_long", "--budget", "60runs,10s", "--json"]);
    assert_eq!(said.findings("tests::begins_long_before_its_threads").len(), 1, "{}", said.stdout);
}

/// Only the test that hangs has to come to its loop in so short a time. The filter takes others too, and they are run,
/// whatever they come to.
#[test]
fn a_test_that_hangs_is_stopped_and_the_others_go_on() {
    let project = Project::new("trouble");
    let options = ["--json", "--budget", "60runs", "--time-limit", "5", "--jobs", "1"];
    let said = project.threadbare(&[&["test", "--lib", "ve"], &options[..]].concat());
    let results = said.results();
    let tests: Vec<&str> = results.keys().map(String::as_str).collect();
    let expected =
        ["leaves_files_behind", "makes_files_and_removes_them", "never_ends", "talks_over_loopback"]
            .map(|test| format!("tests::{test}"));
    assert_eq!(tests, expected, "{}{}", said.stdout, said.stderr);
    assert_eq!(results["tests::never_ends"], "could-not-run", "{}", said.stdout);
    assert_eq!(said.code, 2, "{}{}", said.stdout, said.stderr);
    let lines = said.json();
    let stuck = lines.iter().find(|line| line["test"] == "tests::never_ends").expect("a line");
    assert!(
        stuck["problem"]
            .as_str()
            .is_some_and(|words| words.contains("no run came to its end within 5 s (--time-limit)")),
        "{stuck}"
    );
}

#[test]
fn a_project_that_does_not_build_is_refused() {
    let project = Project::new("trouble");
    let said = project.threadbare(&["test", "--test", "broken"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("the project does not build"), "{}", said.stderr);
}
