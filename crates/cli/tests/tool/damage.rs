//! Files that were cut short or overwritten, through every command that reads them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{compile, json, path, root, run, tool};

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    /// The next one below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    /// The bytes, cut short or with some of them changed.
    fn damage(&mut self, intact: &[u8], round: usize) -> Vec<u8> {
        let mut bytes = intact.to_vec();
        match round % 3 {
            0 => bytes.truncate(self.below(intact.len())),
            kind => {
                for _ in 0..[1, 20][kind - 1] {
                    let position = self.below(bytes.len());
                    bytes[position] = self.below(256) as u8;
                }
            }
        }
        bytes
    }
}

fn subject(directory: &Path) -> PathBuf {
    let program = directory.join("wronglock");
    compile(&root().join("subjects/c/wronglock.c"), &program, &["-g", "-fsanitize=thread"]);
    program
}

/// Runs a command on a damaged file: it does its work, or says what is wrong and where.
fn is_refused_or_read(arguments: &[&str], places: &[&str], damaged: &[u8]) -> bool {
    let (stdout, stderr, code) = run(&mut tool(arguments));
    // A replay says first what it runs.
    let stderr = if stderr.starts_with("replaying ") { stderr.split("\n").skip(2).collect() } else { stderr };
    let refused = stderr.contains("error:") && !stderr.contains("panicked");
    let placed = places.iter().any(|place| stderr.contains(place));
    let kept = std::env::temp_dir().join("threadbare-damaged");
    if !(code <= 1 && stderr.is_empty() || code == 2 && (stderr.is_empty() || refused && placed)) {
        fs::write(&kept, damaged).expect("the file can be kept");
        panic!("{arguments:?}, file kept as {}: {code}\n{stdout}{stderr}", kept.display());
    }
    !stderr.is_empty()
}

/// Protects from panics, hangs and absurd allocations on traces that a crash or a full disk left behind.
#[test]
fn damaged_traces_are_read_or_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = subject(directory.path());
    let trace = directory.path().join("run.tbt");
    let (stdout, stderr, code) = run(&mut tool(&["record", path(&program), "--out", path(&trace)]));
    assert!(code < 2, "{stdout}{stderr}");
    let intact = fs::read(&trace).expect("the trace is there");
    let damaged = directory.path().join("damaged.tbt");
    let commands: [&[&str]; 4] = [
        &["trace", "show", path(&damaged)],
        &["trace", "show", path(&damaged), "--events"],
        &["trace", "export", path(&damaged), "--format", "std"],
        &["trace", "export", path(&damaged), "--format", "json"],
    ];
    // Where the head itself is damaged there is no need for a place.
    let places = ["at byte ", "expected a Threadbare trace", "of the trace format"];
    let mut numbers = Numbers(2026);
    let mut refused = 0;
    for round in 0..240 {
        let bytes = numbers.damage(&intact, round);
        fs::write(&damaged, &bytes).expect("the file can be written");
        refused += usize::from(is_refused_or_read(commands[round / 3 % commands.len()], &places, &bytes));
    }
    assert!(refused > 80, "every file that was cut short is refused, but only {refused} were");
}

/// The same for clips, which people edit. A clip that can still be read is replayed.
#[test]
fn damaged_clips_are_followed_or_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = subject(directory.path());
    let hunt = ["hunt", path(&program), "--json", "--first", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let intact = fs::read(json(&stdout)[0]["clip"].as_str().expect("a clip")).expect("the clip is there");
    let damaged = directory.path().join("damaged.clip");
    // No replay of this program hangs, so no machine is slow enough for the limit.
    let replay = ["replay", "--trust", path(&damaged), "--time-limit", "60"];
    // A step may be damaged so that it can be read, and yet is nowhere in the program; so may the target.
    let places = ["line ", "in step ", "there is no", "wronglock"];
    let mut numbers = Numbers(1984);
    let mut refused = 0;
    for round in 0..150 {
        let bytes = numbers.damage(&intact, round);
        fs::write(&damaged, &bytes).expect("the file can be written");
        refused += usize::from(is_refused_or_read(&replay, &places, &bytes));
    }
    assert!(refused > 40, "only {refused} were refused");
}
