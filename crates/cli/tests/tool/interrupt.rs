//! Ctrl-C and worse: nothing is left running, nothing found is lost.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{compile, json, path, root, tool, write};

/// Starts a command of the tool, and waits until it hears interrupts.
fn start_listening(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool starts");
    wait_until("the tool catches SIGINT", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let has_ended = child.try_wait().expect("the tool is our child").is_some();
        assert!(!has_ended, "{command:?} ended before it was interrupted");
        caught & 1 << (libc::SIGINT - 1) != 0
    });
    child
}

/// Interrupts a command with the first signal that it hears. Returns what it printed and its exit code.
fn interrupted(command: &mut Command, name: &str) -> (String, Option<i32>) {
    let child = start_listening(command);
    signal(&child, name);
    let output = child.wait_with_output().expect("the tool ends");
    (String::from_utf8(output.stdout).expect("the tool prints UTF-8"), output.status.code())
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

/// Protects the user from a tool that cannot be stopped: whatever it waits for, one signal ends it with a summary.
#[test]
fn an_interrupt_ends_what_only_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let (nobody, temporary) = (directory.path().join("nobody-writes"), directory.path().join("tmp"));
    fifo(&nobody);
    std::fs::create_dir(&temporary).expect("a directory");
    let source = write(directory.path(), "waits.c", &format!("#include \"{}\"\n", nobody.display()));
    let spins = "int main(void) { for (volatile int i = 0;;) i = 1; }";
    let spins = write(directory.path(), "spins.c", spins);
    let (nobody, source, spins) = (path(&nobody), path(&source), path(&spins));
    let out = directory.path().join("out");
    let waiting: &[&[&str]] = &[
        &["hunt", spins, "--json", "--stdin", nobody],
        &["rank", spins, "--json", "--stdin", "-"],
        &["hunt", source, "--json"],
        &["predict", source, "--json"],
        &["predict", "--json", "--trace", nobody],
        &["guide", spins, "--json", "--time-limit", "600", "--through", "main"],
        &["guide", spins, "--json", "--from", nobody],
        &["hunt", spins, "--json", "--time-limit", "600"],
        &["replay", nobody, "--json"],
    ];
    for (arguments, name) in waiting.iter().zip(["-INT", "-TERM", "-HUP"].iter().cycle()) {
        let mut command = tool(arguments);
        if arguments[0] != "replay" && !arguments.contains(&"--trace") {
            command.args(["--out", path(&out)]);
        }
        command.stdin(Stdio::piped()).env("TMPDIR", &temporary);
        let (stdout, code) = interrupted(&mut command, name);
        assert_eq!(code, Some(130), "{arguments:?} {stdout}");
        let last = json(&stdout).pop().expect("a summary");
        assert_eq!((&last["runs"], &last["interrupted"]), (&0.into(), &true.into()), "{arguments:?} {last}");
        let left = std::fs::read_dir(&temporary).expect("the directory is there").count();
        assert_eq!(left, 0, "{arguments:?} left a temporary directory");
    }
    for arguments in
        [&["record", spins][..], &["trace", "show", nobody], &["trace", "export", "--format", "csv", nobody]]
    {
        let (stdout, code) = interrupted(&mut tool(arguments), "-INT");
        assert_eq!((stdout.as_str(), code), ("", Some(130)), "{arguments:?}");
    }
}

/// A trace of threads that all access the same variables from many lines. Predictions from it take minutes.
fn long_trace() -> String {
    let fork = |thread: u32| format!("T0|fork(T{thread})|{thread}");
    let access = |number: u32| {
        let mixed = number.wrapping_mul(2_654_435_761) >> 8;
        let kind = if mixed & 1 == 0 { 'r' } else { 'w' };
        format!("T{}|{kind}(V{})|{}", 1 + mixed % 23, mixed / 64 % 40, 100 + mixed / 8 % 3000)
    };
    let lines: Vec<String> = (1..24).map(fork).chain((0..100_000).map(access)).collect();
    lines.join("\n") + "\n"
}

/// A prediction does not ask whether it was interrupted.
#[test]
fn an_interrupt_ends_a_long_prediction() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = write(directory.path(), "long.std", &long_trace());
    let child = start_listening(&mut tool(&["predict", "--trace", path(&trace), "--json"]));
    wait_until("it computes", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it goes on");
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
        // Hundredths of a second in user mode: more than it takes to read the trace.
        fields.is_some_and(|fields| fields[11].parse::<u64>().is_ok_and(|time| time > 200))
    });
    signal(&child, "-TERM");
    let output = child.wait_with_output().expect("the tool ends");
    let stdout = String::from_utf8(output.stdout).expect("the tool prints UTF-8");
    assert_eq!(output.status.code(), Some(130), "{stdout}");
    assert_eq!(json(&stdout).pop().expect("a summary")["interrupted"], true);
}

/// Nobody reads what the tool prints: it ends all the same.
#[test]
fn an_interrupt_ends_a_tool_whose_output_is_full() {
    let directory = tempfile::tempdir().expect("a directory");
    // More than a pipe holds.
    let prints = r#"
#include <pthread.h>
#include <stdio.h>
static void *print(void *unused) {
    for (int i = 0; i < 1000000; i++) putchar('x');
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, print, 0);
    return pthread_join(thread, 0);
}
"#;
    let source = write(directory.path(), "prints.c", prints);
    let recorded = directory.path().join("run.tbt");
    let mut child = start_listening(&mut tool(&["record", path(&source), "--out", path(&recorded)]));
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut [0]).expect("the run's output is printed");
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("the tool ends").code(), Some(130));
}

/// Runs that take long and fail after many switches, so that minimising takes longer than anything else.
const SLOW: &str = r#"
#include <assert.h>
#include <pthread.h>
static int shared;
static void *add(void *unused) {
    for (int i = 0; i < 40; i++) {
        int seen = shared;
        for (volatile int wait = 0; wait < 1000000; wait++) {}
        shared = seen + 1;
    }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    assert(shared == 80);
}
"#;

/// Protects the budget: minimising one failure of this program would take some minutes.
#[test]
fn minimising_keeps_to_the_budget_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "slow.c", SLOW);
    let out = directory.path().join("out");
    let hunt =
        ["rank", path(&source), "--json", "--strategy", "random", "--budget", "5s", "--out", path(&out)];
    let (stdout, stderr, code) = crate::support::run(&mut tool(&hunt));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let lines = json(&stdout);
    assert_eq!(lines[0]["type"], "finding", "{stdout}");
    let seconds = lines.last().and_then(|summary| summary["seconds"].as_f64()).expect("a summary");
    assert!(seconds < 60.0, "{seconds} s for a budget of 5");
}

/// Starts a command of the tool in a session of its own.
fn start(command: &Command) -> Child {
    let mut in_session = Command::new("setsid");
    in_session.arg(command.get_program()).args(command.get_args());
    in_session.current_dir(root()).stdout(Stdio::piped()).spawn().expect("the tool starts")
}

/// Processes that descend from the tool, and itself: those of its session, also when their parents have ended. Those
/// that have ended themselves do not count; whose they are then is up to the system.
fn running(tool: &Child) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let session = tool.id().to_string();
    let is_running = |stat: &String| {
        // After the name in brackets: state, parent, group, session.
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
        fields.is_some_and(|fields| !["Z", "X"].contains(&fields[0]) && fields[3] == session)
    };
    stats.filter(is_running).count()
}

/// Waits until `condition` holds; fails after a time that no machine needs.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "still not: {what}");
        std::thread::yield_now();
    }
}

/// A hunt without end that has found something: what it prints, and the first line of that.
fn start_hunt(directory: &Path) -> (Child, BufReader<ChildStdout>, String) {
    let program = directory.join("subject");
    compile(&root().join("subjects/c/wronglock.c"), &program, &["-g", "-fsanitize=thread"]);
    let out = directory.join("out");
    let hunt = ["hunt", path(&program), "--json", "--budget", "1h", "--out", path(&out)];
    let mut child = start(&tool(&hunt));
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    output.read_line(&mut first).expect("the tool prints UTF-8");
    assert_eq!(json(&first)[0]["type"], "finding");
    assert!(running(&child) > 1, "the hunt goes on");
    (child, output, first)
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill starts");
    assert!(status.success());
}

/// Protects what was found so far from Ctrl-C, and the machine from what was running.
#[test]
fn an_interrupt_ends_the_hunt_with_its_summary() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut child, mut output, _) = start_hunt(directory.path());
    signal(&child, "-INT");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("the tool prints UTF-8");
    assert_eq!(child.wait().expect("the tool ends").code(), Some(1));
    assert_eq!(json(&rest).last().expect("a summary")["type"], "summary");
    wait_until("no process left", || running(&child) == 0);
}

/// Protects the same from a kill, of which the tool hears nothing.
#[test]
fn a_killed_tool_leaves_no_process_and_its_clips() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut child, _output, finding) = start_hunt(directory.path());
    signal(&child, "-KILL");
    child.wait().expect("the tool ends");
    wait_until("no process left", || running(&child) == 0);
    let finding = &json(&finding)[0];
    let clip = finding["clip"].as_str().expect("a clip was written");
    let (stdout, stderr, code) = crate::support::run(&mut tool(&["replay", "--trust", clip, "--json"]));
    assert_eq!(code, 1, "{stdout}{stderr}");
}

/// A run that became another user is out of reach for most, but not for the end of the tool.
#[test]
fn a_killed_tool_leaves_no_run_that_dropped_privileges() {
    const DROPS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *drop_and_spin(void *ready) {
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 0;
    fclose(fopen(ready, "w"));
    for (volatile int i = 0;;) i = 1;
}
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_create(&thread, 0, drop_and_spin, argv[1]);
    return pthread_join(thread, 0);
}
"#;
    let directory = tempfile::tempdir().expect("a directory");
    let everybodys = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), everybodys).expect("the directory is ours");
    let (program, ready) = (directory.path().join("drops"), directory.path().join("ready"));
    compile(&write(directory.path(), "drops.c", DROPS), &program, &["-g", "-fsanitize=thread"]);
    let out = directory.path().join("out");
    let hunt = ["hunt", path(&program), "--time-limit", "600", "--out", path(&out), "--", path(&ready)];
    let mut child = start(&tool(&hunt));
    wait_until("a run that dropped privileges", || ready.exists());
    assert!(running(&child) > 2, "the tool, the server and the run");
    signal(&child, "-KILL");
    child.wait().expect("the tool ends");
    wait_until("no process left", || running(&child) == 0);
}
