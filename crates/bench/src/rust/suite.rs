//! The tests of a package, and the two ways to run them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use super::Result;
use super::package::{Package, Source};
use crate::build;

/// Nothing that is measured takes this long, unless it hangs.
const TIME_LIMIT: &str = "900";

pub struct Suite {
    pub name: &'static str,
    pub version: String,
    pub directory: PathBuf,
    /// Which tests to build, in cargo's words.
    selection: Vec<String>,
    tool: PathBuf,
}

#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// `cargo test`
    Plain,
    /// `cargo threadbare test --no-hunt`
    Instrumented,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Plain, Side::Instrumented];
}

/// What came of a command.
pub struct Ran {
    pub status: ExitStatus,
    pub seconds: f64,
    /// All it said, on both streams.
    pub said: String,
}

impl Suite {
    pub fn new(package: &Package, source: Source, tool: &Path) -> Result<Suite> {
        let Source { version, directory } = source;
        let mut selection: Vec<String> =
            package.features.iter().map(|feature| format!("--features={feature}")).collect();
        if package.tests.is_empty() {
            selection.extend(["--lib".to_owned(), "--tests".to_owned()]);
        } else {
            selection.extend(tests_called(&directory, package.tests)?);
        }
        Ok(Suite { name: package.name, version, directory, selection, tool: tool.to_owned() })
    }

    /// Builds and runs the tests with `arguments` for the test programs.
    pub fn run(&self, side: Side, arguments: &[&str]) -> Result<Ran> {
        let mut command = match side {
            Side::Plain => self.limited(Path::new(env!("CARGO")), &["test", "--no-fail-fast"]),
            Side::Instrumented => self.limited(&self.tool, &["threadbare", "test", "--no-hunt"]),
        };
        command.args(&self.selection).arg("--").args(arguments);
        let log = self.beside(&format!("{side:?}.log").to_lowercase());
        // One file, so that the names of programs stand among the results of their tests.
        let file = File::create(&log)?;
        let start = Instant::now();
        let status = command.stdout(file.try_clone()?).stderr(file).status()?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Ran { status, seconds, said: String::from_utf8_lossy(&fs::read(&log)?).into_owned() })
    }

    /// `cargo threadbare test`, to be given its options.
    pub fn hunt(&self) -> Command {
        let mut command = build::command(&self.tool);
        command.args(["threadbare", "test"]).args(&self.selection).current_dir(&self.directory);
        command
    }

    /// A file or directory beside the source.
    pub fn beside(&self, what: &str) -> PathBuf {
        self.directory.with_file_name(format!("{}-{}.{what}", self.name, self.version))
    }

    /// A command that ends with all it has started, also if a test hangs.
    fn limited(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = build::command("timeout");
        command.args(["--kill-after=5", TIME_LIMIT]).arg(program).args(arguments);
        command.current_dir(&self.directory);
        command
    }
}

/// `--test=NAME` for each integration test whose name begins with `prefix`.
fn tests_called(package: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut tests = Vec::new();
    for entry in fs::read_dir(package.join("tests"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(test) = name.strip_suffix(".rs").filter(|test| test.starts_with(prefix)) {
            tests.push(format!("--test={test}"));
        }
    }
    tests.sort();
    Ok(tests)
}
