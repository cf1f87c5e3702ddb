//! The self-test, on this machine and on programs that are built wrongly.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{compile, json, path, run, tool, write};

const MAIN: &str = "#include <pthread.h>\nint helper(int *x);\nint twice(int *x);\nstatic int n;\n\
    static void *work(void *x) { n++; return x; }\n\
    int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); helper(&n); twice(&n); pthread_join(t, 0); }\n";

/// Examines the program, without Rust, which takes its time.
fn examine(program: &Path) -> (Vec<Value>, i32) {
    let (stdout, stderr, code) =
        run(tool(&["doctor", "--json", path(program)]).env("RUSTC", "/nonexistent/rustc"));
    assert_eq!(stderr, "");
    let checks = json(&stdout);
    let rust = checks.iter().find(|check| check["check"] == "Rust").expect("a check");
    assert!(rust["result"] == "warning" && rust["advice"].is_string(), "{rust}");
    (checks.into_iter().filter(|check| check["check"] == path(program)).collect(), code)
}

/// The first check with this result whose words contain `words`.
fn with<'a>(checks: &'a [Value], result: &str, words: &str) -> &'a Value {
    let is_it = |check: &&Value| {
        check["result"] == result && check["found"].as_str().is_some_and(|found| found.contains(words))
    };
    checks.iter().find(is_it).unwrap_or_else(|| panic!("no {result} with `{words}` in {checks:#?}"))
}

fn gcc(directory: &Path, arguments: &[&str]) {
    let status = Command::new("gcc").args(arguments).current_dir(directory).status();
    assert!(status.expect("gcc starts").success(), "{arguments:?}");
}

/// A program of two objects and a library; these flags are for the second object and for the library.
fn program(directory: &Path, name: &str, object: &str, library: &str) -> PathBuf {
    write(directory, "main.c", MAIN);
    write(directory, "helper.c", "int helper(int *x) { return *x += 1; }\n");
    write(directory, "twice.c", "int twice(int *x) { return *x *= 2; }\n");
    let shared = format!("lib{name}.so");
    gcc(directory, &["-g", "-fsanitize=thread", "-c", "main.c"]);
    gcc(directory, &["-g", object, "-c", "helper.c"]);
    gcc(directory, &["-g", library, "-shared", "-fPIC", "twice.c", "-o", &shared]);
    let rpath = format!("-Wl,-rpath,{}", path(directory));
    gcc(directory, &["-fsanitize=thread", "main.o", "helper.o", "-o", name, &shared, &rpath]);
    directory.join(name)
}

/// The planted races are found and their twins are clean, for real.
#[test]
fn a_machine_that_can_run_these_tests_is_well() {
    let (stdout, stderr, code) = run(tool(&["doctor"]).env("CARGO_NET_OFFLINE", "true"));
    assert_eq!(code, 0, "{stdout}{stderr}");
    for words in [
        "ok  kernel: address space layout can be fixed",
        "ok  planted race in C: found; nothing in ",
        "ok  planted race in a cargo project: found; nothing in its fixed twin",
    ] {
        assert!(stdout.contains(words), "{stdout}");
    }
}

#[test]
fn what_is_not_instrumented_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let (checks, code) = examine(&program(directory.path(), "half", "-O0", "-O0"));
    assert_eq!(code, 1, "{checks:#?}");
    with(&checks, "warning", "2 of 3 functions that access memory are instrumented; nothing of helper.c is");
    with(&checks, "warning", "libhalf.so");
    with(&checks, "ok", "has debug information");
    with(&checks, "ok", "gets to its first thread");

    let (checks, _) = examine(&program(directory.path(), "whole", "-fsanitize=thread", "-fsanitize=thread"));
    with(&checks, "ok", "3 of 3 functions that access memory are instrumented");
    with(&checks, "ok", "libraries besides the system's: 1, all instrumented");
    assert!(checks.iter().all(|check| check["result"] == "ok"), "{checks:#?}");
}

#[test]
fn a_program_that_cannot_be_hunted_in_is_told_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let source =
        write(directory.path(), "alone.c", "int main(int n, char **words) { return words[0][0] == n; }\n");
    let program = directory.path().join("alone");
    compile(&source, &program, &["-fsanitize=thread"]);
    let (checks, code) = examine(&program);
    assert_eq!(code, 1, "{checks:#?}");
    with(&checks, "warning", "ends without a thread");
    with(&checks, "warning", "has no debug information");
    compile(&source, &program, &["-g", "-fsanitize=thread", "-static-libtsan"]);
    let (checks, code) = examine(&program);
    assert_eq!(code, 2, "{checks:#?}");
    with(&checks, "error", "own runtime is linked in");
    compile(&source, &program, &["-g"]);
    let (checks, code) = examine(&program);
    assert_eq!(code, 2, "{checks:#?}");
    with(&checks, "error", "no sign of -fsanitize=thread");
}

#[test]
fn a_machine_without_a_compiler_is_told_what_to_install() {
    let (stdout, stderr, code) =
        run(tool(&["doctor"]).env("CC", "/nonexistent/cc").env("RUSTC", "/nonexistent/rustc"));
    assert_eq!((code, stderr.as_str()), (2, ""), "{stdout}");
    assert!(stdout.contains("error  C compiler: cannot run the compiler /nonexistent/cc"), "{stdout}");
    assert!(stdout.contains("install gcc or clang"), "{stdout}");
    assert!(!stdout.contains("planted race"), "what cannot be tried is not spoken of: {stdout}");
}
