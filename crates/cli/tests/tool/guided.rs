//! Programs that tests drive with the command `guide`.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{json, path, run, tool, write};

/// A program in a directory of its own.
pub struct Subject {
    pub directory: TempDir,
    pub source: PathBuf,
    text: String,
}

/// What a command printed.
pub struct Said {
    pub lines: Vec<Value>,
    pub stderr: String,
    pub code: i32,
}

impl Subject {
    pub fn new(text: &str) -> Subject {
        let directory = tempfile::tempdir().expect("a directory");
        let source = write(directory.path(), "program.c", text);
        Subject { directory, source, text: text.to_owned() }
    }

    /// The line with this comment, as a location.
    pub fn at(&self, comment: &str) -> String {
        let wanted = format!("/* {comment} */");
        let line = self.text.lines().position(|line| line.contains(&wanted)).expect("the comment is there");
        format!("program.c:{}", line + 1)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `guide --json` in the program's directory.
    pub fn guide(&self, arguments: &[&str]) -> Said {
        let out = self.path("out");
        let mut command = tool(&["guide", path(&self.source), "--json", "--out", path(&out)]);
        let (stdout, stderr, code) = run(command.args(arguments).current_dir(self.directory.path()));
        Said { lines: json(&stdout), stderr, code }
    }

    pub fn through(&self, sequence: &str) -> Said {
        self.guide(&["--through", sequence, "--budget", "200runs"])
    }

    /// Replays a clip once, and says what came of it.
    pub fn replay(&self, clip: &Value) -> Value {
        let clip = clip.as_str().expect("there is a clip");
        let mut command = tool(&["replay", clip, "--json"]);
        let (stdout, stderr, _) = run(command.current_dir(self.directory.path()));
        json(&stdout).pop().unwrap_or_else(|| panic!("nothing was replayed: {stderr}"))
    }
}

impl Said {
    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |line| line["type"] == kind)
    }

    /// What came of the only sequence.
    pub fn guided(&self) -> &Value {
        let mut all = self.of_type("guided");
        let guided = all.next().unwrap_or_else(|| panic!("no answer: {}", self.stderr));
        assert!(all.next().is_none(), "{:?}", self.lines);
        guided
    }

    pub fn verdicts(&self) -> Vec<&str> {
        self.of_type("guided").map(|guided| guided["verdict"].as_str().expect("a verdict")).collect()
    }
}
