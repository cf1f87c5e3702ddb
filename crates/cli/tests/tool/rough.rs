//! Programs and places that are hard on the tool.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compile, json, path, run, tool, write};

/// Fails under some schedules, in another directory than it was started in.
const MOVES: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int counter;
static void *add(void *unused) {
    assert(chdir("/") == 0);
    counter++;
    return unused;
}
int main(void) {
    pthread_t threads[2];
    assert(chdir("/tmp") == 0);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    assert(counter == 2);
    return 0;
}
"#;

fn tool_in(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = tool(arguments);
    command.current_dir(directory);
    command
}

/// Every path is the tool's, whatever directory the program goes to: target, output and clip.
#[test]
fn relative_paths_survive_a_program_that_changes_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "moves.c", MOVES);
    compile(&source, &directory.path().join("moves"), &["-g", "-fsanitize=thread"]);
    for target in ["moves.c", "moves", "./moves"] {
        let hunt = ["hunt", target, "--json", "--first", "--out", "out"];
        let (stdout, stderr, code) = run(&mut tool_in(directory.path(), &hunt));
        assert_eq!(code, 1, "{target}: {stdout}{stderr}");
        let finding = &json(&stdout)[0];
        assert_eq!(finding["locations"][0]["function"], "main", "{finding}");
        let clip = finding["clip"].as_str().expect("a clip");
        assert!(clip.starts_with("out/"), "{clip}");
        let (stdout, stderr, code) = run(&mut tool_in(directory.path(), &["replay", clip]));
        assert_eq!(code, 1, "{target}: {stdout}{stderr}");
        assert!(stdout.contains("counter++;"), "the source is shown: {stdout}");
    }
}

/// Two threads that sleep until the other should be done, as tests do.
const SLEEPS: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int stage;
static void *first(void *unused) {
    usleep(100000);
    assert(stage == 0);
    stage = 1;
    usleep(100000);
    assert(stage == 2);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, first, 0);
    usleep(150000);
    assert(stage == 1);
    stage = 2;
    pthread_join(thread, 0);
    return 0;
}
"#;

/// A thread may be held up for longer than another sleeps, but nobody would thank us for saying so of a tenth of a second:
/// also what is predicted, or comes after a preemption, lets sleepers sleep.
#[test]
fn a_sleep_is_long_enough() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "sleeps.c", SLEEPS);
    let hunt = ["hunt", path(&source), "--budget", "300runs", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

/// A stress test is longer than anybody would wait for under control: its beginnings are searched all the same.
#[test]
fn a_program_that_is_too_long_is_searched_where_it_begins() {
    let directory = tempfile::tempdir().expect("a directory");
    let text =
        MOVES.replace("counter++;", "for (int i = 0; i < 10000000; i++) __atomic_add_fetch(&counter, 1, 5);");
    let source = write(directory.path(), "stress.c", &text);
    let hunt = ["hunt", path(&source), "--budget", "50runs", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(tool(&hunt).args(["--max-events", "100000"]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("nothing found in 50 runs"), "{stdout}");
    assert!(stdout.contains("no run came to its end; most were stopped after 10000 events"), "{stdout}");
}

/// Changes directory, and then loops where nothing can interrupt it.
fn write_hanging(directory: &Path) -> PathBuf {
    write(directory, "hangs.c", &MOVES.replace("counter++;", "for (volatile int i = 0;;) i = 1;"))
}

/// A run that hangs is stopped at the limit, and it is said where it was. Each limit is a hundred times what it takes to
/// get there.
#[test]
fn a_run_that_hangs_is_stopped_and_located() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write_hanging(directory.path());
    let hunt =
        ["hunt", path(&source), "--budget", "1run", "--time-limit", "5", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stdout.contains("1 run was stopped at the time limit"), "{stdout}");
    assert!(stdout.contains("the last of them was in thread 0.1, at"), "{stdout}");
    assert!(stdout.contains("hangs.c:8"), "{stdout}");
    assert!(stderr.contains("no run came to its end within 5 s (--time-limit)"), "{stderr}");
}

/// The same when it is the whole budget that is over.
#[test]
fn a_run_that_hangs_is_stopped_with_the_hunt() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write_hanging(directory.path());
    let hunt = ["hunt", path(&source), "--budget", "5s", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stderr.contains("no run came to its end within 1.25 s (a quarter of --budget)"), "{stderr}");
}

/// The same for a recording, which makes four runs before its own to learn what is shared.
#[test]
fn a_recording_that_hangs_is_stopped_and_located() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write_hanging(directory.path());
    let trace = directory.path().join("run.tbt");
    let record = ["record", path(&source), "--time-limit", "2", "--out", path(&trace)];
    let (stdout, stderr, code) = run(&mut tool(&record));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("stopped at the time limit\nit was in thread 0.1, at"), "{stdout}");
    assert!(stdout.contains("hangs.c:8"), "{stdout}");
}

/// What a program does that took the tested one's place is nobody's finding, nor is what the tool does to it.
#[test]
fn a_run_that_becomes_another_program_is_counted() {
    const BECOMES: &str = r#"
#include <pthread.h>
#include <unistd.h>
static void *nothing(void *unused) { return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, nothing, 0);
    pthread_join(thread, 0);
    execlp("sleep", "sleep", "600", (char *)0);
}
"#;
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "becomes.c", BECOMES);
    let hunt = ["hunt", path(&source), "--budget", "20runs", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("runs became another program (") && stdout.contains("/sleep)"), "{stdout}");
}

/// Protects the machine's memory from a source file without end.
#[test]
fn a_compiler_that_takes_all_memory_is_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "endless.c", "#include \"/dev/zero\"\n");
    let (stdout, stderr, code) = run(&mut tool(&["hunt", path(&source)]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stderr.contains("does not compile") && stderr.contains("out of memory"), "{stderr}");
}

/// Fails in its first run alone: it leaves a file for the others.
const LEAVES_A_FILE: &str = r#"
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
static void *leave(void *unused) {
    assert(open("left", O_CREAT | O_EXCL | O_WRONLY, 0600) < 0);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, leave, 0);
    pthread_join(thread, 0);
    return 0;
}
"#;

/// What does not happen again is no finding. What the program was seen to do besides following its schedule is said.
#[test]
fn a_failure_that_is_not_repeatable_is_told_with_its_possible_cause() {
    let directory = tempfile::tempdir().expect("a directory");
    let temporary = directory.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a directory");
    write(directory.path(), "leaves.c", LEAVES_A_FILE);
    let hunt = ["hunt", "leaves.c", "--budget", "10runs"];
    let (stdout, stderr, code) = run(tool_in(directory.path(), &hunt).env("TMPDIR", &temporary));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let words = "no finding: it takes more than the schedule (the program writes files)";
    assert!(stdout.contains(words), "{stdout}{stderr}");
}
