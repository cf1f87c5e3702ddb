//! Every failure has a place: the line of the user's code, whatever function of whatever library it came to grief in.

use std::process::Command;

use crate::support::{json, path, root, run, tool};

/// What is wrong with what the tool says of a scenario that is to fail on `line`.
fn objection(program: &str, out: &str, scenario: &str, line: usize) -> Option<String> {
    let hunt = ["hunt", program, "--out", out, "--budget", "8runs", "--json", "--", scenario];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    let lines = json(&stdout);
    let Some(finding) = lines.first().filter(|_| code == 1) else {
        return Some(format!("{scenario}: {stdout}{stderr}"));
    };
    let locations = finding["locations"].as_array().expect("an array");
    let is_there = |location: &serde_json::Value| {
        location["line"] == line && location["file"].as_str().is_some_and(|file| file.ends_with("places.cpp"))
    };
    if locations.len() != 1 || !is_there(&locations[0]) {
        return Some(format!("{scenario} should be in line {line}: {finding}"));
    }
    let (view, ..) = run(&mut tool(&["replay", "--trust", finding["clip"].as_str().expect("a clip")]));
    let headline = view.lines().nth(1).unwrap_or_default();
    let is_placed = headline.contains(&format!("places.cpp:{line}, thread 0.2"));
    let is_marked = view.contains('✗') && view.contains(&format!("{line} if (is(\"{scenario}\"))"));
    let is_callback = scenario == "callback" && view.contains('✗');
    (!is_placed || !(is_marked || is_callback)).then(|| format!("{scenario} in line {line}:\n{view}"))
}

/// Protects findings from having no place, or that of another thread.
#[test]
fn every_failure_is_placed_at_the_users_line() {
    let source = root().join("crates/cli/tests/tool/programs/places.cpp");
    let text = std::fs::read_to_string(&source).expect("the program can be read");
    let marked = text.lines().zip(1..).filter_map(|(line, number)| {
        let (code, scenario) = line.rsplit_once("// ")?;
        code.ends_with("; ").then(|| (scenario.to_owned(), number))
    });
    let rows: Vec<(String, usize)> = marked.collect();
    assert_eq!(rows.len(), 35, "{rows:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("places");
    let flags = ["-g", "-O0", "-fsanitize=thread", "-pthread", "-w"];
    let built = Command::new("g++").args(flags).arg(&source).arg("-o").arg(&program).status();
    assert!(built.expect("g++ starts").success());
    let place = |(scenario, line): &(String, usize)| {
        objection(path(&program), path(directory.path()), scenario, *line)
    };
    let wrong: Vec<String> = rows.iter().filter_map(place).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
