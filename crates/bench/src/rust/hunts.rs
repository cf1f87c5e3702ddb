//! Hunts in the tests of a suite. What they find is printed for a person to judge: a finding is a false alarm
//! when no real schedule can do that.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;

use super::Result;
use super::suite::Suite;
use crate::build;
use crate::subjects::SourceLine;

/// A line of `cargo threadbare test --json`, as far as it is used here.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Finding(Finding),
    Test(TestLine),
    Summary {},
}

#[derive(Deserialize)]
struct Finding {
    kind: String,
    failure: String,
    locations: Vec<SourceLine>,
    clip: Option<PathBuf>,
    run: u64,
    test: String,
}

#[derive(Deserialize)]
struct TestLine {
    program: String,
    test: String,
    result: String,
    runs: u64,
    problem: Option<String>,
}

pub fn print_header() {
    println!(
        "{:<18} {:<9} {:>4} {:>5} {:>8} {:>6} {:>7} {:>7} {:>5} {:>9} {:>8}",
        "package",
        "version",
        "seed",
        "tests",
        "threaded",
        "passed",
        "in part",
        "runs",
        "short",
        "could not",
        "findings"
    );
}

/// Hunts with each seed and prints a line, and one more for each finding, each reason why tests could not be run, and
/// the tests with fewer than `runs`. `true` when there is none of the first two.
pub fn run(suite: &Suite, seeds: Range<u64>, runs: u64, seconds: u64) -> Result<bool> {
    let mut good = true;
    for seed in seeds {
        let lines = hunt(suite, seed, &format!("{runs}runs,{seconds}s"))?;
        let tests: Vec<&TestLine> = lines.iter().filter_map(Line::test).collect();
        let findings: Vec<&Finding> = lines.iter().filter_map(Line::finding).collect();
        let is_short = |test: &&TestLine| test.result.starts_with("passed") && test.runs < runs;
        let short: Vec<&TestLine> = tests.iter().copied().filter(is_short).collect();
        print_figures(suite, seed, &tests, short.len(), findings.len());
        findings.iter().for_each(|finding| print_finding(finding));
        print_problems(&tests);
        for test in short {
            println!("  only {} runs of {} {}", test.runs, test.program, test.test);
        }
        good &= findings.is_empty() && tests.iter().all(|test| test.problem.is_none());
    }
    Ok(good)
}

fn hunt(suite: &Suite, seed: u64, budget: &str) -> Result<Vec<Line>> {
    let mut command = suite.hunt();
    command.args(["--json", "--budget", budget, "--seed", &seed.to_string(), "--out"]);
    command.arg(suite.beside("clips"));
    let log = suite.beside("hunt.log");
    let results = suite.beside(&format!("hunt-{seed}.json"));
    command.stdout(File::create(&results)?).stderr(File::create(&log)?).status()?;
    let lines = fs::read_to_string(&results)?;
    let lines: Vec<Line> = lines.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    if lines.is_empty() {
        let said = fs::read_to_string(&log)?;
        return Err(format!("the hunt did not begin:\n{}", build::last_lines(&said)).into());
    }
    Ok(lines)
}

impl Line {
    fn test(&self) -> Option<&TestLine> {
        if let Line::Test(test) = self { Some(test) } else { None }
    }

    fn finding(&self) -> Option<&Finding> {
        if let Line::Finding(finding) = self { Some(finding) } else { None }
    }
}

fn print_figures(suite: &Suite, seed: u64, tests: &[&TestLine], short: usize, findings: usize) {
    let count = |result: &str| tests.iter().filter(|test| test.result == result).count();
    println!(
        "{:<18} {:<9} {seed:>4} {:>5} {:>8} {:>6} {:>7} {:>7} {short:>5} {:>9} {findings:>8}",
        suite.name,
        suite.version,
        tests.len(),
        tests.len() - count("no-threads"),
        count("passed"),
        count("passed-in-part"),
        tests.iter().map(|test| test.runs).sum::<u64>(),
        count("could-not-run"),
    );
}

fn print_finding(finding: &Finding) {
    let places: Vec<String> =
        finding.locations.iter().map(|place| format!("{}:{}", place.file, place.line)).collect();
    println!(
        "  {} in {} (run {}): {} at {}{}",
        finding.kind,
        finding.test,
        finding.run,
        finding.failure,
        places.join(", "),
        finding.clip.as_ref().map_or_else(String::new, |clip| format!(": {}", clip.display())),
    );
}

/// Tests that could not be run, by reason.
fn print_problems(tests: &[&TestLine]) {
    let mut problems: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in tests {
        if let Some(problem) = &test.problem {
            problems.entry(problem).or_default().push(format!("{} {}", test.program, test.test));
        }
    }
    for (problem, tests) in problems {
        println!("  {problem}: {}", tests.join(", "));
    }
}
