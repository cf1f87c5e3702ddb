//! Compares the results of a suite with those of `cargo test`.

use std::collections::BTreeSet;
use std::fmt;

use super::Result;
use super::results::{self, Outcome, Test};
use super::suite::{Side, Suite};
use crate::build;

/// How often a test that differs is run again on each side.
const RERUNS: usize = 5;

pub fn print_header() {
    println!(
        "{:<18} {:<9} {:>5} {:>5} {:>5} {:>7} {:>12} {:>12} {:>5}",
        "package", "version", "tests", "same", "flaky", "differ", "plain build", "our build", "ratio"
    );
}

/// Runs the suite on both sides and prints a line, and one more for each test that differed. `true` when none
/// differs for good.
pub fn run(suite: &Suite) -> Result<bool> {
    let is_anew = !suite.directory.join("target").exists();
    let builds = both(|side| build(suite, side))?;
    let [plain, ours] = both(|side| Ok(results::read(&suite.run(side, &[])?.said)))?;
    let tests: BTreeSet<&Test> = plain.keys().chain(ours.keys()).collect();
    let mut different = Vec::new();
    for &test in &tests {
        let first = [plain.get(test).copied(), ours.get(test).copied()];
        if first[0] != first[1] {
            different.push(Difference::examine(suite, test, first)?);
        }
    }
    let flaky = different.iter().filter(|difference| difference.is_flaky()).count();
    println!(
        "{:<18} {:<9} {:>5} {:>5} {:>5} {:>7} {}",
        suite.name,
        suite.version,
        tests.len(),
        tests.len() - different.len(),
        flaky,
        different.len() - flaky,
        build_columns(is_anew, builds),
    );
    for difference in &different {
        println!("  {difference}");
    }
    if tests.is_empty() {
        println!("  no test gave a result: see {}", suite.beside("plain.log").display());
    }
    Ok(flaky == different.len() && !tests.is_empty())
}

fn both<T>(mut what: impl FnMut(Side) -> Result<T>) -> Result<[T; 2]> {
    let [plain, instrumented] = Side::BOTH;
    Ok([what(plain)?, what(instrumented)?])
}

/// Builds the tests on one side; they are only listed.
fn build(suite: &Suite, side: Side) -> Result<f64> {
    let ran = suite.run(side, &["--list"])?;
    if ran.status.success() {
        return Ok(ran.seconds);
    }
    Err(format!("cannot build its tests ({side:?}):\n{}", build::last_lines(&ran.said)).into())
}

/// Seconds of both builds and their ratio; dashes where an earlier build was there to be used again.
fn build_columns(is_anew: bool, [plain, ours]: [f64; 2]) -> String {
    if !is_anew {
        return format!("{:>12} {:>12} {:>5}", "-", "-", "-");
    }
    format!("{plain:>11.1}s {ours:>11.1}s {:>5.2}", ours / plain)
}

/// A test whose first results were not the same.
struct Difference {
    test: Test,
    /// All results of each side, the first one first.
    outcomes: [Vec<Option<Outcome>>; 2],
}

impl Difference {
    /// Runs the test again, by itself.
    fn examine(suite: &Suite, test: &Test, first: [Option<Outcome>; 2]) -> Result<Difference> {
        let mut outcomes = first.map(|outcome| vec![outcome]);
        for _ in 0..RERUNS {
            for (side, outcomes) in Side::BOTH.into_iter().zip(&mut outcomes) {
                let ran = suite.run(side, &["--exact", &test.name])?;
                outcomes.push(results::read(&ran.said).get(test).copied());
            }
        }
        Ok(Difference { test: test.clone(), outcomes })
    }

    /// One side, at least, does not agree with itself.
    fn is_flaky(&self) -> bool {
        self.outcomes.iter().any(|outcomes| outcomes.iter().any(|outcome| *outcome != outcomes[0]))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_flaky() { "flaky" } else { "DIFFERS" };
        let ok = self.outcomes.each_ref().map(|outcomes| {
            format!("{} of {}", outcomes.iter().filter(|&&o| o == Some(Outcome::Ok)).count(), outcomes.len())
        });
        write!(
            formatter,
            "{word}: {} {}: ok in {} under cargo test, in {} under ours",
            self.test.program, self.test.name, ok[0], ok[1]
        )
    }
}
