//! What a user is told when something cannot be done.

use std::path::Path;
use std::process::Command;

use crate::support::{compile, path, root, run, tool, write};

/// Hunts and demands exit code 2 and these words on standard error.
fn refuses(target: &Path, words: &[&str]) {
    let (stdout, stderr, code) = run(&mut tool(&["hunt", path(target), "--out", "/nonexistent"]));
    assert_eq!(code, 2, "{stdout}{stderr}");
    for word in words {
        assert!(stderr.contains(word), "`{word}` is not in: {stderr}");
    }
}

#[test]
fn a_file_that_is_not_there() {
    refuses(Path::new("/nonexistent/program"), &["/nonexistent/program", "no such file", "help:"]);
    refuses(Path::new("/nonexistent/program.c"), &["/nonexistent/program.c", "no such file"]);
}

#[test]
fn a_program_without_instrumentation_is_told_how_to_build() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "plain.c", "int main(void) { return 0; }\n");
    let program = directory.path().join("plain");
    compile(&source, &program, &[]);
    refuses(&program, &["was not built with -fsanitize=thread", "gcc -g -fsanitize=thread", "threadbare cc"]);
    compile(&source, &program, &["-fsanitize=thread", "-static-libtsan"]);
    refuses(&program, &["ThreadSanitizer's own runtime", "-static-libtsan"]);
    // Whether this one is instrumented is not known, so nothing is said of it.
    compile(&source, &program, &["-static", "-s"]);
    refuses(&program, &["has no symbols, so it cannot be told how it was built"]);
    refuses(&source.with_file_name("no-such.txt"), &["no such file"]);
    let text = write(directory.path(), "text", "not a program\n");
    refuses(&text, &["text"]);
}

/// An exit code alone may mean that an argument is missing. What else fails before the first thread is a finding.
#[test]
fn a_program_that_exits_before_its_first_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let exit = "#include <stdio.h>\nint main(void) { puts(\"no input\"); return 3; }\n";
    let source = write(directory.path(), "code.c", exit);
    refuses(&source, &["failed before it started a thread", "exit code 3", "no input"]);
}

#[test]
fn a_source_that_does_not_compile_shows_the_compilers_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "broken.c", "int main(void) { return x; }\n");
    refuses(&source, &["broken.c does not compile", "undeclared"]);
}

/// Limits that a shell sets would otherwise end in an error number, or in a signal.
#[test]
fn limits_that_are_too_low_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = root().join("subjects/c/wronglock.c");
    for (limit, word) in [("ulimit -n 64", "ulimit -n 256"), ("ulimit -f 100000", "ulimit -f unlimited")] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{limit}; exec \"$@\"")).arg("sh");
        shell.arg(env!("CARGO_BIN_EXE_threadbare")).args([
            "hunt",
            path(&source),
            "--out",
            path(directory.path()),
        ]);
        let (stdout, stderr, code) = run(&mut shell);
        assert_eq!(code, 2, "{limit}: {stdout}{stderr}");
        assert!(stderr.contains(word), "{limit}: {stderr}");
    }
}

#[test]
fn wrong_options_are_refused_by_name() {
    let (_, stderr, code) = run(&mut tool(&["hunt", "x.c", "--budget", "soon"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("`soon` is neither a time"), "{stderr}");
    let (_, stderr, code) = run(&mut tool(&["trace", "show", "/etc/hostname"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("/etc/hostname") && stderr.contains("threadbare record"), "{stderr}");
}

/// A program without debug information is hunted all the same, and what would help is said once.
#[test]
fn a_program_without_debug_information_is_told_of_the_flag() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "lost.c", crate::clips::LOST_UPDATE);
    let program = directory.path().join("lost");
    let hunt = ["hunt", path(&program), "--first", "--json", "--out", path(directory.path())];
    for (flags, expected) in [
        (
            &["-fsanitize=thread"][..],
            "has no debug information, so places are shown as functions; build it with -g\n",
        ),
        (&["-fsanitize=thread", "-g", "-gsplit-dwarf"], ".dwo is not there or of another build"),
        (&["-fsanitize=thread", "-g"], ""),
    ] {
        compile(&source, &program, flags);
        for entry in std::fs::read_dir(directory.path()).expect("the directory").flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "dwo") {
                std::fs::remove_file(entry.path()).expect("the compiler left it here");
            }
        }
        let (stdout, stderr, code) = run(&mut tool(&hunt));
        assert_eq!(code, 1, "{flags:?}: {stdout}{stderr}");
        assert!(
            stderr.contains(expected) && stderr.matches("note:").count() == usize::from(!expected.is_empty()),
            "{flags:?}: {stderr}"
        );
    }
}
