//! `cargo threadbare test`: every test of the project, each hunted in by itself.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use console::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use threadbare_executor::{Origin, StartError, Target, Worker};

use super::REPLAY;
use super::arguments::CargoTestOptions;
use super::listing::{self, Case, HARNESS_THREADS};
use super::project::{Built, Project};
use crate::arguments::Budget;
use crate::exit;
use crate::finding::Finding;
use crate::hunt::{self, Summary, Terms};
use crate::output::{self, say};
use crate::problem::Problem;
use crate::target::{self, Ready};

/// Of each test, unless the user says otherwise.
const BUDGET: Budget = Budget { runs: Some(200), time: Some(Duration::from_secs(60)) };

pub fn run(options: &CargoTestOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    hunt::check_directory(&options.hunt.search.out)?;
    let project = Project::find(&options.hunt.cargo)?;
    let built = project.build("test", &options.hunt.cargo.build_arguments())?;
    for name in &built.in_compiler {
        eprintln!("     Skipping {name}, which runs inside the compiler");
    }
    if options.no_hunt {
        return run_once(&built, options);
    }
    let listings: Vec<_> =
        built.executables.iter().map(|executable| listing::list(executable, options)).collect();
    let ignored = listings.iter().map(|listing| listing.ignored).sum();
    let cases: Vec<Case<'_>> = listings.into_iter().flat_map(|listing| listing.cases).collect();
    let mut suite = Suite::new(options, &cases, built.executables.len(), ignored)?;
    suite.hunt_all(&cases, cancelled)?;
    suite.finish(built.incomplete, cancelled.load(Ordering::Relaxed))
}

/// As `cargo test` does it.
fn run_once(built: &Built, options: &CargoTestOptions) -> Result<u8, Problem> {
    let mut failed = false;
    for executable in &built.executables {
        eprintln!("     Running {}", executable.name);
        let mut command = executable.command();
        let status = command.args(&options.filter).args(&options.arguments).status();
        let status = status.map_err(|error| Problem::file("run", &executable.path, error))?;
        failed |= !status.success();
    }
    match (failed, built.incomplete) {
        (true, _) => Ok(exit::FOUND),
        (false, true) => Err(incomplete()),
        (false, false) => Ok(exit::NOTHING_FOUND),
    }
}

fn incomplete() -> Problem {
    Problem::new("some of the project does not build; what does was tested")
}

/// What came of a test. Serialises to its line of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    /// The program that the test is in.
    program: String,
    test: String,
    result: Verdict,
    runs: u64,
    /// Of how many of these only the beginning was run.
    beginnings: u64,
    /// How many of these were stopped at the time limit.
    late: u64,
    /// How many of these failed, though not when the same schedule was forced.
    unconfirmed: u64,
    seconds: f64,
    /// Why it could not be run.
    problem: Option<String>,
    #[serde(skip)]
    findings: Vec<Finding>,
}

#[derive(Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Passed,
    /// Too long to be run to its end: nothing was found in how it begins.
    PassedInPart,
    /// Passed, and started no thread: there is only one schedule.
    NoThreads,
    Failed,
    CouldNotRun,
}

/// Hunts in one test.
fn hunt_one(case: &Case<'_>, lane: u32, options: &CargoTestOptions, cancelled: &Arc<AtomicBool>) -> Report {
    let start = Instant::now();
    let mut report = Report {
        kind_of_line: "test",
        program: case.executable.name.clone(),
        // A program with a harness of its own is run from there.
        test: case.name.clone().unwrap_or_else(|| "main".to_owned()),
        result: Verdict::Passed,
        runs: 0,
        beginnings: 0,
        late: 0,
        unconfirmed: 0,
        seconds: 0.0,
        problem: None,
        findings: Vec::new(),
    };
    let findings = RefCell::new(Vec::new());
    let keep = |finding: Finding| {
        findings.borrow_mut().push(finding);
        Ok(())
    };
    let (ready, terms) = prepare(case, lane, options, cancelled);
    let result = match Worker::start(&ready.target, &terms.limits) {
        Ok(worker) => hunt::search(worker, &ready, &terms, &ProgressBar::hidden(), &keep),
        Err(StartError::NoThread(_)) => Ok(Summary::new(start)),
        Err(error) => Err(error.into()),
    };
    report.findings = findings.into_inner();
    if let Ok(summary) = &result {
        (report.runs, report.beginnings) = (summary.runs, summary.beginnings);
        (report.late, report.unconfirmed) = (summary.late(), summary.unconfirmed);
    }
    let result = result.and_then(|summary| verdict(&summary, &terms));
    report.result = result.unwrap_or_else(|problem| {
        report.problem = Some(problem.to_string());
        Verdict::CouldNotRun
    });
    for finding in &mut report.findings {
        finding.test = Some(report.test.clone());
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}

fn verdict(summary: &Summary, terms: &Terms) -> Result<Verdict, Problem> {
    match summary.findings {
        0 if summary.is_nothing_known() => Err(hunt::nothing_known(summary, terms)),
        0 if summary.nothing_ended() => Ok(Verdict::PassedInPart),
        0 if summary.threads <= terms.lonely => Ok(Verdict::NoThreads),
        0 => Ok(Verdict::Passed),
        _ => Ok(Verdict::Failed),
    }
}

fn prepare(
    case: &Case<'_>,
    lane: u32,
    options: &CargoTestOptions,
    cancelled: &Arc<AtomicBool>,
) -> (Ready, Terms) {
    let target = Target { lane, ..case.executable.target(case.arguments.clone()) };
    let origin = Origin {
        target: case.executable.path.to_string_lossy().into_owned(),
        compiler_arguments: case.executable.recipe.clone(),
        arguments: case.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        input: None,
    };
    let terms = Terms {
        first: true,
        jobs: 1,
        seed: options.hunt.seed,
        max_events: options.hunt.limits.max_events,
        limits: target::limits(&options.hunt.limits, cancelled),
        name: case.name.as_ref().unwrap_or(&case.executable.name).clone(),
        lonely: if case.name.is_some() { HARNESS_THREADS } else { 1 },
        ..Terms::new(&options.hunt.search, BUDGET)
    };
    (Ready::built(target, origin), terms)
}

/// All tests, and what is said of them.
struct Suite<'a> {
    options: &'a CargoTestOptions,
    progress: ProgressBar,
    start: Instant,
    ignored: usize,
    figures: Figures,
    /// One line each, to be said again at the end.
    failed: Vec<String>,
}

/// Serialises to the `summary` line of `--json`.
#[derive(Default, Serialize)]
struct Figures {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    tests: u64,
    passed: u64,
    /// Passed, as far as they were run; also counted in `passed`.
    passed_in_part: u64,
    /// Passed without starting a thread; also counted in `passed`.
    no_threads: u64,
    failed: u64,
    could_not_run: u64,
    ignored: u64,
    runs: u64,
    findings: u64,
    seconds: f64,
}

impl<'a> Suite<'a> {
    fn new(
        options: &'a CargoTestOptions,
        cases: &[Case<'_>],
        programs: usize,
        ignored: usize,
    ) -> Result<Suite<'a>, Problem> {
        let suite = Suite {
            options,
            progress: progress(cases.len()),
            start: Instant::now(),
            ignored,
            figures: Figures { kind_of_line: "summary", ignored: ignored as u64, ..Figures::default() },
            failed: Vec::new(),
        };
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let binaries = if programs == 1 { "1 binary".to_owned() } else { format!("{programs} binaries") };
        suite.say(
            "Starting",
            Style::new().green(),
            &format!("{} across {binaries}", plural(cases.len(), "test")),
        )?;
        Ok(suite)
    }

    fn hunt_all(&mut self, cases: &[Case<'_>], cancelled: &Arc<AtomicBool>) -> Result<(), Problem> {
        let options = self.options;
        let next = AtomicUsize::new(0);
        let (reports, finished) = mpsc::channel();
        let said = thread::scope(|scope| {
            for lane in 0..Terms::new(&options.hunt.search, BUDGET).jobs {
                let (reports, next) = (reports.clone(), &next);
                scope.spawn(move || {
                    while !cancelled.load(Ordering::Relaxed)
                        && let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        // The other end is there as long as this one.
                        let _ = reports.send(hunt_one(case, lane, options, cancelled));
                    }
                });
            }
            drop(reports);
            let said = finished.iter().try_for_each(|report| self.take(&report));
            if said.is_err() {
                // Nobody listens any more.
                next.store(cases.len(), Ordering::Relaxed);
            }
            said
        });
        self.progress.finish_and_clear();
        said
    }

    fn take(&mut self, report: &Report) -> Result<(), Problem> {
        let figures = &mut self.figures;
        figures.tests += 1;
        figures.runs += report.runs;
        figures.findings += report.findings.len() as u64;
        match report.result {
            Verdict::Passed => figures.passed += 1,
            Verdict::PassedInPart => {
                figures.passed += 1;
                figures.passed_in_part += 1;
            }
            Verdict::NoThreads => {
                figures.passed += 1;
                figures.no_threads += 1;
            }
            Verdict::Failed => figures.failed += 1,
            Verdict::CouldNotRun => figures.could_not_run += 1,
        }
        self.progress.inc(1);
        if matches!(report.result, Verdict::Failed | Verdict::CouldNotRun) {
            self.failed.push(line(report));
        }
        self.progress.suspend(|| self.show(report))
    }

    fn show(&self, report: &Report) -> Result<(), Problem> {
        if self.options.hunt.search.json {
            report.findings.iter().try_for_each(output::print_json)?;
            return output::print_json(report);
        }
        say!("{}", line(report))?;
        report.findings.iter().try_for_each(|finding| {
            say!("")?;
            hunt::print(finding, false, REPLAY)
        })
    }

    /// `    Starting …`, as cargo words it.
    fn say(&self, verb: &str, style: Style, what: &str) -> Result<(), Problem> {
        if self.options.hunt.search.json {
            return Ok(());
        }
        say!("{} {what}", style.bold().apply_to(format!("{verb:>12}")))
    }

    fn finish(mut self, incomplete: bool, interrupted: bool) -> Result<u8, Problem> {
        self.figures.seconds = self.start.elapsed().as_secs_f64();
        if self.options.hunt.search.json {
            output::print_json(&self.figures)?;
        } else {
            self.summarise()?;
        }
        match &self.figures {
            Figures { failed: 1.., .. } => Ok(exit::FOUND),
            _ if incomplete => Err(self::incomplete()),
            Figures { tests: 0, .. } if !interrupted => Err(self.nothing_to_run()),
            Figures { could_not_run: 1.., .. } => Ok(exit::COULD_NOT_RUN),
            _ if interrupted => Ok(exit::INTERRUPTED),
            _ => Ok(exit::NOTHING_FOUND),
        }
    }

    /// Who mistypes a name is not told that all is well.
    fn nothing_to_run(&self) -> Problem {
        match (&self.options.filter, self.ignored) {
            (_, 1..) => Problem::new("no tests to run: those that were asked for are ignored")
                .help("to run them: cargo threadbare test [FILTER] -- --ignored"),
            (Some(filter), 0) => Problem::new(format!("no tests to run: no name contains `{filter}`"))
                .help("to see all names: cargo test -- --list"),
            (None, 0) => Problem::new("no tests to run"),
        }
    }

    fn summarise(&self) -> Result<(), Problem> {
        let Figures {
            tests, passed, passed_in_part, no_threads, failed, could_not_run, runs, seconds, ..
        } = self.figures;
        let style = if self.failed.is_empty() { Style::new().green() } else { Style::new().red() };
        let plural = if tests == 1 { "" } else { "s" };
        let mut what = format!("[{seconds:8.3}s] {tests} test{plural} run: {passed} passed");
        if no_threads > 0 {
            what += &format!(" ({no_threads} without threads)");
        }
        if passed_in_part > 0 {
            what += &format!(" ({passed_in_part} in part)");
        }
        what += &format!(", {failed} failed");
        if could_not_run > 0 {
            what += &format!(", {could_not_run} could not be run");
        }
        what += &format!(", {} skipped; {runs} runs", self.ignored);
        say!("------------")?;
        self.say("Summary", style, &what)?;
        self.failed.iter().try_for_each(|line| say!("{line}"))
    }
}

/// `        PASS [   0.123s] demo tests::counts (200 runs)`.
fn line(report: &Report) -> String {
    let (word, style) = match report.result {
        Verdict::Passed | Verdict::PassedInPart | Verdict::NoThreads => ("PASS", Style::new().green()),
        Verdict::Failed => ("FAIL", Style::new().red()),
        Verdict::CouldNotRun => ("ERROR", Style::new().yellow()),
    };
    let remark = match (report.result, report.runs) {
        (Verdict::NoThreads, _) => "(no threads)".to_owned(),
        (Verdict::CouldNotRun, _) => format!("({})", report.problem.as_deref().unwrap_or_default()),
        (Verdict::PassedInPart, runs) => format!("({runs} runs, none to its end: it is too long)"),
        (_, 1) => "(1 run)".to_owned(),
        (_, runs) => {
            let mut parts = vec![format!("{runs} runs")];
            let mut add = |count: u64, what: &str| {
                if count > 0 {
                    parts.push(format!("{count} {what}"));
                }
            };
            add(report.beginnings, "of them in part");
            add(report.late, "stopped at the time limit");
            add(report.unconfirmed, "failed, but not when the same schedule was forced");
            format!("({})", parts.join(", "))
        }
    };
    let program = Style::new().magenta().apply_to(&report.program);
    let word = style.bold().apply_to(format!("{word:>12}"));
    format!("{word} [{:8.3}s] {program} {} {remark}", report.seconds, report.test)
}

/// A bar for a person; nothing where the output goes elsewhere.
fn progress(tests: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(tests as u64), ProgressDrawTarget::stderr());
    // The template is ours; a mistake in it only costs the style.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} tests  {per_sec}  {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
