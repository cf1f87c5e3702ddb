//! Freed memory that code without instrumentation uses.

use std::path::Path;
use std::process::Command;

use crate::support::{compile, json, path, run, tool, write};

/// The part of the program that is compiled without instrumentation.
const LIBRARY: &str = "int length(const char *text) { int n = 0; while (*text++) n++; return n; }\n";

const PROGRAM: &str = "\
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
int length(const char *text);
static char *text;
static void *leave(void *unused) {
    if (!FIXED) free(text);
    return unused;
}
static void *count(void *unused) {
    return length(text) == 3 ? unused : NULL;
}
int main(void) {
    pthread_t threads[2];
    text = malloc(4);
    memcpy(text, \"abc\", 4);
    if (THREADS) {
        pthread_create(&threads[0], NULL, count, NULL);
        pthread_create(&threads[1], NULL, leave, NULL);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else {
        leave(NULL);
        count(NULL);
    }
    if (FIXED) free(text);
    return 0;
}
";

/// Builds the program.
fn build(directory: &Path, flags: [&str; 2]) -> String {
    let library = write(directory, "library.c", LIBRARY);
    let object = directory.join("library.o");
    compile(&library, &object, &["-c", "-O1"]);
    let source = write(directory, "unseen.c", PROGRAM);
    let program = directory.join(format!("unseen{}", flags.concat()));
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-fsanitize=thread", "-pthread"]).args(flags).arg(&source).arg(&object);
    assert!(gcc.arg("-o").arg(&program).status().expect("gcc starts").success());
    path(&program).to_owned()
}

fn line_of(words: &str) -> usize {
    1 + PROGRAM.lines().position(|line| line.contains(words)).expect("the line is there")
}

/// Protects what no instrumentation tells of. The finding is at the line that called the library, names both who freed
/// and who allocated, and its clip replays. Every command that searches finds it, with threads and without.
#[test]
fn freed_memory_that_a_library_reads_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    for (threads, command) in [
        ("-DTHREADS=1", "hunt"),
        ("-DTHREADS=1", "rank"),
        ("-DTHREADS=0", "hunt"),
        ("-DTHREADS=0", "predict"),
    ] {
        let program = build(directory.path(), ["-DFIXED=0", threads]);
        let options = ["--out", path(directory.path()), "--json", "--budget", "100runs"];
        let (stdout, stderr, code) = run(tool(&[command, &program]).args(options));
        assert_eq!(code, 1, "{command}: {stdout}{stderr}");
        let finding = &json(&stdout)[0];
        assert_eq!(finding["kind"], "use-after-free", "{finding}");
        assert_eq!(finding["locations"][0]["line"], line_of("length(text) =="), "{finding}");
        let words = finding["failure"].as_str().expect("a text");
        let freed = format!("in leave (unseen.c:{})", line_of("free(text);"));
        let allocated = format!("in main (unseen.c:{})", line_of("malloc(4)"));
        for part in ["read, 0 bytes into a freed block of 4 bytes", &freed, &allocated] {
            assert!(words.contains(part), "{words}: {part}");
        }
        let clip = finding["clip"].as_str().expect("a clip");
        let (text, stderr, code) = run(&mut tool(&["replay", "--trust", clip]));
        assert_eq!(code, 1, "{text}{stderr}");
        assert!(text.contains("reproduced in 1 of 1 runs"), "{text}");
    }
}

/// Protects from false alarms.
#[test]
fn memory_that_is_freed_in_time_is_no_finding() {
    let directory = tempfile::tempdir().expect("a directory");
    for threads in ["-DTHREADS=0", "-DTHREADS=1"] {
        let program = build(directory.path(), ["-DFIXED=1", threads]);
        let (stdout, stderr, code) = run(&mut tool(&["hunt", &program, "--budget", "400runs"]));
        assert_eq!(code, 0, "{stdout}{stderr}");
    }
}
