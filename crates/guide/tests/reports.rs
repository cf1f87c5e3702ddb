//! Reports of real tools, and what becomes of them.
//!
//! The texts in `tests/reports` were printed by gcc 12, clang 14, gdb 13, rustc 1.95, Valgrind 3.19, semgrep 1.182 and
//! Threadbare, and have other directories in them.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use threadbare_guide::sequence::{Warning, warning};

/// The id and the sequence of each warning of a report, one to a line, without the directory.
fn sequences(name: &str) -> String {
    let path = format!("{}/tests/reports/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let warnings = warning::read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    lines(&warnings).replace("/home/user/project/", "")
}

fn lines(warnings: &[Warning]) -> String {
    warnings.iter().map(|warning| format!("{} = {}\n", warning.id, warning.sequence)).collect()
}

fn read_text(text: &str) -> String {
    warning::read(text.as_bytes()).map_or_else(|error| error.to_string(), |warnings| lines(&warnings))
}

#[test]
fn a_data_race_is_both_accesses_at_the_same_time() {
    let race = "data race race.c:19 = {race.c:19, deposit > race.c:8}\n";
    assert_eq!(sequences("tsan_race_gcc.txt"), race);
    assert_eq!(sequences("tsan_race_clang.txt"), race);
    let again = "data race race.c:19 #2 = {race.c:19, deposit > race.c:8}\n";
    assert_eq!(sequences("helgrind_race.txt"), format!("{race}{again}"));
    assert_eq!(
        sequences("tsan_rust.txt"),
        "data race races.rs:6 = {races::main > races.rs:6@0, races::main::{closure} > races.rs:6}\n"
    );
}

/// Protects that stacks of allocations, mutexes and thread creations are not taken for accesses.
#[test]
fn where_things_come_from_is_not_part_of_a_sequence() {
    assert_eq!(
        sequences("tsan_heap_gcc.txt"),
        "data race heap.c:22 = {heap.c:22@0, heap.c:12}\n\
         destroy of a locked mutex heap.c:25 = heap.c:24, heap.c:25\n"
    );
}

#[test]
fn a_lock_order_inversion_ends_with_each_thread_before_its_second_lock() {
    assert_eq!(
        sequences("tsan_inversion_gcc.txt"),
        "lock-order-inversion inversion.c:10 = {forth > inversion.c:10@a, inversion.c:23@b}\n"
    );
    let both = "lock-order-inversion inversion.c:10 = forth > inversion.c:8@a, inversion.c:21@b, \
                {forth > inversion.c:10@a, inversion.c:23@b}\n";
    assert_eq!(sequences("tsan_inversion_two_stacks_gcc.txt"), both);
    assert_eq!(sequences("tsan_inversion_clang.txt"), both);
    assert_eq!(
        sequences("helgrind_inversion.txt"),
        "lock order inversion.c:23 = inversion.c:21@a, forth > inversion.c:8@b, \
         {inversion.c:23@a, forth > inversion.c:10@b}\n"
    );
}

#[test]
fn a_use_after_free_is_the_free_and_then_the_use() {
    let gcc = "heap-use-after-free freed.cpp:9 = freed.cpp:19@a, operator() > bank::apply > freed.cpp:9@b\n";
    assert_eq!(sequences("tsan_freed_gcc.txt"), gcc);
    assert_eq!(sequences("asan_freed_gcc.txt"), gcc);
    assert_eq!(
        sequences("asan_freed_clang.txt"),
        "heap-use-after-free freed.cpp:9 = freed.cpp:19@a, \
         main::{closure}::operator() > bank::apply > freed.cpp:9@b\n"
    );
}

/// Protects that the thread which only waits for the others is left out, and that locals are no frames.
#[test]
fn the_stacks_of_all_threads_are_at_the_same_time() {
    let deadlock = "stack traces inversion.c:10 = {forth > inversion.c:10, inversion.c:23}\n";
    assert_eq!(sequences("gdb_deadlock.txt"), deadlock);
    assert_eq!(sequences("gdb_deadlock_full.txt"), deadlock);
}

#[test]
fn a_stack_is_its_innermost_place_in_the_users_code() {
    assert_eq!(sequences("gdb_crash.txt"), "stack trace crash.c:11 = worker > crash.c:11\n");
    let closure = "ledger::main::{closure}";
    let panics = format!(
        "panic ledger.rs:10 = {closure} > ledger.rs:10\npanic ledger.rs:16 = {closure} > ledger.rs:16\n"
    );
    assert_eq!(sequences("rust_short.txt"), panics);
    assert_eq!(sequences("rust_full.txt"), panics);
    assert_eq!(
        sequences("rust_none.txt"),
        "panic ledger.rs:10 = ledger.rs:10\npanic ledger.rs:16 = ledger.rs:16\n"
    );
}

#[test]
fn our_own_findings_are_read() {
    assert_eq!(sequences("own_assertion.txt"), "assertion failed account_ring.c:76 = account_ring.c:76@0\n");
    assert_eq!(
        sequences("own_deadlock.txt"),
        "deadlock account_ring_dl.c:43 = {account_ring_dl.c:43@0.1, account_ring_dl.c:43@0.2}\n"
    );
    assert_eq!(
        sequences("own_predict.txt"),
        "assertion failed account_ring.c:76 = account_ring.c:76@0\n\
         data race account_ring.c:35 = {account_ring.c:35@0.2, account_ring.c:52@0.1}\n\
         atomicity violation account_ring.c:41 = \
         account_ring.c:41@0.1, account_ring.c:52@0.2, account_ring.c:41@0.1\n"
    );
    assert_eq!(
        sequences("own_deadlock.jsonl"),
        "deadlock account_ring_dl.c:43 = {account_ring_dl.c:43, account_ring_dl.c:77}\n"
    );
    assert_eq!(
        sequences("own_races.jsonl"),
        "data-race account_ring.c:35 = {account_ring.c:35@0.2, account_ring.c:52@0.1}\n\
         data-race account_ring.c:35 #2 = {account_ring.c:35@0.2, account_ring.c:52@0.1}\n\
         assertion account_ring.c:76 = account_ring.c:76\n"
    );
}

/// Both warnings about `tests/programs/jobs.c`, of which the first can come true and the second cannot.
#[test]
fn a_code_flow_is_one_thread_that_passes_its_lines() {
    assert_eq!(
        sequences("clang.sarif"),
        "core.NullDereference jobs.c:46:19 = \
         jobs.c:43@a, jobs.c:44@a, jobs.c:25@a, jobs.c:27@a, jobs.c:32@a, jobs.c:44@a, jobs.c:46@a\n\
         core.NullDereference jobs.c:56:5 = jobs.c:54@a, jobs.c:37@a, jobs.c:38@a, jobs.c:54@a, jobs.c:56@a\n"
    );
    assert_eq!(
        sequences("gcc_analyzer.json"),
        "analyzer-null-dereference jobs.c:46:19 = jobs.c:41@a, jobs.c:43@a, jobs.c:44@a, jobs.c:24@a, \
         jobs.c:25@a, jobs.c:27@a, jobs.c:31@a, jobs.c:32@a, jobs.c:44@a, jobs.c:46@a\n\
         analyzer-null-dereference jobs.c:56:10 = \
         jobs.c:51@a, jobs.c:54@a, jobs.c:36@a, jobs.c:37@a, jobs.c:38@a, jobs.c:54@a, jobs.c:56@a\n"
    );
    assert_eq!(
        sequences("clang_locks.sarif"),
        "alpha.unix.PthreadLock locks.c:11:5 = locks.c:10@a, locks.c:11@a\n\
         alpha.unix.PthreadLock locks.c:18:14 = locks.c:18@a\n"
    );
    assert_eq!(
        sequences("semgrep.sarif"),
        "job-used-unchecked jobs.c:46:9 = jobs.c:46\nlock-then-limit jobs.c:53:5 = jobs.c:53\n"
    );
}

/// Thread flows that say when each location is, files under bases that are relative to one another, locations and
/// artifacts that are named by their index, and results without a flow.
#[test]
fn what_sarif_can_say_in_several_ways_is_understood() {
    let sarif = r#"{"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "x", "rules": [{"id": "R0"}, {"id": "data-race"}]}},
        "originalUriBaseIds": {"ROOT": {"uri": "file:///my%20project/"}, "SRC": {"uri": "src/", "uriBaseId": "ROOT"}},
        "artifacts": [{"location": {"uri": "list.c", "uriBaseId": "SRC"}}],
        "threadFlowLocations": [{"location": {"physicalLocation": {"artifactLocation": {"index": 0}, "region": {"startLine": 9}}}}],
        "results": [
          {"ruleIndex": 0, "message": {"text": "m"}, "locations": [], "codeFlows": [{"threadFlows": [
            {"locations": [
              {"executionOrder": 1, "index": 0},
              {"executionOrder": 3, "location": {"physicalLocation": {"artifactLocation": {"uri": "a.c"}, "region": {"startLine": 3}}}}]},
            {"locations": [
              {"executionOrder": 2, "location": {"logicalLocations": [{"fullyQualifiedName": "bank::close"}]}}]}]}]},
          {"ruleId": "data-race", "locations": [
              {"physicalLocation": {"artifactLocation": {"uri": "a.c", "uriBaseId": "NOWHERE"}, "region": {"startLine": 4, "startColumn": 2}}}],
            "relatedLocations": [
              {"physicalLocation": {"artifactLocation": {"uri": "b.c"}, "region": {"startLine": 5}}}]},
          {"ruleId": "R2", "locations": [
              {"physicalLocation": {"artifactLocation": {"uri": "a.c"}, "region": {"startLine": 4}}}],
            "relatedLocations": [
              {"physicalLocation": {"artifactLocation": {"uri": "b.c"}, "region": {"startLine": 5}}}]},
          {"ruleId": "without-a-place", "message": {"text": "m"}}
        ]}]}"#;
    assert_eq!(
        read_text(sarif),
        "R0 a.c:3 = \"/my project/src/list.c\":9@a, bank::close@b, a.c:3@a\n\
         data-race a.c:4:2 = {b.c:5, a.c:4}\n\
         R2 a.c:4 = b.c:5, a.c:4\n"
    );
}

/// Frames as they come from terminals that break lines, from build servers, and from programs without line numbers.
#[test]
fn frames_are_read_in_many_forms() {
    let wrapped = "Thread 2 (Thread 0x7f (LWP 2)):\n\
        #0  0x00007f in ___pthread_mutex_lock (mutex=0x1) at ./nptl/pthread_mutex_lock.c:93\n\
        #1  0x000056 in take (first=0x564633f9e0a0 <left>,\n    second=0x5646 <right>, note=\") at x.c:1\")\n    at src/take.c:10\n\
        #2  forth (pause=<optimized out>,\n    count=2) at src/take.c:16\n\
        #3  0x00007f in start_thread () from /lib/x86_64-linux-gnu/libc.so.6\n";
    assert_eq!(read_text(wrapped), "stack trace take.c:10 = forth > src/take.c:10\n");
    let plain = "#0  0x00007ffff7e5e1f5 in raise () from /lib/libc.so.6\n#1  0x0000555555555090 in worker ()\n#2  0x0001 in ?? ()\n";
    assert_eq!(read_text(plain), "stack trace worker = worker\n");
    let server = "2024-05-01T12:00:00.0000000Z \u{1b}[1m\u{1b}[31mWARNING: ThreadSanitizer: data race (pid=1)\u{1b}[1m\u{1b}[0m\n\
        2024-05-01T12:00:00.0000000Z   Write of size 4 at 0x1 by thread T2:\n\
        2024-05-01T12:00:00.0000000Z     #0 put <null> (queue+0x1)\n\
        2024-05-01T12:00:00.0000000Z   Previous read of size 4 at 0x1 by thread T1:\n\
        2024-05-01T12:00:00.0000000Z     [failed to restore the stack]\n";
    assert_eq!(read_text(server), "data race put = put\n");
    let panic = "thread 'main' panicked at 'index out of bounds: it''s', src/main.rs:7:3\nnote: run with";
    assert_eq!(read_text(panic), "panic main.rs:7 = src/main.rs:7@0\n");
    let double = "==7==ERROR: AddressSanitizer: attempting double-free on 0x602 in thread T1:\n    #0 0x1 in free (/lib/a.so+0x2)\n    #1 0x2 in close /p q/a.c:5:3\nfreed by thread T0 here:\n    #0 0x1 in __interceptor_free (/a+0x1)\n    #1 0x2 in main /p q/a.c:9:1\n";
    assert_eq!(read_text(double), "double-free a.c:5 = \"/p q/a.c\":9@0, \"/p q/a.c\":5@a\n");
}

#[test]
fn a_text_without_reports_is_refused() {
    let nothing = "there is no stack trace, report or warning with a place in the user's code";
    for text in
        ["", "hello", "1: first\n2: second\n", "#0 \n#\n", "{\"a\": 1}", "[]", "at x.c:5\n", "SUMMARY: x"]
    {
        assert_eq!(read_text(text), nothing, "{text}");
    }
    assert_eq!(read_text("[{]"), "it is not JSON as it should be");
}

/// Protects the lines that the captured warnings name: the program must not change without them.
#[test]
fn the_warnings_are_about_the_program_as_it_is() {
    let program = include_str!("programs/jobs.c");
    let line = |number: usize| program.lines().nth(number - 1).expect("the program is longer").trim();
    assert_eq!(line(46), "job->done = 1;");
    assert_eq!(line(56), "limit->jobs++;");
}

/// The captured reports, all of them.
fn captured() -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports");
    let files = std::fs::read_dir(directory).expect("there are reports");
    files.map(|file| std::fs::read(file.expect("a file").path()).expect("it can be read")).collect()
}

/// Whatever was read can be written and read again, and is a sequence that the grammar allows.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(warnings) = warning::read(bytes) else { return Ok(()) };
    let ids: BTreeSet<&str> = warnings.iter().map(|warning| warning.id.as_str()).collect();
    prop_assert_eq!(ids.len(), warnings.len());
    for warning in &warnings {
        prop_assert_eq!(warning.sequence.to_string().parse(), Ok(warning.sequence.clone()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_reports_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes)?;
    }

    /// Lines of different reports, in any order.
    #[test]
    fn lines_of_reports_in_any_order_are_read(picks in vec((any::<Index>(), any::<Index>()), 0..40)) {
        let texts: Vec<String> =
            captured().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
        let mut mixed = String::new();
        for (file, line) in picks {
            let lines: Vec<&str> = texts[file.index(texts.len())].lines().collect();
            mixed.push_str(lines[line.index(lines.len())]);
            mixed.push('\n');
        }
        check(mixed.as_bytes())?;
    }

    /// A report of which a part was replaced by something else.
    #[test]
    fn a_damaged_report_is_read_or_refused(
        file in any::<Index>(),
        at in any::<Index>(),
        length in 0..30usize,
        with in prop_oneof![any::<Vec<u8>>(), "[\"{}\\[\\]:, @#()>a-c0-9\n]{0,10}".prop_map(String::into_bytes)],
    ) {
        let files = captured();
        let mut bytes = files[file.index(files.len())].clone();
        let start = at.index(bytes.len());
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, with);
        check(&bytes)?;
    }
}
