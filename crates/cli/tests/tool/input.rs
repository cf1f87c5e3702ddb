//! `--stdin`: what a tested program reads, and what a clip remembers of it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{json, path, run, tool, write};

/// Fails only with the word `bad` on standard input, and under some schedules only.
const READER: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static int checked;
static void *reads(void *unused) {
    char word[10] = "";
    scanf("%9s", word);
    assert(checked || strcmp(word, "bad") != 0);
    return unused;
}
static void *checks(void *unused) {
    checked = 1;
    return unused;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, reads, 0);
    pthread_create(&two, 0, checks, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
"#;

fn hunt(directory: &Path, stdin: &str) -> Command {
    let source = write(directory, "reader.c", READER);
    let out = directory.join("out");
    tool(&["hunt", path(&source), "--budget", "50runs", "--json", "--out", path(&out), "--stdin", stdin])
}

/// The clip of a hunt that found something.
fn clip(output: &str) -> PathBuf {
    PathBuf::from(json(output)[0]["clip"].as_str().unwrap_or_else(|| panic!("no clip: {output}")))
}

fn with_input(command: &mut Command, bytes: &[u8]) -> (String, String, i32) {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the tool starts");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("the tool reads its input");
    let output = child.wait_with_output().expect("the tool ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the tool prints UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("the tool exits by itself"))
}

#[test]
fn a_clip_remembers_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let input = write(directory.path(), "words", "bad\n");
    let (stdout, stderr, code) = run(&mut hunt(directory.path(), path(&input)));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let clip = clip(&stdout);
    let (stdout, stderr, code) =
        run(&mut tool(&["replay", "--trust", path(&clip), "--times", "10", "--json"]));
    assert_eq!((code, &json(&stdout)[0]["reproduced"]), (1, &10.into()), "{stdout}{stderr}");

    write(directory.path(), "words", "good\n");
    let (stdout, stderr, code) = run(&mut tool(&["replay", "--trust", path(&clip)]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stderr.contains("words is not what it was when the clip was made"), "{stderr}");
    let (stdout, stderr, code) = run(&mut tool(&["replay", "--trust", path(&clip), "--stdin", path(&input)]));
    assert_eq!(code, 2, "the assertion holds now: {stdout}{stderr}");

    fs::remove_file(&input).expect("the input is there");
    let (_, stderr, code) = run(&mut tool(&["replay", "--trust", path(&clip)]));
    assert_eq!(code, 2);
    assert!(stderr.contains("words") && stderr.contains("--stdin"), "{stderr}");
}

/// What came through a pipe is gone for good, so the clip keeps it; also when the directory moves.
#[test]
fn a_clip_keeps_what_came_through_a_pipe() {
    let directory = tempfile::tempdir().expect("a directory");
    let (stdout, stderr, code) = with_input(&mut hunt(directory.path(), "-"), b"bad\n");
    assert_eq!(code, 1, "{stdout}{stderr}");
    let (clip, moved) = (clip(&stdout), directory.path().join("moved"));
    fs::rename(directory.path().join("out"), &moved).expect("the directory can be moved");
    let clip = moved.join(clip.file_name().expect("a clip has a name"));
    let (stdout, stderr, code) =
        run(&mut tool(&["replay", "--trust", path(&clip), "--times", "10", "--json"]));
    assert_eq!((code, &json(&stdout)[0]["reproduced"]), (1, &10.into()), "{stdout}{stderr}");
}

#[test]
fn without_the_option_there_is_no_input() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "reader.c", READER);
    let hunt = ["hunt", path(&source), "--budget", "50runs", "--out", path(directory.path())];
    let (stdout, stderr, code) = with_input(&mut tool(&hunt), b"bad\n");
    assert_eq!(code, 0, "{stdout}{stderr}");
}

#[test]
fn a_recording_reads_it_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "reader.c", READER);
    let trace = directory.path().join("run.tbt");
    let record = ["record", path(&source), "--stdin", "-", "--out", path(&trace)];
    let (stdout, stderr, code) = with_input(&mut tool(&record), b"bad\n");
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("assertion failed"), "{stdout}");
}
