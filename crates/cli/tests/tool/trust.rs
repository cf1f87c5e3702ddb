//! A clip is a file from a stranger: what it can make the tool do, and what not.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::clips::LOST_UPDATE;
use crate::support::{json, path, run, tool, write};

/// A project with a program, and a clip of it.
struct Project {
    directory: TempDir,
    clip: String,
}

impl Project {
    fn new() -> Project {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), "lost.c", LOST_UPDATE);
        let hunt = ["hunt", "lost.c", "--json", "--first", "--cc-arg=-DN=2", "--", "2"];
        let (stdout, stderr, code) = run(tool(&hunt).current_dir(directory.path()));
        assert_eq!(code, 1, "{stdout}{stderr}");
        let clip = directory.path().join(json(&stdout)[0]["clip"].as_str().expect("a clip was written"));
        let clip = fs::read_to_string(clip).expect("the clip is there");
        Project { directory, clip }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The clip with these lines instead of those that begin alike.
    fn forge(&self, lines: &[&str]) -> PathBuf {
        let key = |line: &str| line.split(' ').next().map(str::to_owned);
        let is_kept = |old: &&str| !lines.iter().any(|line| key(line) == key(old));
        let (head, rest) = self.clip.split_once('\n').expect("a clip has a head");
        let kept: Vec<&str> = rest.lines().filter(is_kept).collect();
        let clip = [head, &lines.join("\n"), &kept.join("\n"), ""].join("\n");
        write(&self.path("threadbare-out"), "forged.clip", &clip)
    }

    fn replay(&self, clip: &Path) -> Command {
        let mut command = tool(&["replay", path(clip)]);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }
}

#[test]
fn a_clip_of_the_project_is_run_and_what_it_runs_is_said_first() {
    let project = Project::new();
    let clip = project.forge(&[]);
    let (stdout, stderr, code) = run(&mut project.replay(&clip));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let directory = project.directory.path().canonicalize().expect("the directory is there");
    let expected = format!("replaying lost.c 2, compiled with -DN=2\n       in {}\n", directory.display());
    assert_eq!(stderr, expected);
}

/// Protects the machine of whoever replays a clip: none of these runs what it names, or leaves the project.
#[test]
fn what_may_do_harm_is_shown_and_refused_without_a_terminal() {
    let project = Project::new();
    let ran = project.path("ran");
    let shell = format!("compiler-argument sh,-c,touch {}", path(&ran));
    symlink("/bin/sh", project.path("link")).expect("a link can be made");
    let outside = tempfile::tempdir().expect("a directory");
    let stolen = write(outside.path(), "stolen.c", LOST_UPDATE);
    symlink(&stolen, project.path("link.c")).expect("a link can be made");
    let secret = format!("input 0x1 {}", path(&write(outside.path(), "secret", "secret")));
    let absolute = format!("target {}", path(&stolen));
    let elsewhere = format!("directory {}", path(outside.path()));
    let cases: [(&[&str], &str); 15] = [
        (
            &["compiler-argument -wrapper", &shell],
            "for the compiler that is not known to be harmless: -wrapper",
        ),
        (&["compiler-argument -fplugin=evil.so"], "-fplugin=evil.so"),
        (&["compiler-argument @args"], "@args"),
        (&["compiler-argument -I/usr/include"], "-I/usr/include"),
        (&["compiler-argument -Dassert(x)=system(\"id\")"], "-Dassert(x)=system(\"id\")"),
        (&["compiler-argument -fuse-ld=../ld"], "-fuse-ld=../ld"),
        (&["target /bin/sh", "argument -c"], "runs a program outside of this project: /bin/sh"),
        (&["target link"], "runs a program outside of this project: "),
        (&["target link.c"], "runs a program outside of this project: "),
        (&[&absolute], "runs a program outside of this project: "),
        (&["target ../../../../../../bin/sh"], "runs a program outside of this project: "),
        (&["target /dev/zero"], "runs a program outside of this project: /dev/zero"),
        (&["argument /etc/passwd"], "for the program that is not known to be harmless: /etc/passwd"),
        (&[&secret], "reads a file outside of this project: "),
        (&[&elsewhere, "target stolen.c"], "runs in a directory outside of this project: "),
    ];
    for (lines, expected) in cases {
        let clip = project.forge(lines);
        let (stdout, stderr, code) = run(&mut project.replay(&clip));
        assert_eq!((code, stdout.as_str()), (2, ""), "{lines:?}: {stderr}");
        assert!(stderr.contains(expected), "{lines:?}: {stderr}");
        assert!(stderr.contains("use replay --trust"), "{lines:?}: {stderr}");
        assert!(!ran.exists(), "{lines:?} ran a command");
    }
    // It does what it says: without the check the command runs.
    let clip = project.forge(&["compiler-argument -wrapper", &shell]);
    let (_, stderr, code) = run(project.replay(&clip).arg("--trust"));
    assert_eq!(code, 2, "{stderr}");
    assert!(ran.exists(), "--trust is for what one wants to run: {stderr}");
}

/// A target, input or argument that the user names is the user's own.
#[test]
fn what_the_user_names_is_not_doubted() {
    let project = Project::new();
    let outside = tempfile::tempdir().expect("a directory");
    let own = write(outside.path(), "lost.c", LOST_UPDATE);
    let clip = project.forge(&["target /bin/sh"]);
    let (stdout, stderr, code) = run(project.replay(&clip).arg("--target").arg(&own));
    assert_eq!(code, 1, "{stdout}{stderr}");
}

/// A clip shows its texts, and no more than that: nothing reaches the terminal that it would obey.
#[test]
fn texts_of_a_clip_do_not_reach_the_terminal_raw() {
    let project = Project::new();
    for line in [
        "target \\u{1b}]0;x\\u{7}.c",
        "argument \\u{1b}[2J",
        "compiler-argument \\u{202e}x",
        "finding \u{1b}[2J",
    ] {
        let clip = project.forge(&[line]);
        let (stdout, stderr, _) = run(&mut project.replay(&clip));
        for raw in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(!stdout.contains(raw) && !stderr.contains(raw), "{line}: {stdout:?}{stderr:?}");
        }
    }
    let clip = project.forge(&["\u{1b}[2J x"]);
    let (_, stderr, code) = run(&mut project.replay(&clip));
    assert_eq!((code, stderr.contains('\u{1b}')), (2, false), "{stderr:?}");
}

/// The answer of a user on a terminal decides.
#[test]
fn on_a_terminal_the_user_is_asked() {
    let project = Project::new();
    let outside = tempfile::tempdir().expect("a directory");
    let own = write(outside.path(), "lost.c", LOST_UPDATE);
    let clip = project.forge(&[&format!("target {}", path(&own))]);
    for (answer, expected) in [("n\n", 2), ("\n", 2), ("y\n", 1)] {
        let (mut terminal, user_side) = open_terminal();
        terminal.write_all(answer.as_bytes()).expect("one can type ahead");
        let mut command = project.replay(&clip);
        command.stdin(Stdio::from(user_side.try_clone().expect("a descriptor")));
        command.stderr(Stdio::from(user_side)).stdout(Stdio::piped());
        let output = command.output().expect("the tool starts");
        drop(command);
        let mut shown = Vec::new();
        // The end of a terminal is an error.
        let _ = terminal.read_to_end(&mut shown);
        let shown = String::from_utf8_lossy(&shown);
        assert_eq!(output.status.code(), Some(expected), "{answer:?}: {shown}");
        assert!(shown.contains("run it all the same? [y/N]"), "{shown}");
    }
}

/// A terminal: the side of the one who types, and the side of programs.
fn open_terminal() -> (File, OwnedFd) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it can be used");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let other =
        File::options().read(true).write(true).open(name.to_str().expect("a path")).expect("it opens");
    (terminal.into(), other.into())
}

/// Clips know their directory: they are replayed from anywhere, and moved together with the project.
#[test]
fn a_clip_is_replayed_from_elsewhere() {
    let project = Project::new();
    let clip = project.forge(&[]);
    let elsewhere = tempfile::tempdir().expect("a directory");
    let replay = |clip: &Path| run(tool(&["replay", path(clip)]).current_dir(elsewhere.path()));
    let (stdout, stderr, code) = replay(&clip);
    assert_eq!(code, 1, "{stdout}{stderr}");
    let moved = elsewhere.path().join("moved");
    fs::rename(project.directory.path(), &moved).expect("a directory can be moved");
    let (stdout, stderr, code) = replay(&moved.join("threadbare-out/forged.clip"));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stderr.contains("moved\n"), "it says where: {stderr}");
    // A clip that came alone is about the project that the user is in.
    let alone = elsewhere.path().join("alone.clip");
    fs::rename(moved.join("threadbare-out/forged.clip"), &alone).expect("a file can be moved");
    let (stdout, stderr, code) = run(tool(&["replay", path(&alone)]).current_dir(&moved));
    assert_eq!(code, 1, "{stdout}{stderr}");
    // And where there is nothing, it says what is missing.
    let (_, stderr, code) = run(tool(&["replay", path(&alone), "--trust"]).current_dir("/"));
    assert_eq!(code, 2);
    assert!(stderr.contains("there is no lost.c in ") && stderr.contains("--target"), "{stderr}");
    fs::create_dir(project.directory.path()).expect("it is removed at the end");
}

/// The command that a hunt shows works as it is, also for a program outside of the project.
#[test]
fn the_command_for_a_replay_is_complete() {
    let project = Project::new();
    let outside = tempfile::tempdir().expect("a directory");
    let own = write(outside.path(), "lost.c", LOST_UPDATE);
    for (target, expected) in
        [("lost.c", "threadbare replay threadbare"), (path(&own), "threadbare replay --trust threadbare")]
    {
        let (stdout, stderr, code) =
            run(tool(&["hunt", target, "--first"]).current_dir(project.directory.path()));
        assert_eq!(code, 1, "{stdout}{stderr}");
        assert!(stdout.contains(&format!("replay it with: {expected}-out/lost-assertion-")), "{stdout}");
    }
}

/// The same for the names in a trace.
#[test]
fn texts_of_a_trace_do_not_reach_the_terminal_raw() {
    let directory = tempfile::tempdir().expect("a directory");
    let name = "x\u{1b}[2J\u{9b}2J\u{202e}";
    let trace = format!("T0|fork(T1)|1\nT1|w({name})|3\nT0|w({name})|4\nT0|join(T1)|6\n");
    let trace = write(directory.path(), "names.std", &trace);
    for format in ["text", "list"] {
        let (stdout, stderr, _) = run(&mut tool(&["predict", "--trace", path(&trace), "--format", format]));
        let shown = stdout + &stderr;
        assert!(shown.contains("predicted") || format == "list", "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown:?}");
    }
    // A trace file may name anything: that of a program whose function has been renamed inside it.
    let source = write(directory.path(), "lost.c", LOST_UPDATE);
    let recorded = directory.path().join("run.tbt");
    run(&mut tool(&["record", path(&source), "--out", path(&recorded)]));
    let mut bytes = fs::read(&recorded).expect("a trace");
    let at = bytes.windows(7).position(|window| window == b"counter").expect("the variable");
    bytes[at..at + 4].copy_from_slice(b"\x1b[2J");
    fs::write(&recorded, bytes).expect("it can be written");
    for more in [&[][..], &["--events"]] {
        let (stdout, stderr, code) = run(tool(&["trace", "show", path(&recorded)]).args(more));
        assert!(code == 0 && !stdout.contains('\u{1b}'), "{stdout:?}{stderr:?}");
    }
}
