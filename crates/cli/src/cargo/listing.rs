//! The tests of a test program.

use std::collections::HashSet;
use std::ffi::OsString;
use std::process::Stdio;

use super::harness_options::HarnessOptions;
use super::project::Executable;
use crate::files;
use crate::problem::Problem;

/// A test, or a whole program with its own harness. Each has a session of its own.
pub struct Case<'a> {
    pub executable: &'a Executable,
    /// `None` for a program with a harness of its own, which is run as it is.
    pub name: Option<String>,
    pub arguments: Vec<OsString>,
}

/// The tests of a program that were asked for.
#[derive(Default)]
pub struct Listing<'a> {
    pub cases: Vec<Case<'a>>,
    /// The number of tests that are marked `#[ignore]`.
    pub ignored: usize,
}

/// The threads of the harness: its main thread, and the one that runs the test.
pub const HARNESS_THREADS: u32 = 2;

/// Asks the program for its tests.
pub fn list<'a>(
    executable: &'a Executable,
    filter: Option<&String>,
    options: &HarnessOptions,
) -> Result<Listing<'a>, Problem> {
    let chosen: Vec<&str> = filter.into_iter().chain(&options.choice).map(String::as_str).collect();
    let tests = match names(executable, &chosen)? {
        Listed::Tests(tests) => tests,
        // The usual harness lists its tests unless it is given options that it does not know.
        Listed::Failed(said) if !chosen.is_empty() && matches!(names(executable, &[])?, Listed::Tests(_)) => {
            return Err(Problem::new(format!("the test harness of {} says: {said}", executable.name)).help(
                "options after `--` are for the harness; those of cargo and of the hunt go before it",
            ));
        }
        Listed::Failed(_) | Listed::OwnHarness => {
            let arguments = chosen.into_iter().map(OsString::from).collect();
            return Ok(Listing { cases: vec![Case { executable, name: None, arguments }], ignored: 0 });
        }
    };
    let asked = |flag: &str| chosen.contains(&flag);
    let ignored: HashSet<String> = match asked("--ignored") || asked("--include-ignored") {
        true => HashSet::new(),
        false => match names(executable, &[&chosen[..], &["--ignored"]].concat())? {
            Listed::Tests(tests) => tests.into_iter().collect(),
            Listed::Failed(_) | Listed::OwnHarness => HashSet::new(),
        },
    };
    let cases = tests.into_iter().filter(|name| !ignored.contains(name)).map(|name| {
        let arguments = ["--exact", &name, "--test-threads=1", "--include-ignored"];
        let arguments = arguments.map(OsString::from).to_vec();
        Case { executable, name: Some(name), arguments }
    });
    Ok(Listing { cases: cases.collect(), ignored: ignored.len() })
}

/// What a program says to `--list`.
enum Listed {
    Tests(Vec<String>),
    /// It failed, and said this.
    Failed(String),
    /// It did something else.
    OwnHarness,
}

/// More is no list of tests.
const LIST_LIMIT: u64 = 64 << 20;

fn names(executable: &Executable, arguments: &[&str]) -> Result<Listed, Problem> {
    let mut command = executable.command();
    command.arg("--list").args(arguments).stdin(Stdio::null());
    let (status, stdout, stderr) = files::output(&mut command, LIST_LIMIT)
        .map_err(|error| Problem::file("list the tests of", &executable.path, error))?;
    if !status.success() {
        let said = String::from_utf8_lossy(if stderr.is_empty() { &stdout } else { &stderr });
        let said = said.trim().trim_start_matches("error: ").to_owned();
        return Ok(Listed::Failed(if said.is_empty() { status.to_string() } else { said }));
    }
    let Ok(text) = String::from_utf8(stdout) else { return Ok(Listed::OwnHarness) };
    let lines: Vec<&str> = text.lines().collect();
    // It counts what it has listed, be it nothing; a program that does not care for its arguments does not.
    let is_count = |last: &&str| last.ends_with(" benchmarks") || last.ends_with(" benchmark");
    Ok(match lines.last().is_some_and(is_count) {
        true => Listed::Tests(
            lines.iter().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect(),
        ),
        false => Listed::OwnHarness,
    })
}
