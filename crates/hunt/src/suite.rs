//! Many tests, each a session of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use threadbare_executor::{StartError, Worker};

use crate::{Emit, Event, Finding, HuntConfig, HuntError, Session, Subject, Summary};

/// A test to hunt in.
pub struct Test {
    /// The program that it is in.
    pub program: String,
    pub name: String,
    pub subject: Subject,
    pub config: HuntConfig,
}

/// What came of a test.
pub struct TestReport {
    /// The program that the test is in.
    pub program: String,
    pub test: String,
    pub result: TestResult,
    /// The session's figures; `None` if it could not be made to the end.
    pub summary: Option<Summary>,
    pub seconds: f64,
    pub findings: Vec<Finding>,
}

/// A test's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestResult {
    Passed,
    /// Too long to be run to its end: nothing was found in how it begins.
    PassedInPart,
    /// Passed, and started no thread: there is only one schedule.
    NoThreads,
    Failed,
    /// It fails by itself, and was not searched for that reason: how.
    FailedAlone(String),
    /// Why.
    CouldNotRun(String),
}

/// All tests in figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuiteSummary {
    pub tests: u64,
    pub passed: u64,
    /// Passed, as far as they were run; also counted in `passed`.
    pub passed_in_part: u64,
    /// Passed without starting a thread; also counted in `passed`.
    pub no_threads: u64,
    pub failed: u64,
    pub could_not_run: u64,
    pub ignored: u64,
    pub runs: u64,
    pub findings: u64,
    pub seconds: f64,
    /// It was told to stop. Tests that were under way are not counted, unless they had failed by then.
    pub interrupted: bool,
}

impl TestReport {
    /// Runs that were made.
    pub fn runs(&self) -> u64 {
        self.summary.as_ref().map_or(0, |summary| summary.runs)
    }
}

impl SuiteSummary {
    pub fn count(&mut self, report: &TestReport) {
        self.tests += 1;
        self.runs += report.runs();
        self.findings += report.findings.len() as u64;
        match report.result {
            TestResult::Passed => self.passed += 1,
            TestResult::PassedInPart => {
                self.passed += 1;
                self.passed_in_part += 1;
            }
            TestResult::NoThreads => {
                self.passed += 1;
                self.no_threads += 1;
            }
            TestResult::Failed | TestResult::FailedAlone(_) => self.failed += 1,
            TestResult::CouldNotRun(_) => self.could_not_run += 1,
        }
    }
}

/// Hunts in all tests, `jobs` at a time. `make` prepares the test with an index, for the worker with a number: what runs
/// at the same time must not have the same process ids.
pub fn run(
    tests: usize,
    jobs: u32,
    ignored: usize,
    make: &(dyn Fn(usize, u32) -> Test + Sync),
    is_cancelled: &(dyn Fn() -> bool + Sync),
    emit: &mut Emit<'_>,
) -> Result<SuiteSummary, HuntError> {
    let start = Instant::now();
    let mut summary = SuiteSummary { ignored: ignored as u64, ..SuiteSummary::default() };
    let next = AtomicUsize::new(0);
    let (reports, finished) = mpsc::channel();
    thread::scope(|scope| {
        for worker in 0..jobs {
            let (reports, next) = (reports.clone(), &next);
            scope.spawn(move || {
                while !is_cancelled() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= tests {
                        break;
                    }
                    let report = hunt_in(make(index, worker));
                    // How a test would have gone on is not known.
                    if !is_cancelled() || report.result == TestResult::Failed {
                        // The other end is there as long as this one.
                        let _ = reports.send(report);
                    }
                }
            });
        }
        drop(reports);
        let said = finished.iter().try_for_each(|report| {
            summary.count(&report);
            emit(Event::TestFinished(&report))
        });
        if said.is_err() {
            // Nobody listens any more.
            next.store(tests, Ordering::Relaxed);
        }
        said.map_err(HuntError::Report)
    })?;
    summary.seconds = start.elapsed().as_secs_f64();
    summary.interrupted = is_cancelled();
    emit(Event::SuiteFinished(&summary)).map_err(HuntError::Report)?;
    Ok(summary)
}

/// Hunts in one test.
fn hunt_in(test: Test) -> TestReport {
    let start = Instant::now();
    let Test { program, name, subject, config } = test;
    let mut findings: Vec<Finding> = Vec::new();
    let mut keep = |event: Event<'_>| {
        if let Event::Found(finding) = event {
            findings.push(Finding { test: Some(name.clone()), ..finding.clone() });
        }
        Ok(())
    };
    let summary = match Worker::start(&subject.target, &config.limits) {
        Ok(worker) => Session::new(worker, &subject, &config, &mut keep).run(),
        Err(StartError::NoThread(_)) => Ok(Summary::new(start)),
        Err(error) => Err(error.into()),
    };
    let (result, summary) = match summary {
        Ok(summary) => (result(&summary, &config), Some(summary)),
        Err(error) => (failed_start(&error), None),
    };
    TestReport { program, test: name, result, summary, seconds: start.elapsed().as_secs_f64(), findings }
}

/// A test that could not be brought to its first thread has failed if it fails by itself too.
fn failed_start(error: &HuntError) -> TestResult {
    match error {
        HuntError::Start(StartError::FailedEarly { what, plain: Some(plain), .. }) if plain.failed() => {
            let end = plain.end();
            TestResult::FailedAlone(format!(
                "{what} before its first thread, and without Threadbare's scheduling too ({end})"
            ))
        }
        _ => TestResult::CouldNotRun(error.to_string()),
    }
}

fn result(summary: &Summary, config: &HuntConfig) -> TestResult {
    match summary.findings {
        0 if summary.is_nothing_known() => TestResult::CouldNotRun(summary.nothing_known(config).to_string()),
        0 if summary.nothing_ended() => match summary.plain.as_ref().filter(|plain| plain.failed()) {
            Some(plain) => {
                let end = plain.end();
                TestResult::FailedAlone(format!(
                    "no run came to its end; without Threadbare's scheduling it fails: {end}"
                ))
            }
            None => TestResult::PassedInPart,
        },
        0 if summary.threads <= config.harness_threads => TestResult::NoThreads,
        0 => TestResult::Passed,
        _ => TestResult::Failed,
    }
}
