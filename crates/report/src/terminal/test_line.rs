//! The line of a test.
//!
//! ```text
//! line     = outcome " [" seconds "] " program " " test [ " (" remark ")" ]
//! outcome  = "PASS" | "FAIL" | "ERROR"
//! remark   = done [ "; " left-out ] | problem
//! done     = part { ", " part }           what was done: `200 runs`, `no threads`
//! left-out = part { ", " part }           what was not: `12 in part`, `none to its end`, `sleeps not outlasted`
//! ```
//!
//! Whatever a search can say of a test is a part of `done` or of `left-out`, and both lists keep their order.

use console::Style;
use threadbare_hunt::suite::{TestReport, TestResult};
use threadbare_hunt::{Dependence, REACHABILITY};

use super::summary::{counted, unfinished};
use threadbare_search::Explored;

use super::timing;

/// The parts of a test's line.
#[derive(Clone, Debug, PartialEq)]
pub struct TestLine {
    pub outcome: Outcome,
    pub seconds: f64,
    pub program: String,
    pub test: String,
    /// What was done.
    pub done: Vec<String>,
    /// What was left out.
    pub left_out: Vec<String>,
}

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    Fail,
    Error,
}

impl TestLine {
    pub fn of(report: &TestReport) -> TestLine {
        let outcome = match report.result {
            TestResult::Passed | TestResult::PassedInPart | TestResult::NoThreads => Outcome::Pass,
            TestResult::Failed | TestResult::FailedAlone(_) => Outcome::Fail,
            TestResult::CouldNotRun(_) => Outcome::Error,
        };
        let done = match &report.result {
            TestResult::NoThreads => "no threads".to_owned(),
            TestResult::CouldNotRun(problem) | TestResult::FailedAlone(problem) => problem.clone(),
            _ => {
                match report
                    .summary
                    .as_ref()
                    .filter(|summary| summary.exhausted && summary.methods.contains_key(REACHABILITY))
                    .and_then(|all| all.explored)
                {
                    Some(Explored { classes: 1, .. }) => "the only interleaving".to_owned(),
                    Some(Explored { classes, .. }) => format!("all {}", counted(classes, "interleaving")),
                    None => counted(report.runs(), "run"),
                }
            }
        };
        TestLine {
            outcome,
            seconds: report.seconds,
            program: report.program.clone(),
            test: report.test.clone(),
            done: std::iter::once(done).chain(always(report)).collect(),
            left_out: left_out(report),
        }
    }

    /// The line, with ANSI escapes if `colour`.
    pub fn to_string(&self, colour: bool) -> String {
        let (word, style) = match self.outcome {
            Outcome::Pass => ("PASS", Style::new().green()),
            Outcome::Fail => ("FAIL", Style::new().red()),
            Outcome::Error => ("ERROR", Style::new().yellow()),
        };
        let word = style.bold().force_styling(colour).apply_to(format!("{word:>12}"));
        let program = Style::new().magenta().force_styling(colour).apply_to(&self.program);
        let mut remark = self.done.join(", ");
        if !self.left_out.is_empty() {
            remark += &format!("; {}", self.left_out.join(", "));
        }
        let remark = if remark.is_empty() { remark } else { format!(" ({remark})") };
        format!("{word} [{:8.3}s] {program} {}{remark}", self.seconds, self.test)
    }
}

/// A test that fails under `cargo test` as well is told apart.
fn always(report: &TestReport) -> Option<String> {
    let timing = report.findings.first()?.timing.as_ref()?;
    if timing.dependence() != Dependence::Always {
        return None;
    }
    let too = timing.plain().filter(|plain| !plain.passed());
    let words =
        if too.is_some() { "fails without Threadbare's scheduling too" } else { "fails in every schedule" };
    Some(format!("{words}: it does not depend on timing"))
}

fn left_out(report: &TestReport) -> Vec<String> {
    let (Some(summary), TestResult::Passed | TestResult::PassedInPart | TestResult::Failed) =
        (&report.summary, &report.result)
    else {
        return Vec::new();
    };
    if report.result == TestResult::PassedInPart {
        let plain = summary.plain.as_ref().map(timing::endless);
        return [Some("none to its end".to_owned()), plain].into_iter().flatten().collect();
    }
    let parts = [
        (summary.beginnings, "in part"),
        (summary.stopped.time_limit, "stopped at the time limit"),
        (summary.unconfirmed, "failed, but not when the same schedule was forced"),
    ];
    let counted = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let sleeps = summary.sleeps_held.then(|| "sleeps not outlasted".to_owned());
    counted.chain(summary.unfinished.as_ref().map(unfinished)).chain(sleeps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: Outcome, done: &[&str], left_out: &[&str]) -> String {
        let owned = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect();
        let (program, test) = ("demo".to_owned(), "tests::counts".to_owned());
        let line = TestLine {
            outcome,
            seconds: 0.1234,
            program,
            test,
            done: owned(done),
            left_out: owned(left_out),
        };
        line.to_string(false)
    }

    /// Protects the grammar that scripts and people rely on.
    #[test]
    fn a_line_says_what_was_done_and_then_what_was_left_out() {
        let passed = line(Outcome::Pass, &["200 runs"], &[]);
        assert_eq!(passed, "        PASS [   0.123s] demo tests::counts (200 runs)");
        let in_part = line(Outcome::Pass, &["all 762 interleavings"], &["3 in part", "sleeps not outlasted"]);
        assert_eq!(
            in_part,
            "        PASS [   0.123s] demo tests::counts (all 762 interleavings; 3 in part, sleeps not outlasted)"
        );
        assert_eq!(
            line(Outcome::Error, &["not built"], &[]),
            "       ERROR [   0.123s] demo tests::counts (not built)"
        );
    }
}
