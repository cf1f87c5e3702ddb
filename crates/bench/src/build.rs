//! Compiling what is measured, and finding the tool.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Flags of a program that is to run under Threadbare.
pub const INSTRUMENTED: &[&str] = &["-g", "-fsanitize=thread"];

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a C file to `output`.
pub fn compile(source: &Path, output: &Path, flags: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new("cc").args(flags).arg("-pthread").arg(source).arg("-o").arg(output).status()?;
    if status.success() { Ok(()) } else { Err(format!("{} does not compile", source.display()).into()) }
}

/// The `threadbare` command of the same build as this one.
pub fn tool() -> Result<PathBuf, Box<dyn Error>> {
    let here = std::env::current_exe()?;
    let tool = here.with_file_name("threadbare");
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "threadbare", "--profile", profile])
        .current_dir(root())
        .status()?;
    if status.success() && tool.exists() { Ok(tool) } else { Err("the tool does not build".into()) }
}

/// A command that works on a project of its own, whatever this one was started with.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("CARGO_TARGET_DIR");
    command
}

/// An error with the end of what the command said, unless it succeeded.
pub fn succeeded(what: &str, output: &Output) -> Result<(), Box<dyn Error>> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("cannot {what}:\n{}", last_lines(&said)).into())
}

/// Enough of what a command said to see why it failed.
pub fn last_lines(said: &str) -> String {
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    last.join("\n")
}
