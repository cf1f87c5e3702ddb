//! Sleeps that others may outlast, and waits that may time out.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{json, path, run, tool, write};

/// Two threads that only a sleep keeps apart: who sleeps uses what the other takes away afterwards. It fails if the
/// other thread is held up for longer than the sleep.
const KEPT_APART: &str = r#"#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *prepare(void *nobody) {
    pthread_mutex_lock(&lock);
    state = 1;
    pthread_mutex_unlock(&lock);
    return nobody;
}

static void *use(void *nobody) {
    usleep(LENGTH);
    pthread_mutex_lock(&lock);
    assert(state == 1);
    pthread_mutex_unlock(&lock);
    return nobody;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, use, 0);
    pthread_create(&threads[1], 0, prepare, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

/// Sleeps to let the other thread go first, and does not depend on that.
const PATIENT: &str = r#"#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int state;

static void *prepare(void *nobody) {
    state = 1;
    return nobody;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, prepare, 0);
    usleep(LENGTH);
    pthread_join(thread, 0);
    assert(state == 1);
    return 0;
}
"#;

/// A wait with a time limit, and a program that takes it for granted that the other thread is in time.
const IN_TIME: &str = r#"#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static sem_t ready;

static void *prepare(void *nobody) {
    sem_post(&ready);
    return nobody;
}

int main(void) {
    pthread_t thread;
    sem_init(&ready, 0, 0);
    pthread_create(&thread, 0, prepare, 0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    int late = sem_timedwait(&ready, &until);
    assert(!late);
    pthread_join(thread, 0);
    return 0;
}
"#;

struct Hunted {
    lines: Vec<Value>,
    code: i32,
}

fn hunt(command: &str, source: &Path, length: &str, budget: &str) -> Hunted {
    let out = source.with_file_name("out");
    let length = format!("--cc-arg=-DLENGTH={length}");
    let arguments = [command, path(source), &length, "--json", "--out", path(&out), "--budget", budget];
    let (stdout, _, code) = run(&mut tool(&arguments));
    Hunted { lines: json(&stdout), code }
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = write(directory.path(), "sleeper.c", text);
    (directory, source)
}

/// Protects what a sleep hides: a hunt and a ranked search find it, say what it takes, and the clip shows it again.
#[test]
fn a_sleep_that_keeps_threads_apart_is_outlasted() {
    let (_directory, source) = written(KEPT_APART);
    for command in ["hunt", "rank"] {
        let Hunted { lines, code } = hunt(command, &source, "500", "400runs");
        assert_eq!(code, 1, "{command}: {lines:?}");
        let (finding, need) = (&lines[0], &lines[0]["needs"][0]);
        assert_eq!((&finding["kind"], &need["what"]), (&"assertion".into(), &"outlasted-sleep".into()));
        assert_eq!((&need["seconds"], &need["location"]["line"]), (&0.0005.into(), &16.into()));
        let clip = finding["clip"].as_str().expect("a clip was written");
        let (stdout, stderr, code) = run(&mut tool(&["replay", "--trust", clip, "--times", "20", "--json"]));
        assert_eq!((code, &json(&stdout)[0]["reproduced"]), (1, &20.into()), "{stdout}{stderr}");
        let (stdout, _, _) = run(&mut tool(&["replay", "--trust", clip]));
        assert!(stdout.contains(", if the 500 µs sleep at sleeper.c:16 is outlasted"), "{stdout}");
    }
}

/// Two sleeps, and a program that takes it for granted that the shorter one ends first.
const IN_ORDER: &str = r#"#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int state;

static void *change(void *nobody) {
    usleep(LENGTH);
    state = 1;
    return nobody;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, change, 0);
    int before = state;
    usleep(100);
    assert(state == before);
    pthread_join(thread, 0);
    return 0;
}
"#;

/// Protects the headline where no thread could run: a longer sleep that ends before a shorter one was outlasted too.
#[test]
fn a_sleep_that_ends_before_a_shorter_one_is_outlasted() {
    let (_directory, source) = written(IN_ORDER);
    let Hunted { lines, code } = hunt("rank", &source, "500", "400runs");
    let need = &lines[0]["needs"][0];
    assert_eq!((code, &need["what"]), (1, &"outlasted-sleep".into()), "{lines:?}");
    assert_eq!((&need["seconds"], &need["location"]["line"]), (&0.0005.into(), &8.into()));
    let Hunted { lines, code } = hunt("rank", &source, "5000", "400runs");
    assert_eq!((code, &lines[0]["sleeps_held"]), (0, &true.into()), "{lines:?}");
}

/// Protects tests that sleep to let another thread go first: no machine holds a thread up for so long often enough that
/// its author would want to know. A search says that it has not tried.
#[test]
fn long_sleeps_last_and_a_search_says_so() {
    let (_directory, source) = written(KEPT_APART);
    let Hunted { lines, code } = hunt("hunt", &source, "100000", "300runs");
    assert_eq!((code, &lines[0]["sleeps_held"]), (0, &true.into()), "{lines:?}");
    let Hunted { lines, code } = hunt("rank", &source, "100000", "2000runs");
    let claim = (&lines[0]["exhausted"], &lines[0]["sleeps_held"]);
    assert_eq!((code, claim), (0, (&true.into(), &true.into())), "{lines:?}");
    let arguments = ["rank", path(&source), "--cc-arg=-DLENGTH=100000", "--budget", "2000runs"];
    let (stdout, stderr, _) = run(&mut tool(&arguments));
    let claim = "every schedule of this search was tried, sleeps not outlasted";
    assert!(stdout.contains(claim) || stderr.contains(claim), "{stdout}{stderr}");
}

/// Protects correct programs: to outlast a sleep is no failure, and where all were tried nothing is left out.
#[test]
fn a_program_that_joins_what_it_sleeps_for_is_correct() {
    let (_directory, source) = written(PATIENT);
    for (length, held) in [("100000", true), ("1000", false)] {
        let Hunted { lines, code } = hunt("hunt", &source, length, "300runs");
        assert_eq!(code, 0, "{lines:?}");
        let Hunted { lines, code } = hunt("rank", &source, length, "2000runs");
        let claim = (&lines[0]["exhausted"], &lines[0]["sleeps_held"]);
        assert_eq!((code, claim), (0, (&true.into(), &held.into())), "{length}: {lines:?}");
    }
}

/// Protects the order of findings: one that fails by itself comes first, though the other was found before it.
#[test]
fn findings_that_need_time_come_last() {
    let racy = IN_TIME
        .replace("static sem_t ready;", "static sem_t ready;\nstatic int count;")
        .replace(
            "    sem_post(&ready);",
            "    sem_post(&ready);\n    int seen = count;\n    count = seen + 1;",
        )
        .replace(
            "    pthread_join(thread, 0);",
            "    count++;\n    pthread_join(thread, 0);\n    assert(count == 2);",
        );
    let (_directory, source) = written(&racy);
    let Hunted { lines, code } = hunt("hunt", &source, "0", "300runs");
    assert_eq!((code, lines.len()), (1, 3), "{lines:?}");
    assert!(lines[0].get("needs").is_none(), "{lines:?}");
    assert_eq!(lines[1]["needs"][0]["what"], "timeout");
}

/// Protects the reader of the most common finding in tests with time limits: it says that time had to be up.
#[test]
fn a_finding_names_the_wait_that_has_to_time_out() {
    let (_directory, source) = written(IN_TIME);
    let Hunted { lines, code } = hunt("hunt", &source, "0", "300runs");
    assert_eq!(code, 1, "{lines:?}");
    let need = &lines[0]["needs"][0];
    assert_eq!((&need["what"], &need["location"]["line"]), (&"timeout".into(), &20.into()), "{lines:?}");
    let clip = lines[0]["clip"].as_str().expect("a clip was written");
    let (stdout, _, _) = run(&mut tool(&["replay", "--trust", clip]));
    assert!(stdout.contains(", if the 5 s wait at sleeper.c:20 times out"), "{stdout}");
}
