//! A project with bugs, without bugs, and with everything that cargo knows.

use std::fs;

use crate::support::Project;

#[test]
fn bugs_are_found_and_replayed_also_after_an_edit() {
    let project = Project::new("bank");
    let said = project.threadbare(&["test", "--lib", "--json"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let results = said.results();
    let expected = [
        ("tests::has_no_threads", "no-threads"),
        ("tests::keeps_deposits", "passed"),
        ("tests::locks_in_two_orders", "failed"),
        ("tests::loses_a_count", "failed"),
        ("tests::loses_a_deposit", "failed"),
        ("tests::panics_as_it_should", "passed"),
        ("tests::runs_in_the_packages_directory", "no-threads"),
        ("tests::sums_without_std", "passed"),
    ];
    assert_eq!(results, expected.map(|(test, result)| (test.into(), result.into())).into());

    let lost = &said.findings("tests::loses_a_deposit")[0];
    assert_eq!((lost["kind"].as_str(), lost["confirmed"].as_bool()), (Some("panic"), Some(true)));
    assert!(lost["failure"].as_str().is_some_and(|words| words.contains("left: 1")), "{lost}");
    assert!(lost["locations"][0]["file"].as_str().is_some_and(|file| file.ends_with("src/lib.rs")), "{lost}");
    let deadlock = &said.findings("tests::locks_in_two_orders")[0];
    assert_eq!(deadlock["kind"], "deadlock");

    let clip = lost["clip"].as_str().expect("a clip");
    let replayed = project.threadbare(&["replay", clip, "--times", "5"]);
    assert!(replayed.stdout.contains("reproduced in 5 of 5 runs"), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(replayed.code, 1);

    let source = project.path("src/lib.rs");
    let text = fs::read_to_string(&source).expect("the source");
    fs::write(&source, format!("// A line more.\n\n{text}")).expect("the source can be written");
    let replayed = project.threadbare(&["replay", clip]);
    assert!(replayed.stdout.contains("reproduced in 1 of 1 runs"), "{}{}", replayed.stdout, replayed.stderr);
}

/// Protects that inlining and optimisation hide neither bugs nor the user's lines, and that a clip knows its profile.
#[test]
fn bugs_are_found_and_replayed_in_release_builds() {
    let project = Project::new("bank");
    let said = project.threadbare(&["test", "--lib", "--release", "--json"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    for (test, kind) in [
        ("tests::loses_a_deposit", "panic"),
        ("tests::loses_a_count", "panic"),
        ("tests::locks_in_two_orders", "deadlock"),
    ] {
        let finding = &said.findings(test)[0];
        assert_eq!(finding["kind"], kind);
        assert!(finding["locations"].to_string().contains("src/lib.rs"), "{finding}");
        let clip = finding["clip"].as_str().expect("a clip");
        let replayed = project.threadbare(&["replay", clip]);
        assert!(
            replayed.stdout.contains("reproduced in 1 of 1 runs"),
            "{}{}",
            replayed.stdout,
            replayed.stderr
        );
    }
}

/// Protects what a person sees of a panic: its words, the user's own lines with what was read there, nobody
/// else's, and the command that replays it.
#[test]
fn a_panic_is_shown_in_the_users_own_lines() {
    let project = Project::new("bank");
    let said = project.threadbare(&["test", "--lib", "loses_a_deposit"]);
    for words in [
        "Starting 1 test across",
        "FAIL [",
        "bank tests::loses_a_deposit",
        "panicked: assertion `left == right` failed",
        "what happened, in lib.rs:",
        "let balance = *self.balance.lock()",
        "⋯ interrupted",
        "✗ panicked",
        "replay it with: cargo threadbare replay threadbare-out/tests--loses_a_deposit-panic-",
        "1 test run: 0 passed, 1 failed",
    ] {
        assert!(said.stdout.contains(words), "`{words}` is not in:\n{}", said.stdout);
    }
    for words in ["futex.rs", "lifecycle.rs", "mutex.rs", "thread 0 "] {
        assert!(!said.stdout.contains(words), "`{words}` is in:\n{}", said.stdout);
    }
}

/// Protects the promise that what works with `std` works with the facade, scheduled by the system or by us.
#[test]
fn the_facade_is_as_good_as_std() {
    let project = Project::new("bank");
    let system = ["test", "--test", "as_std", "--no-hunt", "--", "--skip", "a_minute_passes_at_once"];
    let said = project.threadbare(&system);
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    let said = project.threadbare(&["test", "--test", "as_std", "--test", "own_harness", "--json"]);
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    let results = said.results();
    assert_eq!(results["main"], "passed");
    assert_eq!(results["a_minute_passes_at_once"], "no-threads");
    assert!(results.len() > 10 && results.values().all(|result| result != "could-not-run"), "{results:?}");
}

#[test]
fn cargos_own_words_choose_what_is_tested() {
    let project = Project::new("bank");
    let names = |arguments: &[&str]| {
        let said = project.threadbare(&[&["test", "--json", "--budget", "1run"], arguments].concat());
        said.results().into_keys().collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["has_", "--lib", "--features", "interest"]),
        ["tests::has_a_feature", "tests::has_no_threads"]
    );
    assert_eq!(names(&["--lib", "is_ignored", "--", "--ignored"]), ["tests::is_ignored"]);
    assert_eq!(
        names(&["has_", "--lib", "--features", "interest", "--", "--skip", "no_threads"]),
        ["tests::has_a_feature"]
    );
}

#[test]
fn when_there_is_no_such_test_that_is_said() {
    let project = Project::new("bank");
    for (arguments, words) in [
        (&["--lib", "has_nothing"][..], "no name contains `has_nothing`"),
        (&["--lib", "is_ignored"], "those that were asked for are ignored"),
        (&["--package", "plain"], "no tests to run"),
        (&["--package", "macros"], "Skipping macros, which runs inside the compiler"),
    ] {
        let said = project.threadbare(&[&["test", "--json"], arguments].concat());
        assert_eq!((said.code, said.results().len()), (2, 0), "{}{}", said.stdout, said.stderr);
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
}
