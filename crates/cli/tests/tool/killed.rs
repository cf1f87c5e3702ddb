//! A tool that is killed leaves nothing: no process, and no directory once the next tool has started.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{compile, path, root, run, tool, write};

/// Starts daemons without end: processes that forked twice, have a session of their own, and became another program.
/// With an argument it does so in a thread, else before its first.
const DAEMONS: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *start_daemons(void *unused) {
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            setsid();
            if (fork() != 0) _exit(0);
            setsid();
            if (fork() == 0) for (;;) pause();
            execlp("sleep", "sleep", "6000", (char *)0);
        }
        waitpid(child, 0, 0);
        usleep(2000);
    }
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    if (argc == 1) start_daemons(0);
    pthread_create(&thread, 0, start_daemons, 0);
    pthread_join(thread, 0);
}
"#;

/// Processes that have this variable in their environment: those that `tool` has started, whoever their parents are.
/// Those that have ended have no environment.
fn count(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    let environments = entries.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.filter(|text| text.windows(mark.len()).any(|part| part == mark.as_bytes())).count()
}

fn wait_until(what: &str, tool: &mut Child, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > Duration::from_secs(60) {
            let _ = tool.kill();
            panic!("still not: {what}");
        }
        std::thread::yield_now();
    }
}

/// Kills a tool that runs `arguments` when it has so many descendants, and waits until none is left.
fn kill_at(processes: usize, arguments: &[&str], temporary: &Path) {
    let mark = format!("THREADBARE_TEST_MARK={}-{processes}-{}", std::process::id(), arguments.len());
    let mut command = tool(arguments);
    let (name, value) = mark.split_once('=').expect("a variable");
    command.env(name, value).env("TMPDIR", temporary);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the tool starts");
    wait_until("enough processes", &mut child, || count(&mark) >= processes);
    child.kill().expect("the tool is our child");
    child.wait().expect("the tool ends");
    wait_until("no process left", &mut child, || count(&mark) == 0);
}

#[test]
fn a_killed_tool_leaves_no_daemons() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("daemons");
    let source = write(directory.path(), "daemons.c", DAEMONS);
    compile(&source, &program, &["-g", "-fsanitize=thread"]);
    let out = directory.path().join("out");
    let hunt = ["hunt", path(&program), "--time-limit", "600", "--out", path(&out)];
    let in_thread = [&hunt[..], &["--", "in-a-thread"]].concat();
    for processes in [4, 9, 23, 40] {
        kill_at(processes, &hunt, directory.path());
        kill_at(processes, &in_thread, directory.path());
    }
}

/// What a run has made in the directory for temporary files, and shared memory with a name, is removed with it.
#[test]
fn a_killed_tool_leaves_nothing_of_its_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).expect("a directory");
    let program = directory.path().join("makes");
    let source = write(directory.path(), "makes.c", MAKES);
    compile(&source, &program, &["-g", "-fsanitize=thread"]);
    let name = format!("threadbare-test-killed-{}", std::process::id());
    let out = directory.path().join("out");
    let hunt = ["hunt", path(&program), "--time-limit", "600", "--out", path(&out), "--", &name];
    let mut child = tool(&hunt).env("TMPDIR", &temporary).spawn().expect("the tool starts");
    let memory = Path::new("/dev/shm").join(&name);
    let directories = || fs::read_dir(&temporary).expect("the directory is there").count();
    wait_until("the run has made both", &mut child, || memory.exists() && directories() > 0);
    child.kill().expect("the tool is our child");
    child.wait().expect("the tool ends");
    wait_until("both are gone", &mut child, || !memory.exists() && directories() == 0);
}

const MAKES: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
static void *make(void *name) {
    char directory[4096];
    snprintf(directory, sizeof directory, "%s/made-XXXXXX", getenv("TMPDIR"));
    shm_open(name, O_CREAT | O_RDWR, 0600);
    mkdtemp(directory);
    for (volatile int i = 0;;) i = 1;
}
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_create(&thread, 0, make, argv[argc - 1]);
    return pthread_join(thread, 0);
}
"#;

/// The compiler ends with the tool too. Its directory is left, because the tool could do nothing any more, and is gone
/// when the next tool has started; that of a tool that lives is not.
#[test]
fn a_killed_tool_leaves_no_compiler_and_the_next_removes_its_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).expect("a directory");
    let waits = directory.path().join("nobody-writes");
    assert!(Command::new("mkfifo").arg(&waits).status().expect("mkfifo starts").success());
    let source = write(directory.path(), "waits.c", &format!("#include \"{}\"\n", waits.display()));
    let out = directory.path().join("out");
    let hunt = ["hunt", path(&source), "--out", path(&out)];
    // The tool, the keeper, the driver and the compiler proper.
    kill_at(4, &hunt, &temporary);
    let directories = || fs::read_dir(&temporary).expect("the directory is there").count();
    assert_eq!(directories(), 1, "what the killed tool left");
    let mut living = tool(&hunt);
    let mut living = living.env("TMPDIR", &temporary).stderr(Stdio::null()).spawn().expect("the tool starts");
    wait_until("the old directory is gone and a new one there", &mut living, || {
        let entries = fs::read_dir(&temporary).expect("the directory is there").flatten();
        entries.filter(|entry| fs::read_dir(entry.path()).is_ok_and(|files| files.count() > 0)).count() == 1
            && directories() == 1
    });
    let subject = root().join("subjects/c/wronglock.c");
    let other = ["hunt", path(&subject), "--budget", "1runs", "--out", path(&out)];
    run(tool(&other).env("TMPDIR", &temporary));
    assert_eq!(directories(), 1, "that of the living tool");
    living.kill().expect("the tool is our child");
    living.wait().expect("the tool ends");
}
