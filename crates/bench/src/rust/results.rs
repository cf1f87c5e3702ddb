//! Parses the output of a test suite.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    pub program: String,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    Failed,
    Ignored,
}

/// The result of each test that has one. A test that was running when its program died, or was ended, has none.
pub fn read(said: &str) -> BTreeMap<Test, Outcome> {
    let mut program = String::new();
    let mut results = BTreeMap::new();
    for line in said.lines() {
        if let Some(running) = line.strip_prefix("     Running ") {
            program = program_name(running);
        } else if let Some((name, outcome)) = result(line) {
            results.insert(Test { program: program.clone(), name }, outcome);
        }
    }
    results
}

/// From cargo's `tests/list.rs (target/debug/deps/list-0123456789abcdef)` and from our `package::list`: `list`.
fn program_name(running: &str) -> String {
    let name = match running.strip_suffix(')').and_then(|running| running.rsplit_once('/')) {
        Some((_, file)) => file.rsplit_once('-').map_or(file, |(name, _hash)| name),
        None => running.rsplit([':', '/']).next().unwrap_or(running),
    };
    name.replace('-', "_")
}

/// `test NAME ... ok`
fn result(line: &str) -> Option<(String, Outcome)> {
    let (name, word) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match word.split([',', ' ']).next()? {
        "ok" => Outcome::Ok,
        "FAILED" => Outcome::Failed,
        "ignored" => Outcome::Ignored,
        _ => return None,
    };
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    Some((name.to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_and_we_name_the_same_programs() {
        for running in
            ["unittests src/lib.rs (target/debug/deps/arc_swap-0123456789abcdef)", "arc-swap", "x::arc_swap"]
        {
            assert_eq!(program_name(running), "arc_swap");
        }
    }

    #[test]
    fn every_kind_of_result_is_read() {
        let said = "     Running tests/list.rs (target/debug/deps/list-0123456789abcdef)\n\
                    test a ... ok\ntest b::c - should panic ... FAILED\ntest d ... ignored, too slow\n\
                    test e ... \ntest result: FAILED. 1 passed\n";
        let test = |name: &str| Test { program: "list".into(), name: name.into() };
        let expected =
            [(test("a"), Outcome::Ok), (test("b::c"), Outcome::Failed), (test("d"), Outcome::Ignored)];
        assert_eq!(read(said), BTreeMap::from(expected));
    }
}
