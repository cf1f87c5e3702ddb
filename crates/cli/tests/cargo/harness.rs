//! Options for the test harness, after `--`: honoured, done in another way, or refused with a clear word.

use crate::support::Project;

#[test]
fn options_of_the_harness_are_honoured_or_refused() {
    let project = Project::new("bank");
    let test = |options: &[&str]| {
        project.threadbare(&[&["test", "--lib", "--budget", "5runs", "--json"], options].concat())
    };

    let listed = test(&["--", "--list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("tests::keeps_deposits: test\n"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("passed"), "nothing was tested: {}", listed.stdout);

    let one = test(&["tests::keeps_deposits", "--", "--exact", "--test-threads=1"]);
    assert_eq!(one.results().into_keys().collect::<Vec<_>>(), ["tests::keeps_deposits"], "{}", one.stderr);
    let some = test(&["keeps", "--", "--skip", "deposits", "has_no"]);
    assert_eq!(some.results().into_keys().collect::<Vec<_>>(), ["tests::has_no_threads"], "{}", some.stderr);

    for (options, expected) in [
        (&["--", "--nocapture"][..], "`--nocapture` has no meaning in a hunt"),
        (&["--", "--format", "json"], "how to print is said before `--`"),
        (&["--", "--test-threads"], "`--test-threads` needs a number"),
        (&["--", "--wrong-option"], "the test harness of bank says: Unrecognized option: 'wrong-option'"),
    ] {
        let said = test(options);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{options:?}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{options:?}: {}", said.stderr);
    }
}
