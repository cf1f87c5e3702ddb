//! Clips: replayed, moved, and outgrown.

use std::path::{Path, PathBuf};

use crate::support::{compile, json, path, run, tool, write};

pub const LOST_UPDATE: &str = r#"
#include <assert.h>
#include <pthread.h>
static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *unused) {
    int seen = counter;
    pthread_mutex_lock(&lock);
    counter = seen + 1;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(counter == 2);
    return 0;
}
"#;

/// Looks once only, which is wrong where waits may end for no reason.
const TRUSTING: &str = r#"
#include <assert.h>
#include <pthread.h>
static int ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *set(void *unused) {
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, set, 0);
    pthread_mutex_lock(&lock);
    if (!ready)
        pthread_cond_wait(&changed, &lock);
    assert(ready);
    pthread_mutex_unlock(&lock);
    pthread_join(other, 0);
    return 0;
}
"#;

/// Hunts `target` and returns the clip of its one finding.
fn hunt(target: &Path, out: &Path) -> PathBuf {
    let (stdout, stderr, code) =
        run(&mut tool(&["hunt", path(target), "--json", "--first", "--out", path(out)]));
    assert_eq!(code, 1, "{stdout}{stderr}");
    PathBuf::from(json(&stdout)[0]["clip"].as_str().expect("a clip was written"))
}

/// Replays a clip and demands its failure every time.
fn reproduces(clip: &Path, times: u64) {
    let times_text = times.to_string();
    let (stdout, stderr, code) =
        run(&mut tool(&["replay", "--trust", path(clip), "--json", "--times", &times_text]));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert_eq!(json(&stdout)[0]["reproduced"], times, "{stdout}");
}

/// Protects the promise that a clip replays every time, and outlives a rebuild that moved lines.
#[test]
fn a_clip_replays_every_time_also_after_lines_have_moved() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "lost.c", LOST_UPDATE);
    let clip = hunt(&source, directory.path());
    reproduces(&clip, 100);
    let moved = LOST_UPDATE
        .replace("static void *add", "\n\n\n/* adds one */\nstatic void *add")
        .replace("    counter = seen", "\n\n\n    /* the bug */\n    counter = seen");
    write(directory.path(), "lost.c", &moved);
    reproduces(&clip, 100);
}

/// Protects programs that were built elsewhere: nothing is relinked.
#[test]
fn a_program_built_with_plain_gcc_is_hunted_and_replayed_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "lost.c", LOST_UPDATE);
    let program = directory.path().join("lost");
    compile(&source, &program, &["-fsanitize=thread", "-g"]);
    let clip = hunt(&program, directory.path());
    reproduces(&clip, 20);
    // Optimised, and at another address.
    compile(&source, &program, &["-fsanitize=thread", "-g", "-O2", "-no-pie"]);
    let clip = hunt(&program, directory.path());
    reproduces(&clip, 20);
}

/// Protects the message of a clip that no longer fits: at which event, and both sides.
#[test]
fn a_clip_that_no_longer_fits_shows_where_and_both_sides() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "lost.c", LOST_UPDATE);
    let clip = hunt(&source, directory.path());
    let fixed = LOST_UPDATE.replace(
        "    int seen = counter;\n    pthread_mutex_lock(&lock);",
        "    pthread_mutex_lock(&lock);\n    int seen = counter;",
    );
    write(directory.path(), "lost.c", &fixed);
    let (stdout, stderr, code) = run(&mut tool(&["replay", "--trust", path(&clip)]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stdout.contains("the run diverges at event 4"), "{stdout}");
    // The read came first in its thread, and now the lock does.
    assert!(stdout.contains(": read counter at `int seen = counter;` (lost.c:7 in add)"), "{stdout}");
    assert!(stdout.contains("\n  the run has   thread "), "{stdout}");

    let gone = LOST_UPDATE.replace("counter = seen + 1;", "counter += 1;");
    write(directory.path(), "lost.c", &gone);
    let (stdout, stderr, code) = run(&mut tool(&["replay", "--trust", path(&clip)]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(
        stderr.contains("the clip no longer fits") || stdout.contains("the clip no longer fits"),
        "{stderr}"
    );
}

/// Protects from half-read clips: the message names the line.
#[test]
fn a_damaged_clip_is_refused_with_its_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let clip = write(directory.path(), "bad.clip", "threadbare clip 1\ntarget x.c\nnonsense here\n");
    let (_, stderr, code) = run(&mut tool(&["replay", path(&clip)]));
    assert_eq!(code, 2);
    assert!(stderr.contains("line 3"), "{stderr}");
}

/// Protects the oracle for data races: it needs no failure, its clip leads to both accesses, and a program whose
/// accesses are ordered has none.
#[test]
fn data_races_are_reported_when_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "quiet.c", &LOST_UPDATE.replace("    assert(counter == 2);\n", ""));
    let hunt = ["hunt", path(&source), "--json", "--budget", "300runs", "--out", path(directory.path())];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (stdout, stderr, code) = run(tool(&hunt).arg("--races"));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let lines = json(&stdout);
    let (_, races) = lines.split_last().expect("a summary");
    for race in races {
        assert_eq!(race["kind"], "data-race", "{stdout}");
        assert_eq!(race["confirmed"], true, "{stdout}");
        reproduces(Path::new(race["clip"].as_str().expect("a clip")), 10);
    }
    let ordered = LOST_UPDATE.replace(
        "    int seen = counter;\n    pthread_mutex_lock(&lock);",
        "    pthread_mutex_lock(&lock);\n    int seen = counter;",
    );
    write(directory.path(), "quiet.c", &ordered);
    let (stdout, stderr, code) = run(tool(&hunt).arg("--races"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

/// Found only when asked for; the clip knows that it needs it.
#[test]
fn spurious_wake_ups_are_part_of_the_clip() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let out = directory.path().join("out");
    let source = write(directory.path(), "trusting.c", TRUSTING);
    let hunt = ["hunt", path(&source), "--json", "--first", "--out", path(&out), "--budget", "300runs"];
    let (stdout, stderr, code) = run(&mut tool(&hunt));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (stdout, stderr, code) = run(tool(&hunt).arg("--spurious-wakeups"));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let clip = PathBuf::from(json(&stdout)[0]["clip"].as_str().expect("a clip was written"));
    reproduces(&clip, 5);
}
