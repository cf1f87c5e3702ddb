//! Tests that abort, hang, print, sleep, and talk: a clear line each, and the others go on.

use crate::support::Project;

#[test]
fn each_kind_of_trouble_has_its_line_and_the_others_go_on() {
    let project = Project::new("trouble");
    let said = project.threadbare(&["test", "--json", "--budget", "60runs", "--time-limit", "5"]);
    // What builds is tested, though something does not.
    assert!(said.stderr.contains("mismatched types"), "{}", said.stderr);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let results = said.results();
    let expected = [
        ("tests::aborts", "failed"),
        ("tests::aborts_after_a_caught_panic", "failed"),
        ("tests::closes_half_and_waits_with_a_limit", "passed"),
        ("tests::counts_processors", "passed"),
        ("tests::is_a_stress_test", "passed-in-part"),
        ("tests::leaves_files_behind", "passed"),
        ("tests::makes_files_and_removes_them", "passed"),
        ("tests::never_ends", "could-not-run"),
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
    }
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
