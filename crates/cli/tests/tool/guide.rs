//! Programs that are driven through given locations.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::guided::{Said, Subject};
use crate::support::{compile, json, path, root, run, tool, write};

/// Two threads that count without a lock, and then take two locks in different orders.
const COUNT: &str = "#include <assert.h>
#include <pthread.h>
static int count;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void bump(void) {
    int seen = count; /* read */
    count = seen + 1; /* write */
}
static void *one(void *u) {
    bump();
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b); /* second of one */
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return u;
}
static void *two(void *u) {
    bump();
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a); /* second of two */
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return u;
}
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, one, 0);
    pthread_create(&y, 0, two, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    assert(count == 2);
    return 0;
}
";

/// Lines behind branches that other threads decide.
const FLAGS: &str = "#include <pthread.h>
#include <stdatomic.h>
static atomic_int a, b, c;
static int passed, never;
static void *first(void *u) { atomic_store(&a, 1); atomic_store(&a, 0); return u; }
static void *second(void *u) {
    if (atomic_load(&a))
        atomic_store(&b, 1); /* second */
    return u;
}
static void *third(void *u) {
    if (atomic_load(&b) && !atomic_load(&a))
        atomic_store(&c, 1); /* third */
    return u;
}
static void *fourth(void *u) {
    if (atomic_load(&c) == 7)
        never = 1; /* never */
    for (int i = 0; i < 20; i++) atomic_fetch_add(&c, 0);
    return u;
}
static void *fifth(void *u) {
    if (atomic_load(&b) == 1)
        passed = 1; /* fifth */
    return u;
}
int main(void) {
    void *(*routines[])(void *) = {fifth, fourth, third, second, first};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], 0);
    return passed + never < 0;
}
";

fn reports() -> PathBuf {
    root().join("crates/guide/tests")
}

/// A sequence with threads leads to the failure, and its clip shows it again.
#[test]
fn locations_in_named_threads_lead_to_the_failure() {
    let subject = Subject::new(COUNT);
    let (read, write) = (subject.at("read"), subject.at("write"));
    let said = subject.through(&format!("{read}@a, {write}@b, {write}@a"));
    let guided = said.guided();
    assert_eq!((&guided["verdict"], said.code), (&"real".into(), 1), "{guided}");
    assert_eq!(guided["passed"], 3);
    assert_eq!(guided["waypoints"][0]["thread"], guided["waypoints"][2]["thread"]);
    assert_ne!(guided["waypoints"][0]["thread"], guided["waypoints"][1]["thread"]);
    let finding = said.of_type("finding").next().expect("the failure is shown");
    assert_eq!(finding["clip"], guided["clip"]);
    assert_eq!(subject.replay(&guided["clip"])["reproduced"], 1);
}

#[test]
fn a_line_between_two_others() {
    let subject = Subject::new(COUNT);
    let (read, write) = (subject.at("read"), subject.at("write"));
    let said = subject.through(&format!("bump between {read} and {write}"));
    assert_eq!(said.verdicts(), ["real"]);
}

#[test]
fn two_threads_at_their_locations_at_the_same_time() {
    let subject = Subject::new(COUNT);
    let said =
        subject.through(&format!("{{{}, {}}}", subject.at("second of one"), subject.at("second of two")));
    assert_eq!((said.verdicts(), said.code), (vec!["real"], 1));
    let kinds: Vec<&Value> = said.of_type("finding").map(|finding| &finding["kind"]).collect();
    assert!(kinds.contains(&&"deadlock".into()), "{kinds:?}");
}

/// What was reached without a failure has a clip too.
#[test]
fn a_sequence_that_does_no_harm_is_reached() {
    let subject = Subject::new(FLAGS);
    let said = subject.through(&format!("{}, {}", subject.at("second"), subject.at("third")));
    let guided = said.guided();
    assert_eq!((&guided["verdict"], said.code), (&"reached".into(), 0), "{guided}");
    let replayed = subject.replay(&guided["clip"]);
    assert_eq!((&replayed["runs"], &replayed["diverged_at"]), (&1.into(), &Value::Null));
}

/// Protects the search from states that only a run at random has come to: with many threads, it was over too early.
#[test]
fn a_sequence_in_a_program_with_eight_threads() {
    let idle = "static void *idle(void *u) { for (int i = 0; i < 20; i++) atomic_fetch_add(&c, 0); return u; }\nint main";
    let text =
        FLAGS.replace("int main", idle).replace("first};", "first, idle, idle, idle};").replace('5', "8");
    let subject = Subject::new(&text);
    let said = subject.guide(&["--through", &format!("{}, {}", subject.at("second"), subject.at("third"))]);
    assert_eq!(said.verdicts(), ["reached"]);
}

/// The run that came furthest stood before a branch; the store that it depends on is added, and the one before that too.
#[test]
fn a_store_that_a_branch_depends_on_is_added() {
    let subject = Subject::new(FLAGS);
    let said = subject.through(&subject.at("fifth"));
    let guided = said.guided();
    assert_eq!(guided["verdict"], "reached", "{guided}");
}

/// Tickets are served in their order. To wait for its turn, a thread has to come before the one that has the turn, which
/// is nearer to that line at first.
const TICKETS: &str = "#include <pthread.h>
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int tickets, next, done;
static void *serve(void *u) {
    pthread_mutex_lock(&queue);
    int mine = tickets++;
    pthread_mutex_unlock(&queue);
    for (int i = 0; i < 30; i++) {
        pthread_mutex_lock(&queue);
        done++;
        pthread_mutex_unlock(&queue);
    }
    pthread_mutex_lock(&lock);
    while (next < mine)
        pthread_cond_wait(&turn, &lock); /* waits */
    next++;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&lock);
    return u;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, serve, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";

/// A thread waits because another has not stored yet. So that store is put off, with the lock that it is made under.
#[test]
fn a_wait_is_come_to_by_putting_a_store_off() {
    let subject = Subject::new(TICKETS);
    let said =
        subject.guide(&["--through", &format!("{0}@a, {0}@b", subject.at("waits")), "--budget", "400runs"]);
    assert_eq!(said.guided()["verdict"], "reached", "{}", said.guided());
}

#[test]
fn the_branch_in_the_way_is_named_with_the_value_it_had() {
    let subject = Subject::new(FLAGS);
    let said = subject.through(&subject.at("never"));
    let guided = said.guided();
    assert_eq!((&guided["verdict"], said.code), (&"not shown".into(), 0), "{guided}");
    let read = &guided["obstacle"]["reads"][0];
    assert_eq!(read["variable"], "c", "{guided}");
    let (stdout, _, _) = run(tool(&["guide", path(&subject.source), "--budget", "50runs", "--through"])
        .arg(subject.at("never"))
        .args(["--out", path(&subject.path("out"))]));
    assert!(stdout.contains("the branch at program.c:17 was in the way; it depends on c, "), "{stdout}");
}

/// Protects functions that begin with an instruction that names a variable: such code is moved to stop there.
#[test]
fn a_function_of_optimised_code_can_be_passed() {
    let subject = Subject::new(COUNT);
    for level in ["-O0", "-O2"] {
        let said = subject.guide(&["--through", "one, two", "--budget", "100runs", "--cc-arg", level]);
        assert_ne!(said.guided()["verdict"], "not shown", "{level} {}", said.stderr);
    }
}

/// Recorded reports of gcc, clang and semgrep on a program with one true and one false warning: what is true is shown,
/// and a failure elsewhere does not make the other one true.
#[test]
fn the_warnings_of_static_analysers() {
    let text = std::fs::read_to_string(reports().join("programs/jobs.c")).expect("the program is there");
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "jobs.c", &text);
    let answers = |report: &str| {
        let report = reports().join("reports").join(report);
        let mut command = tool(&["guide", path(&source), "--json", "--budget", "200runs"]);
        command.args(["--from", path(&report), "--out", path(&directory.path().join("out"))]);
        let (stdout, stderr, code) = run(&mut command);
        (Said { lines: json(&stdout), stderr, code }, report)
    };
    for (report, verdicts) in [
        ("gcc_analyzer.json", ["real", "not shown"]),
        ("clang.sarif", ["real", "not shown"]),
        ("semgrep.sarif", ["real", "reached"]),
    ] {
        let (said, _) = answers(report);
        assert_eq!(said.verdicts(), verdicts, "{report}");
        assert_eq!(said.code, 1);
        let guided: Vec<&Value> = said.of_type("guided").collect();
        assert!(guided[0]["name"].as_str().is_some_and(|name| name.contains("jobs.c:46")), "{}", guided[0]);
        assert!(guided[0]["clip"].is_string());
    }
    let (said, _) = answers("gcc_analyzer.json");
    let obstacle = &said.of_type("guided").last().expect("two answers")["obstacle"];
    assert_eq!(obstacle["reads"][0]["variable"], "level", "{obstacle}");
    assert_eq!(obstacle["reads"][0]["value"], 1);
}

/// A clean analysis is no mistake, and what is no report at all is one.
#[test]
fn reports_without_warnings() {
    let subject = Subject::new(COUNT);
    let clean = r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": []}]}"#;
    let clean = write(subject.directory.path(), "clean.sarif", clean);
    let said = subject.guide(&["--from", path(&clean)]);
    assert_eq!((said.code, said.lines.len()), (0, 0), "{}", said.stderr);
    assert!(said.stderr.contains("has no warnings"), "{}", said.stderr);
    let said = subject.guide(&["--from", path(&subject.source)]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("no stack trace, report or warning"), "{}", said.stderr);
}

/// ThreadSanitizer's report of a race, as it prints it.
#[test]
fn a_report_of_a_race() {
    let subject = Subject::new(COUNT);
    let report = "==================
WARNING: ThreadSanitizer: data race (pid=6201)
  Write of size 4 at 0x55d0c8f4c0a0 by thread T2:
    #0 bump /builds/7/program.c:7 (program+0x1313)
    #1 two /builds/7/program.c:18 (program+0x1388)

  Previous read of size 4 at 0x55d0c8f4c0a0 by thread T1:
    #0 bump /builds/7/program.c:6 (program+0x12f6)
    #1 one /builds/7/program.c:10 (program+0x1337)

SUMMARY: ThreadSanitizer: data race /builds/7/program.c:7 in bump
==================
";
    let report = write(subject.directory.path(), "report.txt", report);
    let said = subject.guide(&["--from", path(&report), "--budget", "200runs"]);
    assert_eq!((said.verdicts(), said.code), (vec!["real"], 1), "{:?}", said.lines);
}

/// Sequences that are kept as tests: the exit code says whether all is as it was.
#[test]
fn a_file_of_sequences_is_a_regression_test() {
    let subject = Subject::new(FLAGS);
    let (second, third, never) = (subject.at("second"), subject.at("third"), subject.at("never"));
    let suite = |expected: &str| {
        format!(
            "threadbare sequences 1\n\nsequence in order\nexpect {expected}\nthrough {second}, {third}\n\n\
             # Nobody stores 7.\nsequence never\nexpect not shown\nthrough {never}\n"
        )
    };
    let good = write(subject.directory.path(), "good.txt", &suite("reached"));
    let said = subject.guide(&["--sequences", path(&good), "--budget", "200runs"]);
    assert_eq!((said.verdicts(), said.code), (vec!["reached", "not shown"], 0), "{}", said.stderr);
    let bad = write(subject.directory.path(), "bad.txt", &suite("real"));
    let said = subject.guide(&["--sequences", path(&bad), "--budget", "200runs"]);
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("in order: expected real, and it is reached"), "{}", said.stderr);
    let wrong =
        write(subject.directory.path(), "wrong.txt", "threadbare sequences 1\nsequence x\nexpect all\n");
    let said = subject.guide(&["--sequences", path(&wrong)]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("line 3"), "{}", said.stderr);
}

/// What cannot be found is answered with what could have been meant.
#[test]
fn locations_that_are_not_there() {
    let subject = Subject::new(COUNT);
    for (sequence, words) in [
        ("program.c:3", "has no code"),
        ("program.c:3", "the nearest lines that do something are program.c:"),
        ("programm.c:6", "there is program.c"),
        ("bumb", "no instrumented function is called bumb"),
        ("program.c", "expected a line after the file"),
        ("program.c:6,", "expected a location"),
        ("{program.c:6}", "two locations or more"),
        ("program.c:6@", "a thread after `@`"),
    ] {
        let said = subject.through(sequence);
        assert_eq!(said.code, 2, "{sequence}");
        assert!(said.stderr.contains(words), "{sequence}: {}", said.stderr);
    }
    let said = subject.guide(&[]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("--through"), "{}", said.stderr);
    let said = subject.through("one > bump");
    assert!(said.stderr.contains("what stands before > is not looked at"), "{}", said.stderr);
}

#[test]
fn a_program_without_debug_information() {
    let subject = Subject::new(COUNT);
    let program = subject.path("program");
    compile(&subject.source, &program, &["-O1", "-fsanitize=thread"]);
    let guide = |sequence: &str| {
        let out = subject.path("out");
        run(&mut tool(&[
            "guide",
            path(&program),
            "--through",
            sequence,
            "--out",
            path(&out),
            "--budget=50runs",
        ]))
    };
    let (_, stderr, code) = guide("program.c:6");
    assert_eq!(code, 2);
    assert!(stderr.contains("no debug information") && stderr.contains("-g"), "{stderr}");
    // A function is found by its symbol.
    let (stdout, stderr, _) = guide("one, two");
    assert!(!stdout.contains("not shown"), "{stdout} {stderr}");
}

/// Draws a number once a thread runs, and reads another from its arguments or its input.
const OUTSIDE: &str = "#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
static int given, drawn;
static void *draw(void *u) {
    unsigned char byte = 0;
    if (getrandom(&byte, 1, 0) == 1 && byte % 8 == 5)
        drawn = 1; /* drawn */
    if (given == 5)
        drawn = 2; /* given */
    return u;
}
int main(int count, char **arguments) {
    if (count > 1)
        given = atoi(arguments[1]);
    else if (scanf(\"%d\", &given) != 1)
        given = 0;
    pthread_t thread;
    pthread_create(&thread, 0, draw, 0);
    pthread_join(thread, 0);
    return 0;
}
";

/// What a program reads from outside is a further choice. The answer names it, and the clip has it.
#[test]
fn other_randomness_arguments_and_input() {
    let subject = Subject::new(OUTSIDE);
    let (drawn, given) = (subject.at("drawn"), subject.at("given"));
    let input = write(subject.directory.path(), "five.txt", "5\n");
    let tried: [(&str, &[&str], &str); 3] = [
        (&drawn, &["--vary", "40"], "randomness "),
        (&given, &["--or-arguments", "3", "--or-arguments", "5 x"], "the arguments `5 x`"),
        (&given, &["--or-stdin", path(&input)], "--stdin "),
    ];
    for (location, arguments, variant) in tried {
        let said = subject.guide(&[&["--through", location, "--budget", "400runs"], arguments].concat());
        let guided = said.guided();
        assert_eq!(guided["verdict"], "reached", "{guided} {}", said.stderr);
        assert!(guided["variant"].as_str().is_some_and(|name| name.starts_with(variant)), "{guided}");
        let replayed = subject.replay(&guided["clip"]);
        assert_eq!((&replayed["runs"], &replayed["diverged_at"]), (&1.into(), &Value::Null), "{variant}");
        let without = subject.guide(&["--through", location, "--budget", "20runs"]);
        assert_eq!(without.verdicts(), ["not shown"], "{variant}");
    }
}

/// A file name that several files have, told apart by the path or meant together by a pattern.
#[test]
fn a_file_name_that_is_there_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let part = |name: &str| {
        let inner = directory.path().join(name);
        std::fs::create_dir(&inner).expect("a directory");
        let text =
            format!("extern int shared;\nvoid {name}(void);\nvoid {name}(void) {{\n    shared++;\n}}\n");
        write(&inner, "part.c", &text)
    };
    let parts = [part("left"), part("right")];
    let main = "#include <pthread.h>\nint shared;\nvoid left(void), right(void);\n\
        static void *run(void *u) { left(); return u; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); right(); pthread_join(t, 0); return 0; }\n";
    let main = write(directory.path(), "main.c", main);
    let program = directory.path().join("program");
    compile(&main, &program, &["-g", "-fsanitize=thread", path(&parts[0]), path(&parts[1])]);
    let guide = |sequence: &str| {
        let out: &Path = &directory.path().join("out");
        run(&mut tool(&[
            "guide",
            path(&program),
            "--through",
            sequence,
            "--out",
            path(out),
            "--budget=50runs",
        ]))
    };
    let (_, stderr, code) = guide("part.c:4");
    assert_eq!(code, 2);
    assert!(stderr.contains("is in 2 files") && stderr.contains("left/part.c"), "{stderr}");
    for sequence in ["left/part.c:4, right/part.c:4", "*/part.c:4, part.c:4@a, */part.c:4@b"] {
        let (stdout, stderr, code) = guide(sequence);
        let is_ambiguous = sequence.contains("@a");
        assert_eq!(code == 2, is_ambiguous, "{sequence} {stdout} {stderr}");
    }
    let (stdout, stderr, _) = guide("*/part.c:4@a, */part.c:4@b");
    assert!(stdout.starts_with("reached"), "{stdout} {stderr}");
}
