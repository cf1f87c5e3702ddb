//! Programs that start no thread: there is one run to make, and it is checked like any other.

use crate::support::{json, path, run, tool, write};

/// What goes wrong, the finding, its line, and words of its failure.
const ROWS: [(&str, &str, u64, &str); 7] = [
    ("int *p = malloc(8); free(p); return\n*p;", "use-after-free", 6, "freed by thread 0 in main"),
    ("char *p = malloc(8);\nfree(p + 4);", "crash", 6, "invalid free"),
    ("char *p = malloc(8);\np[8] = 1;", "crash", 6, "heap overflow"),
    ("static pthread_barrier_t b;\npthread_barrier_wait(&b);", "not-initialised", 6, "barrier"),
    (
        "pthread_mutex_destroy(&m);\npthread_mutex_lock(&m);",
        "use-after-destroy",
        6,
        "lock of a mutex; destroyed by",
    ),
    ("int x = 1;\nassert(x == 2);", "assertion", 6, "x == 2"),
    ("pthread_mutex_lock(&m);\npthread_mutex_lock(&m);", "deadlock", 6, "deadlock"),
];

fn program(body: &str) -> String {
    let head = "#include <assert.h>\n#include <pthread.h>\n#include <stdlib.h>\n\
                static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n";
    format!("{head}int main(void) {{ {body} return 0; }}\n")
}

/// Protects programs and tests without threads: their one run is checked, has a place, and is said not to depend on a
/// schedule. Every command that searches says the same, and the clip replays.
#[test]
fn the_one_run_of_a_program_without_threads_is_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = path(directory.path());
    for (index, (body, kind, line, words)) in ROWS.into_iter().enumerate() {
        let source = write(directory.path(), &format!("alone{index}.c"), &program(body));
        let command = ["hunt", "rank", "predict"][index % 3];
        let (stdout, stderr, code) = run(&mut tool(&[command, path(&source), "--out", out, "--json"]));
        assert_eq!(code, 1, "{body}: {stdout}{stderr}");
        let (finding, summary) = (&json(&stdout)[0], &json(&stdout)[1]);
        assert_eq!(finding["kind"], kind, "{finding}");
        assert_eq!(finding["locations"][0]["line"], line, "{finding}");
        assert!(finding["failure"].as_str().is_some_and(|failure| failure.contains(words)), "{finding}");
        assert_eq!(
            (&finding["no_threads"], &summary["no_threads"]),
            (&true.into(), &true.into()),
            "{stdout}"
        );
        let clip = finding["clip"].as_str().expect("there is a clip");
        let (text, stderr, code) = run(&mut tool(&["replay", "--trust", clip]));
        assert_eq!(code, 1, "{text}{stderr}");
        assert!(text.contains("no threads were started: this does not depend on a schedule"), "{text}");
        assert!(text.contains(&format!("alone{index}.c:{line}")), "{text}");
    }
}

#[test]
fn a_clean_program_without_threads_has_nothing_to_schedule() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "clean.c", &program("pthread_mutex_lock(&m);"));
    let (stdout, stderr, code) = run(&mut tool(&["hunt", path(&source)]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("no threads were started: nothing to schedule"), "{stdout}");
    let (stdout, _, _) = run(&mut tool(&["hunt", path(&source), "--json"]));
    assert_eq!(json(&stdout)[0]["no_threads"], true, "{stdout}");
}

/// What is wrong before the first thread is wrong in every schedule.
#[test]
fn a_program_that_fails_before_its_first_thread_has_a_finding() {
    let directory = tempfile::tempdir().expect("a directory");
    let body =
        "int *p = malloc(4); free(p);\n*p = 1;\npthread_t t; pthread_create(&t, NULL, (void *)abort, NULL);";
    let source = write(directory.path(), "early.c", &program(body));
    let arguments = ["hunt", path(&source), "--out", path(directory.path()), "--json"];
    let (stdout, stderr, code) = run(&mut tool(&arguments));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let finding = &json(&stdout)[0];
    assert_eq!((&finding["kind"], &finding["locations"][0]["line"]), (&"use-after-free".into(), &6.into()));
}
