//! What the tool says of a program that it has tried by itself: whether a failure depends on timing, and whether a run
//! that was stopped is a hang.

use std::path::Path;

use serde_json::Value;

use crate::support::{compile, json, path, run, tool, write};

/// A program with two threads that lock, and then `end`.
fn program(end: &str) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdlib.h>\n#include <sys/personality.h>\n\
         static int value, counter;\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *work(void *x) {{\n  pthread_mutex_lock(&lock); value++; pthread_mutex_unlock(&lock); return x;\n}}\n\
         int main(void) {{\n  pthread_t thread; pthread_create(&thread, 0, work, 0);\n  pthread_mutex_lock(&lock);\n\
           int first = value == 0; value++; (void)first; (void)counter;\n  pthread_mutex_unlock(&lock);\n\
           pthread_join(thread, 0);\n  {end}\n}}\n"
    )
}

/// Hunts in the program and returns what was said as text and as JSON, with the exit code.
fn hunt(directory: &Path, end: &str, options: &[&str]) -> (String, Vec<Value>, i32) {
    let source = write(directory, "program.c", &program(end));
    let command =
        [&["hunt", path(&source), "--budget", "60runs", "--out", path(directory)], options].concat();
    let (stdout, stderr, code) = run(&mut tool(&command));
    let (lines, _, code_of_json) = run(tool(&command).arg("--json"));
    assert_eq!(code, code_of_json, "{stdout}{stderr}{lines}");
    (stdout + &stderr, json(&lines), code)
}

fn finding(lines: &[Value]) -> &Value {
    lines.iter().find(|line| line["type"] == "finding").expect("a finding")
}

/// A failure of some schedules is told from one of all.
#[test]
fn a_failure_is_said_to_depend_on_timing_or_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let (text, lines, code) = hunt(directory.path(), "assert(first);", &[]);
    assert_eq!((code, &finding(&lines)["timing"]), (1, &"depends".into()), "{text}");
    let summary = lines.last().expect("a summary");
    let figures = &summary["failures"][0];
    let (failing, schedules) = (figures["failing"].as_u64(), figures["schedules"].as_u64());
    // The program is so small that all its interleavings were tried.
    assert!(failing < schedules && schedules == summary["runs"].as_u64(), "{summary}");
    assert_eq!((&summary["exhausted"], &summary["classes"]), (&true.into(), &2.into()), "{summary}");
    assert_eq!(figures["failing"], summary["failed_runs"]);
    let (failing, schedules) = (failing.expect("a number"), schedules.expect("a number"));
    assert!(
        text.contains(&format!(
            "assertion at {}/program.c:16: in {failing} of {schedules} schedules",
            path(directory.path())
        )),
        "{text}"
    );

    for options in [&[][..], &["--first"]] {
        let (text, lines, code) = hunt(directory.path(), "assert(value == 3);", options);
        assert_eq!((code, &finding(&lines)["timing"]), (1, &"always".into()), "{text}");
        assert_eq!(finding(&lines)["plain"], "signal 6");
        let words = "and without Threadbare's scheduling too (signal 6): it does not depend on timing\nevery run failed";
        assert!(text.contains(words), "{text}");
    }
}

/// What fails with us alone may be our fault. Here it is: the program looks at how its addresses are laid out.
#[test]
fn what_passes_without_us_is_not_blamed_on_the_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let (text, lines, code) =
        hunt(directory.path(), "if (personality(-1) & ADDR_NO_RANDOMIZE) abort();\n  return 0;", &[]);
    assert_eq!((code, &finding(&lines)["timing"]), (1, &"unknown".into()), "{text}");
    assert!(text.contains("but the program passes without Threadbare's scheduling"), "{text}");
    assert!(!text.contains("does not depend"), "{text}");

    let early = "#include <sys/personality.h>\nint main(void) { return personality(-1) & ADDR_NO_RANDOMIZE ? 3 : 0; }\n";
    let source = write(directory.path(), "early.c", early);
    let (_, stderr, code) = run(&mut tool(&["hunt", path(&source)]));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("it passes without Threadbare's scheduling: this may be our fault"), "{stderr}");
}

/// A program that fails before its first thread is run by itself before anything is said of that, with the same
/// arguments, input and directory.
#[test]
fn a_failure_before_the_first_thread_is_checked_without_us() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = "#include <stdio.h>\nint main(int n, char **words) { return n == 2 && getchar() == 'x' ? words[1][0] : 0; }\n";
    let source = write(directory.path(), "early.c", text);
    let input = write(directory.path(), "input", "x");
    let program = directory.path().join("early");
    compile(&source, &program, &["-fsanitize=thread"]);
    let (_, stderr, code) = run(&mut tool(&["hunt", path(&program), "--stdin", path(&input), "--", "A b"]));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("it fails without Threadbare's scheduling too: exit code 65"), "{stderr}");
    let command = stderr.split_once("that was: ").map(|(_, command)| command.trim()).expect("a command");
    assert!(command.ends_with("early 'A b'"), "{command}");
    let status = std::process::Command::new("sh")
        .args(["-c", command])
        .stdin(std::fs::File::open(&input).expect("a file"))
        .status();
    assert_eq!(
        status.expect("a shell").code(),
        Some(65),
        "the command that is shown is the one that was run"
    );
}

/// An exit code that a program always has is no finding; one that it has under some schedules is.
#[test]
fn an_exit_code_is_normal_if_every_run_has_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (text, lines, code) = hunt(directory.path(), "return 6;", &[]);
    assert_eq!((code, lines.len()), (0, 1), "{text}");
    assert_eq!(lines[0]["normal_exit_code"], 6);
    assert!(
        text.contains("exit code 6 in every schedule, and without Threadbare's scheduling too"),
        "{text}"
    );

    let (text, lines, code) = hunt(directory.path(), "return first ? 6 : 0;", &[]);
    assert_eq!((code, &finding(&lines)["timing"]), (1, &"depends".into()), "{text}");
    // Without us it always comes to its end.
    let end = "if (!first && personality(-1) & ADDR_NO_RANDOMIZE) abort();\n  return 6;";
    let (text, lines, code) = hunt(directory.path(), end, &[]);
    assert_eq!((code, &finding(&lines)["kind"]), (1, &"crash".into()), "{text}");
    let summary = lines.last().expect("a summary");
    assert_eq!((&summary["findings"], &summary["normal_exit_code"]), (&1.into(), &6.into()), "{text}");
}

/// A run that goes on and on, though others end, is looked at: it deadlocks later, it ends, or nobody knows.
#[test]
fn a_run_that_is_stopped_though_others_end_is_looked_at() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["--max-events", "10000"];
    let until = |limit: &str, then: &str| {
        format!("for (int i = 0; !first && i < {limit}; i++) __atomic_add_fetch(&counter, 1, 5);\n  {then}")
    };
    let (text, lines, code) = hunt(
        directory.path(),
        &until("20000", "if (!first) { work(0); pthread_mutex_lock(&lock); work(0); }"),
        &options,
    );
    assert_eq!((code, &finding(&lines)["kind"]), (1, &"deadlock".into()), "{text}");

    let (text, lines, code) = hunt(directory.path(), &until("20000", "return 0;"), &options);
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("may hang"), "it ends: {text}");
    assert!(lines[0]["stopped"]["max_events"].as_u64() > Some(0), "{text}");

    let (text, lines, code) = hunt(directory.path(), &until("2000000000", "return 0;"), &options);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("a run did not end within 100000 events, though others end: it may hang"),
        "{text}"
    );
    let clip = lines[0]["unfinished"]["clip"].as_str().expect("a clip");
    assert!(clip.contains("program-unfinished-"), "{clip}");
    let (stdout, stderr, code) = run(&mut tool(&["replay", "--trust", clip]));
    assert!(code == 1 && stdout.contains("reproduced in 1 of 1 runs"), "{stdout}{stderr}");
}

/// One run of all the events that are allowed would take more than the time that there is.
#[test]
fn a_short_budget_is_enough_for_beginnings() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(
        directory.path(),
        "program.c",
        &program("for (int i = 0; i < 2000000000; i++) __atomic_add_fetch(&counter, 1, 5);"),
    );
    let command = ["hunt", path(&source), "--budget", "5runs,20s", "--max-events", "16000000"];
    let (stdout, stderr, code) = run(tool(&command).args(["--out", path(directory.path())]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("nothing found in 5 runs"), "{stdout}");
    assert!(stdout.contains("no run came to its end; most were stopped after 10000 events"), "{stdout}");
}
