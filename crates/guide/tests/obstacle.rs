//! The branch that keeps a run from a location, found in real programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use threadbare_executor::{Limits, Target, Worker, learn};
use threadbare_guide::{Obstacle, Sequence, obstacle, resolve};
use threadbare_trace::{Event, EventIndex, EventKind, Plan};

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
fn obstacle_of(source: &str, comment: &str) -> Option<Obstacle> {
    obstacle_after(source, comment, |_| false)
}

/// The same in a run that has passed such events before.
fn obstacle_after(source: &str, comment: &str, is_pass: impl Fn(&Event) -> bool) -> Option<Obstacle> {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let program = compile(directory.path(), source);
    let target = Target { program, ..Target::default() };
    let mut worker = Worker::start(&target, &Limits::default()).expect("it starts");
    let mut plan = Plan::default();
    learn(&mut worker, &mut plan).expect("it runs");
    let line = 1 + source.lines().position(|line| line.contains(comment)).expect("the comment is there");
    let sequence: Sequence = format!("program.c:{line}").parse().expect("a sequence");
    let resolved = resolve(worker.program(), &sequence).expect("the line does something");
    let trace = worker.run(&plan).expect("it runs").trace();
    let passes: Vec<EventIndex> =
        trace.indexed_events().filter(|(_, event)| is_pass(event)).map(|(index, _)| index).collect();
    obstacle(worker.program(), &trace, &resolved.waypoints[0], &passes)
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

/// The variable that the one deciding read is of, its value, and how many stores could have changed it.
fn decided_by(found: &Obstacle) -> (&str, u64, usize) {
    assert_eq!(found.reads.len(), 1, "{found:?}");
    (&found.reads[0].variable, found.reads[0].value, found.stores.len())
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
    assert_eq!(decided_by(&found), ("ready", 0, 1));
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
    assert_eq!(decided_by(&found), ("ready", 0, 1));
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
    assert_eq!(decided_by(&found), ("ready", 0, 1));
    assert_eq!(found.branch.frames[0].line, 11);
}

/// The consumer came too early for what the producer stores. It could stay before its lock until that is done.
#[test]
fn a_read_that_could_come_later() {
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
    let is_store = |event: &Event| event.kind == EventKind::Write && event.value == 5;
    let found = obstacle_after(&source, "/* here */", is_store).expect("a branch");
    let [put_off] = &found.put_off[..] else { panic!("{found:?}") };
    assert_eq!((put_off.kept_back.thread.to_string(), put_off.until.clone()), ("0.1".to_owned(), 0..1));
}

/// The producer was too early for a consumer that is to find nothing. It could stay before its lock.
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
    let found = obstacle_of(&[HEAD, consumer, &producer_first].concat(), "/* here */").expect("a branch");
    let [put_off] = &found.put_off[..] else { panic!("{found:?}") };
    assert_eq!((put_off.kept_back.thread.to_string(), put_off.until.clone()), ("0.1".to_owned(), 0..1));
}
