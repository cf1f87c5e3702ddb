//! Memory errors in the parts of the standard library that come compiled.

use std::fs;

use crate::support::Project;

/// Protects what no instrumentation tells of: `str::chars().count()` of a text that was freed. The finding is at the
/// user's line, says who freed the text and who made it, and its clip replays. The same without the bug stays silent.
#[test]
fn freed_text_that_the_standard_library_reads_is_found() {
    let project = Project::new("unseen");
    let source = fs::read_to_string(project.path("src/lib.rs")).expect("the source");
    let line = 1 + source.lines().position(|line| line.ends_with("// here")).expect("the line is marked");
    let said = project.threadbare(&["test", "--json", "--budget", "200runs"]);
    let expected = [
        ("tests::counts_freed_text", "failed"),
        ("tests::counts_freed_text_alone", "failed"),
        ("tests::counts_text", "passed"),
    ];
    let expected = expected.map(|(test, result)| (test.to_owned(), result.to_owned()));
    assert_eq!(said.results(), expected.into(), "{}{}", said.stdout, said.stderr);
    for test in ["tests::counts_freed_text", "tests::counts_freed_text_alone"] {
        let finding = &said.findings(test)[0];
        assert_eq!(finding["kind"], "use-after-free", "{finding}");
        assert_eq!(finding["locations"][0]["line"], line, "{finding}");
        let words = finding["failure"].as_str().expect("a text");
        for part in [
            "into a freed block of 160 bytes",
            "freed by thread 0.1",
            "called from unseen::tests::counts_freed_text",
        ] {
            assert!(words.contains(part), "{words}");
        }
        let clip = finding["clip"].as_str().expect("a clip");
        let text = fs::read_to_string(project.path(clip)).expect("the clip");
        assert!(text.contains("\nguarded-heap\n"), "{text}");
        let replayed = project.threadbare(&["replay", clip]);
        let words = "reproduced in 1 of 1 runs";
        assert!(replayed.stdout.contains(words), "{}{}", replayed.stdout, replayed.stderr);
    }
}
