//! What `hunt` makes of the subjects, with default settings.

use crate::support::{json, path, root, run, tool};
use serde_json::Value;

/// The subjects' data files, by source file.
fn subjects() -> Vec<(std::path::PathBuf, toml::Table)> {
    let mut subjects: Vec<_> = std::fs::read_dir(root().join("subjects/c"))
        .expect("the subjects are there")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a data file is readable");
            (path.with_extension("c"), text.parse().expect("a data file is TOML"))
        })
        .collect();
    subjects.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(subjects.len() >= 10, "only {} subjects", subjects.len());
    subjects
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
/// fixed programs.
#[test]
fn every_bug_is_found_and_nothing_on_the_fixed_programs() {
    let out = tempfile::tempdir().expect("a directory");
    for (source, subject) in subjects() {
        let arguments = ["hunt", path(&source), "--json", "--out", path(out.path())];
        let (stdout, stderr, code) = run(&mut tool(&arguments));
        let lines = json(&stdout);
        let (summary, findings) = lines.split_last().expect("a summary");
        let expected = subject["expected"].as_array().expect("expected findings");
        assert_eq!(code, i32::from(!expected.is_empty()), "{}: {stdout}{stderr}", source.display());
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
        assert_eq!(code, 0, "{} fixed: {stdout}{stderr}", source.display());
        assert_eq!(json(&stdout).len(), 1, "{stdout}");
    }
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
