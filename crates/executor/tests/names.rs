//! Programs that have functions and variables of their own under the names of libc's. The runtime must not call them.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use support::Built;

/// Names that a program with threads cannot define as it likes, with or without the tool: what libc and its start-up
/// code call themselves, and what the test's own program calls.
const NEEDED: [&str; 19] = [
    "__cxa_finalize",
    "__gmon_start__",
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__libc_start_main",
    "__tls_get_addr",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "__assert_fail",
    "pthread_create",
    "pthread_join",
    "_init",
    "_fini",
    "main",
];

/// The names that the runtime library imports and exports.
fn names() -> BTreeSet<String> {
    let done = Command::new("nm")
        .args(["--dynamic", "--format=just-symbols"])
        .arg(env!("THREADBARE_RUNTIME"))
        .output();
    let done = done.expect("nm can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("names are text");
    // A version comes after the name.
    let names = text.lines().map(|line| line.split('@').next().unwrap_or(line).to_owned());
    names.filter(|name| !name.starts_with("__tsan_") && !NEEDED.contains(&name.as_str())).collect()
}

/// Builds `own_names.c` with a definition for each of the names.
fn built(definition: impl Fn(&str) -> String) -> Built {
    let names = names();
    for name in ["write", "send", "memcpy", "prctl", "getenv", "stderr", "_Unwind_Backtrace"] {
        assert!(names.contains(name), "the runtime does not use {name}");
    }
    let mut source = String::new();
    for name in names {
        writeln!(source, "{}", definition(&name)).expect("text can be added to");
    }
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let file = directory.path().join("definitions.s");
    fs::write(&file, source).expect("the definitions can be written");
    let file = file.to_str().expect("the path is text");
    Built::with_flags("own_names.c", &[file, "-rdynamic", "-Wa,--noexecstack"])
}

#[test]
fn a_program_may_have_functions_under_all_names_that_the_runtime_uses() {
    let traps = |name: &str| format!(".text\n.globl {name}\n.type {name}, @function\n{name}: ud2");
    built(traps).check(&[("race", &["", "assertion failed"])]);
}

#[test]
fn a_program_may_have_variables_under_all_names_that_the_runtime_uses() {
    let data =
        |name: &str| format!(".data\n.globl {name}\n.type {name}, @object\n.size {name}, 8\n{name}: .quad 1");
    built(data).check(&[("race", &["", "assertion failed"])]);
}

/// Exceptions are thrown and caught, and the program's functions get the calls that are theirs.
#[test]
fn a_cpp_program_may_have_functions_under_names_of_libc() {
    Built::new("own_names.cpp").check(&[("race", &["1", "2"])]);
}

/// A library of the program's gets the calls that are for it. The runtime, which sends what a program writes to a
/// socket, does not take its `send` for libc's.
#[test]
fn a_library_may_have_functions_under_names_of_libc() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let library = directory.path().join("libnames.so");
    let built = Built::new("own_names.c");
    built.compile("library_names.c", &library, &["-shared", "-fPIC"]);
    let library = library.to_str().expect("the path is text");
    Built::with_flags("with_library_names.c", &[library]).check(&[("calls", &["2 3"])]);
}
