//! Running the real binary on real programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A command of the tool, in the root of the workspace.
pub fn tool(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadbare"));
    command.args(arguments).current_dir(root());
    command
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs to its end and returns what it printed and its exit code.
pub fn run(command: &mut Command) -> (String, String, i32) {
    let Output { status, stdout, stderr } = command.output().expect("the tool starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the tool prints UTF-8");
    (text(stdout), text(stderr), status.code().expect("the tool exits by itself"))
}

/// The JSON lines of an output.
pub fn json(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).expect("a line of --json is JSON")).collect()
}

/// Writes `text` to a file `name` in `directory`.
pub fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("the file can be written");
    path
}

/// Compiles with the machine's own compiler.
pub fn compile(source: &Path, output: &Path, flags: &[&str]) {
    let status = Command::new("gcc").args(flags).arg("-pthread").arg(source).arg("-o").arg(output).status();
    assert!(status.expect("gcc starts").success(), "{} does not compile", source.display());
}

pub fn path(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}
