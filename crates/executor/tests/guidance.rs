//! Runs that are led through places in the code.

mod support;

use std::fs;
use std::sync::Arc;

use support::{Built, Subject};
use threadbare_trace::{
    Afterwards, Demand, End, Guidance, Plan, Policy, Preference, Watched, Waypoint, WhichThread,
};

/// The line of the program with this comment.
fn waypoint(subject: &Subject, comment: &str, thread: WhichThread, demand: Demand) -> Waypoint {
    let program = subject.worker.program();
    let files = program.source_files();
    let file = files.iter().find(|file| file.ends_with("/guided.c")).expect("the debug information names it");
    let text = fs::read_to_string(file).expect("the source can be read");
    let line = 1 + text.lines().position(|line| line.contains(comment)).expect("the comment is there");
    let calls = program.places_in_file(file).calls;
    Waypoint::new(calls[&(line as u32)].clone(), thread, demand)
}

/// The plain accesses of a line.
fn accesses(subject: &Subject, comment: &str) -> Vec<u64> {
    let Waypoint { points, .. } =
        waypoint(subject, &format!("/* {comment} */"), WhichThread::Any, Demand::Pass);
    let callee = |call: u64| subject.worker.program().site(call).map(|site| site.callee);
    let is_access = |call: &u64| {
        callee(*call).is_some_and(|name| name.starts_with("__tsan_read") || name.starts_with("__tsan_write"))
    };
    let found: Vec<u64> = points.into_iter().filter(is_access).collect();
    assert_eq!(found.len(), 2, "a read and a write");
    found
}

/// Who passes these lines, in a run that is led through them by nothing but the sequence.
fn passes(waypoints: &[(&str, WhichThread, Demand)]) -> Vec<String> {
    let built = Built::new("guided.c");
    let mut subject = built.scenario("");
    let waypoints: Arc<[Waypoint]> = waypoints
        .iter()
        .map(|(comment, thread, demand)| {
            waypoint(&subject, &format!("/* {comment} */"), thread.clone(), *demand)
        })
        .collect();
    let guidance =
        Guidance { seed: 0, waypoints, preference: Preference::None, afterwards: Afterwards::RunOn };
    let guided = |seed| Policy::Guided(Guidance { seed, ..guidance.clone() });
    subject.learn();
    // The access to memory of the thread's own is an event only because it is watched.
    let watched = accesses(&subject, "private");
    let watched = watched.into_iter().map(Watched::Access).collect();
    let mut plan = Plan { watched, ..subject.plan.clone() };
    let mut best = Vec::new();
    for seed in 0..50 {
        plan.policy = guided(seed);
        let run = subject.worker.run(&plan).expect("it runs");
        assert_eq!(*run.ended(), End::Finished);
        let ids = run.thread_ids();
        let passes: Vec<String> =
            run.passes().iter().map(|(thread, _)| ids[thread.index()].to_string()).collect();
        if passes.len() > best.len() {
            best = passes;
        }
    }
    best
}

#[test]
fn threads_pass_the_lines_in_order() {
    let any = WhichThread::Any;
    let second = WhichThread::Id("0.2".parse().expect("an id"));
    let passed = passes(&[
        ("shared", second.clone(), Demand::Pass),
        ("private", any.clone(), Demand::Pass),
        ("later", second, Demand::Pass),
    ]);
    assert_eq!((passed.len(), &*passed[0], &*passed[2]), (3, "0.2", "0.2"));
}

/// The same letter is the same thread, another letter is another.
#[test]
fn variables_stand_for_threads() {
    let [a, b] = [WhichThread::Variable(0), WhichThread::Variable(1)];
    let passed = passes(&[
        ("private", a.clone(), Demand::Pass),
        ("private", b.clone(), Demand::Pass),
        ("later", a, Demand::Pass),
        ("later", b, Demand::Pass),
    ]);
    assert_eq!(passed.len(), 4);
    assert!(passed[0] == passed[2] && passed[1] == passed[3] && passed[0] != passed[1], "{passed:?}");
}

/// Two threads stand before the same line at the same time, and a third passes another one while they do.
#[test]
fn threads_wait_for_each_other_where_they_arrive() {
    let passed = passes(&[
        ("private", WhichThread::Any, Demand::Arrive(0)),
        ("private", WhichThread::Any, Demand::Arrive(0)),
        ("private", WhichThread::Any, Demand::Arrive(0)),
        ("later", WhichThread::Any, Demand::Pass),
    ]);
    let three: std::collections::BTreeSet<&String> = passed[..3].iter().collect();
    assert_eq!((passed.len(), three.len()), (4, 3), "{passed:?}");
}

/// A place that nobody can come to in time is not passed, and the run ends all the same.
#[test]
fn what_cannot_be_passed_is_not() {
    let main = WhichThread::Id("0".parse().expect("an id"));
    assert_eq!(passes(&[("later", WhichThread::Any, Demand::Pass), ("shared", main, Demand::Pass)]).len(), 1);
}
