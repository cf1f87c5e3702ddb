//! Projects to run the command on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A copy of a project, with everything that is built of it.
pub struct Project {
    directory: TempDir,
}

/// What a command said.
pub struct Said {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl Project {
    /// One of those beside this file.
    pub fn new(name: &str) -> Project {
        Project::at(&format!("tests/cargo/projects/{name}"))
    }

    /// The subjects in Rust.
    pub fn subjects() -> Project {
        Project::at("../../subjects/rust")
    }

    fn at(path: &str) -> Project {
        let directory = tempfile::tempdir().expect("a directory");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path), directory.path());
        Project { directory }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Runs `cargo threadbare …` in the project.
    pub fn threadbare(&self, arguments: &[&str]) -> Said {
        self.threadbare_in(self.directory.path(), arguments)
    }

    /// The same in another directory.
    pub fn threadbare_in(&self, directory: &Path, arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-threadbare"));
        command.arg("threadbare").args(arguments).current_dir(directory);
        // What the cargo that runs this test has set for it is not meant for the project.
        for variable in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER"] {
            command.env_remove(variable);
        }
        let Output { status, stdout, stderr } =
            command.env("CARGO_NET_OFFLINE", "true").output().expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
        Said { stdout: text(stdout), stderr: text(stderr), code: status.code().expect("it exits by itself") }
    }
}

impl Said {
    /// The lines of `--json`.
    pub fn json(&self) -> Vec<Value> {
        let line = |line| serde_json::from_str(line).expect("a line of --json is JSON");
        self.stdout.lines().map(line).collect()
    }

    /// The result of each test, by name.
    pub fn results(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tests = self.json().into_iter().filter(|line| line["type"] == "test");
        tests.map(|line| (text(&line["test"]), text(&line["result"]))).collect()
    }

    /// The findings in a test.
    pub fn findings(&self, test: &str) -> Vec<Value> {
        self.json().into_iter().filter(|line| line["type"] == "finding" && line["test"] == test).collect()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("the project is there") {
        let entry = entry.expect("a file of the project");
        if entry.file_name() == "target" {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("the file can be copied");
        }
    }
}
