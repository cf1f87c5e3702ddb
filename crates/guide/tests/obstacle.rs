//! The branch that keeps a run from a location, found in real programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use threadbare_executor::{Limits, Target, Worker, learn};
use threadbare_guide::{Diagnosis, Journey, Obstacle, Remedy, Sequence, diagnose, resolve};
use threadbare_trace::{
    Demand, Event, EventIndex, EventKind, Plan, ThreadIndex, Turns, Waypoint, WhichThread,
};

fn compile(directory: &Path, source: &str) -> PathBuf {
    let (file, program) = (directory.join("program.c"), directory.join("program"));
    fs::write(&file, source).expect("the source can be written");
    let flags = ["-g", "-O0", "-fsanitize=thread", "-pthread"];
    let done = Command::new("gcc").args(flags).arg(&file).arg("-o").arg(&program).output();
    let done = done.expect("gcc can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// What keeps a run of the simplest schedule from the line with this comment.
fn diagnosis_of(source: &str, comment: &str) -> Diagnosis {
    diagnosis_after(source, comment, |_| false)
}

/// The same in a run that has passed such events before.
fn diagnosis_after(source: &str, comment: &str, is_pass: impl Fn(&Event) -> bool) -> Diagnosis {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let program = compile(directory.path(), source);
    let target = Target { program, ..Target::default() };
    let mut worker = Worker::start(&target, &Limits::default()).expect("it starts");
    let mut plan = Plan { decisions: true, ..Plan::default() };
    learn(&mut worker, &mut plan).expect("it runs");
    let line = 1 + source.lines().position(|line| line.contains(comment)).expect("the comment is there");
    let sequence: Sequence = format!("program.c:{line}").parse().expect("a sequence");
    let resolved = resolve(worker.program(), &sequence).expect("the line does something");
    let run = worker.run(&plan).expect("it runs");
    let (picks, trace) = (run.picks(), run.trace());
    let passes = trace.indexed_events().filter(|(_, event)| is_pass(event));
    let passes: Vec<(ThreadIndex, EventIndex)> = passes.map(|(index, event)| (event.thread, index)).collect();
    let passed = |(_, index): &(ThreadIndex, EventIndex)| {
        let place = trace.location(trace.events[index.index()].location).address;
        Waypoint::new(vec![place], WhichThread::Any, Demand::Pass)
    };
    let waypoints: Vec<Waypoint> = passes.iter().map(passed).chain(resolved.waypoints).collect();
    let journey = Journey { trace: &trace, waypoints: &waypoints, passes: &passes, picks: &picks };
    diagnose(worker.program(), &journey)
}

fn obstacle_of(source: &str, comment: &str) -> Option<Obstacle> {
    diagnosis_of(source, comment).obstacle
}

/// The threads that pass the places of a remedy; `any` where it does not matter which.
fn threads(remedy: &Remedy) -> Vec<String> {
    let thread = |waypoint: &Waypoint| match &waypoint.thread {
        WhichThread::Id(id) => id.to_string(),
        _ => "any".to_owned(),
    };
    remedy.through.iter().map(thread).collect()
}

/// The thread that is put off, and the waypoints that it stays for.
fn put_off(remedy: &Remedy) -> Option<(String, std::ops::Range<usize>)> {
    let put_off = remedy.put_off.as_ref()?;
    Some((put_off.kept_back.thread.to_string(), put_off.until.clone()))
}

const HEAD: &str =
    "#include <pthread.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int ready, data;\n";
const MAIN: &str = "
static void *producer(void *u) {
    pthread_mutex_lock(&m);
    ready = 5;
    pthread_mutex_unlock(&m);
    return u;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, consumer, 0);
    pthread_create(&b, 0, producer, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
";

/// The variable that the one deciding read is of, and its value.
fn decided_by(found: &Obstacle) -> (&str, u64) {
    assert_eq!(found.reads.len(), 1, "{found:?}");
    (&found.reads[0].variable, found.reads[0].value)
}

#[test]
fn a_branch_in_a_loop() {
    let consumer = "static void *consumer(void *u) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&m);
        int r = ready;
        pthread_mutex_unlock(&m);
        if (r == 5) {
            data = data + 1; /* here */
        }
    }
    return u;
}";
    let found = obstacle_of(&[HEAD, consumer, MAIN].concat(), "/* here */").expect("a branch");
    assert_eq!(decided_by(&found), ("ready", 0));
    assert_eq!(found.branch.frames[0].line, 9);
}

/// What comes after the branch depends on it, since the assertion may end the program: that it was come to says nothing.
#[test]
fn a_branch_before_an_assertion() {
    let consumer = "#include <assert.h>
static void *consumer(void *u) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&m);
        int r = ready;
        if (r == 5) {
            data = data + 1; /* here */
            assert(ready == 5);
        }
        pthread_mutex_unlock(&m);
    }
    return u;
}";
    let found = obstacle_of(&[HEAD, consumer, MAIN].concat(), "/* here */").expect("a branch");
    assert_eq!(decided_by(&found), ("ready", 0));
}

/// The place is in a function that nobody enters: the branch is in its caller.
#[test]
fn a_branch_before_a_call() {
    let consumer = "static void use(void) {
    data = 1; /* here */
}
static void *consumer(void *u) {
    pthread_mutex_lock(&m);
    int r = ready;
    pthread_mutex_unlock(&m);
    if (r) {
        use();
    }
    return u;
}";
    let found = obstacle_of(&[HEAD, consumer, MAIN].concat(), "/* here */").expect("a branch");
    assert_eq!(decided_by(&found), ("ready", 0));
    assert_eq!(found.branch.frames[0].line, 11);
}

/// The consumer came too early for what the producer stores. So it stays before its lock until the producer has stored,
/// and reads then. What the run did before is done again.
#[test]
fn a_store_that_could_come_first() {
    let consumer = "static void *consumer(void *u) {
    pthread_mutex_lock(&m);
    int r = ready;
    pthread_mutex_unlock(&m);
    if (r == 5) {
        data = 1; /* here */
    }
    return u;
}";
    let source = [HEAD, consumer, MAIN].concat();
    let found = diagnosis_of(&source, "/* here */");
    let [remedy] = &found.remedies[..] else { panic!("{found:?}") };
    assert_eq!(threads(remedy), ["0.2", "0.1"]);
    assert_eq!((remedy.passed, put_off(remedy)), (0, Some(("0.1".to_owned(), 0..1))));
    assert!(Turns::total(&remedy.beginning) > 0, "{remedy:?}");
    // If the store is a waypoint that was passed after the read, the read only has to come after it.
    let found =
        diagnosis_after(&source, "/* here */", |event| event.kind == EventKind::Write && event.value == 5);
    assert_eq!(threads(&found.remedies[0]), ["0.1"]);
    assert_eq!((found.remedies[0].passed, put_off(&found.remedies[0])), (1, Some(("0.1".to_owned(), 0..1))));
}

/// The producer was too early for a consumer that is to find nothing. So it stays before its lock until the consumer has
/// read.
#[test]
fn a_store_that_could_come_later() {
    let consumer = "static void *consumer(void *u) {
    pthread_mutex_lock(&m);
    int r = ready;
    pthread_mutex_unlock(&m);
    if (r == 0) {
        data = 1; /* here */
    }
    return u;
}";
    let producer_first = MAIN.replace(
        "consumer, 0);\n    pthread_create(&b, 0, producer",
        "producer, 0);\n    pthread_create(&b, 0, consumer",
    );
    let found = diagnosis_of(&[HEAD, consumer, &producer_first].concat(), "/* here */");
    let [remedy] = &found.remedies[..] else { panic!("{found:?}") };
    assert_eq!((threads(remedy), put_off(remedy)), (vec!["0.2".to_owned()], Some(("0.1".to_owned(), 0..1))));
}

/// Of several stores, the one comes first that makes the branch go the other way.
#[test]
fn the_store_that_decides_comes_first() {
    let consumer = "static void *consumer(void *u) {
    if (ready == 7)
        data = 1; /* here */
    return u;
}";
    let producer = "ready = 5;\n    ready = 6;\n    ready = 7;\n    ready = 8;";
    let source = [HEAD, consumer, &MAIN.replace("ready = 5;", producer)].concat();
    let found = diagnosis_of(&source, "/* here */");
    assert_eq!(threads(&found.remedies[0]), ["0.2", "0.2", "0.2", "0.1"], "{found:?}");
}

/// A thread went past the place before it was its turn: it stays before it.
#[test]
fn a_thread_that_came_too_early() {
    let consumer = "static void *consumer(void *u) {
    pthread_mutex_lock(&m);
    ready++; /* here */
    pthread_mutex_unlock(&m);
    return u;
}";
    let source = [HEAD, consumer, MAIN].concat();
    let found =
        diagnosis_after(&source, "/* here */", |event| event.kind == EventKind::Write && event.value == 5);
    assert_eq!(put_off(&found.remedies[0]), Some(("0.1".to_owned(), 0..1)), "{found:?}");
}
