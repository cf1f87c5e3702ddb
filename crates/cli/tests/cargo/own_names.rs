//! A crate may have functions under names of libc's.

use crate::support::Project;

/// Protects the runtime's own calls of `send` and the like, which must not come to the program's functions.
#[test]
fn functions_under_names_of_libc_are_the_programs_alone() {
    let project = Project::new("own_names");
    let said = project.threadbare(&["test", "--json", "--budget", "100runs"]);
    let expected = [("adds_in_turn", "passed"), ("loses_an_update", "failed")];
    let expected = expected.map(|(test, result)| (test.to_owned(), result.to_owned()));
    assert_eq!(said.results(), expected.into(), "{}{}", said.stdout, said.stderr);
    assert_eq!(said.findings("loses_an_update")[0]["kind"], "panic", "{}", said.stdout);
}
