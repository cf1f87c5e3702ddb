//! A deadlock that takes four threads in one order of many: the one on upgrade in parking_lot 0.7.0, in a lock of the same
//! shape.

use crate::support::{json, path, root, run, tool};

/// What a search of the program says, its summary last.
fn search(command: &[&str], flag: &str) -> Vec<serde_json::Value> {
    let program = root().join("crates/cli/tests/tool/programs/upgrade.c");
    let out = tempfile::tempdir().expect("a directory");
    let options = ["--json", "--seed", "0", "--out", path(out.path())];
    let (stdout, stderr, code) =
        run(tool(command).arg(path(&program)).args(options).arg(format!("--cc-arg={flag}")));
    let lines = json(&stdout);
    assert_eq!(code, i32::from(lines.len() > 1), "{stdout}{stderr}");
    lines
}

/// Protects the search from missing it: `pos` has it in 145 runs, `hunt` in 216.
#[test]
fn a_thread_that_is_passed_over_is_a_deadlock() {
    for command in
        [["rank", "--strategy", "pos", "--budget", "400runs"].as_slice(), &["hunt", "--budget", "800runs"]]
    {
        let lines = search(command, "-DHISTORY=1");
        let finding = &lines[0];
        assert_eq!((lines.len(), &finding["kind"]), (2, &"deadlock".into()), "{command:?}: {lines:?}");
        assert_eq!(finding["locations"][0]["function"], "wait_for", "{finding}");
    }
}

/// Protects from false alarms: the lock without the fault, and the lock whose first unlock is fair, which hides it.
#[test]
fn a_lock_that_passes_nobody_over_has_no_deadlock() {
    for flag in ["-DFIXED", "-DHISTORY=0"] {
        let lines = search(&["rank", "--strategy", "pos", "--budget", "1000runs"], flag);
        assert_eq!((lines.len(), &lines[0]["findings"]), (1, &0.into()), "{flag}: {lines:?}");
    }
}
