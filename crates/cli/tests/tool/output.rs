//! Output that cannot be written: a full disk, and a reader that went away.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{json, path, root, run, tool};

fn subject() -> PathBuf {
    root().join("subjects/c/wronglock.c")
}

fn hunt(out: &Path) -> Command {
    let source = subject();
    tool(&["hunt", path(&source), "--budget", "200runs", "--json", "--first", "--out", path(out)])
}

/// A file for the output that is always full.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has /dev/full").into()
}

/// Records the subject.
fn record(directory: &Path) -> PathBuf {
    let (trace, source) = (directory.join("run.tbt"), subject());
    let (stdout, stderr, code) = run(&mut tool(&["record", path(&source), "--out", path(&trace)]));
    assert!(code < 2, "{stdout}{stderr}");
    trace
}

/// Every command that prints says that it could not, and nothing panics.
#[test]
fn a_full_standard_output_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = record(directory.path());
    let source = subject();
    let clip = hunt_clip(directory.path());
    for mut command in [
        hunt(directory.path()),
        tool(&["hunt", path(&source), "--budget", "200runs", "--out", path(directory.path())]),
        tool(&["record", path(&source), "--out", path(&directory.path().join("other.tbt"))]),
        tool(&["replay", path(&clip)]),
        tool(&["replay", path(&clip), "--json"]),
        tool(&["trace", "show", path(&trace)]),
        tool(&["trace", "show", path(&trace), "--events"]),
        tool(&["trace", "export", path(&trace), "--format", "csv"]),
    ] {
        let output = command.stdout(full()).output().expect("the tool starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {stderr}");
        let expected = "error: cannot write to standard output: No space left on device (os error 28)\n";
        // A replay says first what it runs.
        assert!(stderr.ends_with(expected), "{command:?}: {stderr}");
        let silent = command.stdout(full()).stderr(full()).status().expect("the tool starts");
        assert_eq!(silent.code(), Some(2), "{command:?} with a full standard error");
    }
}

/// `threadbare … | head` ends as soon as it has something to say, without a word, and leaves nothing behind.
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = record(directory.path());
    let source = subject();
    for mut command in [
        tool(&["hunt", path(&source), "--budget", "1h", "--out", path(directory.path())]),
        tool(&["trace", "show", path(&trace), "--events"]),
    ] {
        let temporary = tempfile::tempdir().expect("a directory");
        // Closed before the tool starts: it may have little to say, and say it at once.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.stdout(writer).stderr(Stdio::piped()).env("TMPDIR", temporary.path());
        let output = command.spawn().and_then(|child| child.wait_with_output()).expect("the tool runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert_eq!(fs::read_dir(temporary.path()).expect("a directory").count(), 0, "{command:?}");
    }
}

/// Hunts, and gives the clip of the finding.
fn hunt_clip(out: &Path) -> PathBuf {
    let (stdout, stderr, code) = run(&mut hunt(out));
    assert_eq!(code, 1, "{stdout}{stderr}");
    PathBuf::from(json(&stdout)[0]["clip"].as_str().expect("a clip was written"))
}

/// A finding is not lost because its clip cannot be written.
#[test]
fn a_full_disk_costs_the_clip_and_not_the_finding() {
    let directory = tempfile::tempdir().expect("a directory");
    let clip = hunt_clip(directory.path());
    fs::remove_file(&clip).expect("the clip is there");
    symlink("/dev/full", &clip).expect("a link can be made");
    let (stdout, stderr, code) = run(&mut hunt(directory.path()));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert_eq!(json(&stdout)[0]["clip"], serde_json::Value::Null, "{stdout}");
    assert!(stderr.contains("cannot write a clip to") && stderr.contains("No space left"), "{stderr}");
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = record(directory.path());
    let source = subject();
    for arguments in [
        ["record", path(&source), "--schedule", "random", "--out", "/dev/full"],
        ["trace", "export", path(&trace), "--format=json", "--out", "/dev/full"],
    ] {
        let (stdout, stderr, code) = run(&mut tool(&arguments));
        assert_eq!(code, 2, "{stdout}{stderr}");
        assert!(stderr.contains("cannot write /dev/full: No space left on device"), "{stderr}");
    }
}
