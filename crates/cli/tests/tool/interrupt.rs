//! Ctrl-C and worse: nothing is left running, nothing found is lost.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{compile, json, path, root, tool, write};

/// Processes that run this program.
fn running(program: &Path) -> usize {
    let program = program.canonicalize().expect("the program is there");
    std::fs::read_dir("/proc")
        .expect("/proc is there")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("exe")).ok())
        .filter(|exe| *exe == program)
        .count()
}

/// Waits until `condition` holds; fails after a time that no machine needs.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "still not: {what}");
        std::thread::yield_now();
    }
}

/// A hunt without end on a program of its own, that has found something.
fn start_hunt(directory: &Path) -> (Child, std::path::PathBuf) {
    let program = directory.join("subject");
    compile(&root().join("subjects/c/wronglock.c"), &program, &["-g", "-fsanitize=thread"]);
    let out = directory.join("out");
    let child = tool(&["hunt", path(&program), "--json", "--budget", "1h", "--out", path(&out)])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    wait_until("a clip", || {
        std::fs::read_dir(&out).is_ok_and(|mut files| {
            files.any(|file| file.is_ok_and(|file| path(&file.path()).ends_with(".clip")))
        })
    });
    assert!(running(&program) > 0, "the hunt goes on");
    (child, program)
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill starts");
    assert!(status.success());
}

#[test]
fn an_interrupt_ends_the_hunt_with_its_summary() {
    let directory = tempfile::tempdir().expect("a directory");
    let (child, program) = start_hunt(directory.path());
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("the tool ends");
    assert_eq!(output.status.code(), Some(1));
    let lines = json(&String::from_utf8(output.stdout).expect("UTF-8"));
    assert_eq!(lines.last().expect("a summary")["type"], "summary");
    assert_eq!(lines[0]["type"], "finding");
    wait_until("no process left", || running(&program) == 0);
}

#[test]
fn a_killed_tool_leaves_no_process_and_its_clips() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut child, program) = start_hunt(directory.path());
    signal(&child, "-KILL");
    child.wait().expect("the tool ends");
    wait_until("no process left", || running(&program) == 0);
    let clip =
        std::fs::read_dir(directory.path().join("out")).expect("clips").next().expect("one").expect("entry");
    let (stdout, stderr, code) = crate::support::run(&mut tool(&["replay", path(&clip.path()), "--json"]));
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
    let mut child = tool(&hunt).spawn().expect("the tool starts");
    wait_until("a run that dropped privileges", || ready.exists());
    signal(&child, "-KILL");
    child.wait().expect("the tool ends");
    wait_until("no process left", || running(&program) == 0);
}
