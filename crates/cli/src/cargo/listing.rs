//! The tests of a test program.

use std::collections::HashSet;
use std::ffi::OsString;

use threadbare_executor::keep;

use super::arguments::CargoTestOptions;
use super::project::Executable;

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
pub fn list<'a>(executable: &'a Executable, options: &CargoTestOptions) -> Listing<'a> {
    let Some(tests) = names(executable, options, &[]) else {
        return Listing { cases: vec![whole(executable, options)], ignored: 0 };
    };
    let asked = |flag: &str| options.arguments.iter().any(|argument| argument == flag);
    let ignored: HashSet<String> = match asked("--ignored") || asked("--include-ignored") {
        true => HashSet::new(),
        false => names(executable, options, &["--ignored"]).into_iter().flatten().collect(),
    };
    let cases = tests.into_iter().filter(|name| !ignored.contains(name)).map(|name| {
        let arguments = ["--exact", &name, "--test-threads=1", "--include-ignored"];
        let arguments = arguments.map(OsString::from).to_vec();
        Case { executable, name: Some(name), arguments }
    });
    Listing { cases: cases.collect(), ignored: ignored.len() }
}

fn whole<'a>(executable: &'a Executable, options: &CargoTestOptions) -> Case<'a> {
    let arguments = options.filter.iter().chain(&options.arguments).map(OsString::from).collect();
    Case { executable, name: None, arguments }
}

/// The names that the harness lists; `None` if it is not the usual harness.
fn names(executable: &Executable, options: &CargoTestOptions, more: &[&str]) -> Option<Vec<String>> {
    let mut command = executable.command();
    command.args(&options.filter).arg("--list").args(&options.arguments).args(more);
    let output =
        keep(&mut command).and_then(|()| command.output()).ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    // It counts what it has listed, be it nothing; a program that does not care for its arguments does not.
    lines.last().filter(|last| last.ends_with(" benchmarks") || last.ends_with(" benchmark"))?;
    Some(lines.iter().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}
