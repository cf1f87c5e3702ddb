//! Ctrl-C and worse: nothing is left running, nothing found is lost.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{compile, json, path, root, tool, write};

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
