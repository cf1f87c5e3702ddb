//! Files without an end: each is refused with its limit, and none fills the memory.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::clips::LOST_UPDATE;
use crate::support::{path, run, tool, write};

/// The tool with four gigabytes of address space: whoever reads on is stopped, and the machine lives.
fn bounded(arguments: &[&str], directory: &Path) -> Command {
    let mut command = tool(arguments);
    command.current_dir(directory);
    let limit = rustix::process::Rlimit { current: Some(4 << 30), maximum: Some(4 << 30) };
    // SAFETY: `setrlimit` is a system call and nothing else, as is required between fork and exec.
    unsafe {
        command.pre_exec(move || Ok(rustix::process::setrlimit(rustix::process::Resource::As, limit)?));
    }
    command
}

/// Everything that takes a file says which limit it passes, on a device and on a file that is mostly a hole.
#[test]
fn a_file_without_an_end_is_refused_with_its_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "lost.c", LOST_UPDATE);
    let hole = directory.path().join("hole");
    File::create(&hole).and_then(|file| file.set_len(1 << 40)).expect("a file of a terabyte");
    for file in ["/dev/zero", path(&hole)] {
        for arguments in [
            &["hunt", "lost.c", "--stdin", file][..],
            &["record", "lost.c", "--stdin", file],
            &["replay", file],
            &["trace", "show", file],
            &["trace", "export", file, "--format", "std"],
            &["predict", "--trace", file],
            &["predict", "lost.c", "--patterns", file],
        ] {
            let (stdout, stderr, code) = run(&mut bounded(arguments, directory.path()));
            assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
            assert!(
                stderr.contains("it is larger than ") && stderr.contains(file),
                "{arguments:?}: {stderr}"
            );
        }
        let (_, stderr, code) = run(&mut bounded(&["hunt", file], directory.path()));
        assert_eq!(code, 2);
        assert!(stderr.contains("not a regular file") || stderr.contains("larger than"), "{file}: {stderr}");
    }
    let zero = File::open("/dev/zero").expect("a device");
    let (_, stderr, code) = run(bounded(&["hunt", "lost.c", "--stdin", "-"], directory.path()).stdin(zero));
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot read standard input: it is larger than 256 MiB"), "{stderr}");
}

/// A directory, a pipe without a writer, and a file that is not there: none is waited for where the name is not the
/// user's, and each is named.
#[test]
fn what_is_no_file_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "lost.c", LOST_UPDATE);
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
    assert!(made.success());
    for (arguments, expected) in [
        (&["hunt", "pipe"][..], "pipe is not an x86-64 ELF executable: it is not a regular file"),
        (&["replay", "."], "cannot read .: Is a directory"),
        (&["trace", "show", "missing"], "cannot read missing: No such file"),
    ] {
        let (_, stderr, code) = run(&mut bounded(arguments, directory.path()));
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let clip = "threadbare clip 3\ndirectory .\ntarget lost.c\ninput 0x1 pipe\nfinding\nmessage\nseed 0\nmax-events 100\n";
    write(directory.path(), "pipe.clip", clip);
    let (_, stderr, code) = run(&mut bounded(&["replay", "pipe.clip", "--trust"], directory.path()));
    assert_eq!(code, 2);
    assert!(stderr.contains("pipe: it is not a regular file"), "{stderr}");
}

/// An empty trace is an error and not a trace without findings; so is one without a line that says anything.
#[test]
fn an_empty_trace_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in [("a.tbt", ""), ("a.std", ""), ("a.csv", ""), ("b.std", "\n\n"), ("b.csv", " \n")] {
        fs::write(directory.path().join(name), text).expect("a file");
        for arguments in [&["predict", "--trace", name][..], &["trace", "show", name]] {
            let (stdout, stderr, code) = run(&mut bounded(arguments, directory.path()));
            assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?} {text:?}: {stderr}");
            assert!(stderr.contains(name), "{arguments:?}: {stderr}");
        }
    }
}
