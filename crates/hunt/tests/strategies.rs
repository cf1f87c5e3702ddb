//! Searches on small programs: what they visit is pinned, so that a change in a search cannot pass unseen.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use exhaust::exhaust;
use threadbare_executor::{Keep, Limits, Target, Worker, learn};
use threadbare_hunt::methods;
use threadbare_search::{Decision, Feedback, Search, Settings};
use threadbare_trace::Plan;

#[path = "../../executor/tests/support/exhaust.rs"]
mod exhaust;

/// A program of `tests/programs`, compiled and started, and the plan that knows what it shares.
struct Subject {
    worker: Worker,
    plan: Plan,
    _directory: tempfile::TempDir,
}

impl Subject {
    fn new(name: &str, argument: &str) -> Subject {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let program = directory.path().join("program");
        compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name), &program);
        let target = Target { program, arguments: vec![argument.into()], ..Target::default() };
        let mut worker = Worker::start(&target, &Limits::default()).expect("the program starts");
        let mut plan = Plan::default();
        learn(&mut worker, &mut plan).expect("the runs that learn");
        Subject { worker, plan, _directory: directory }
    }

    /// Everything that a strategy visits.
    fn visit(&mut self, name: &str, bound: u32) -> Vec<Visit> {
        self.visit_with(name, bound, None)
    }

    /// The same with snapshots.
    fn visit_with(&mut self, name: &str, bound: u32, snapshots: Option<Keep>) -> Vec<Visit> {
        let settings = Settings { bound, ..Settings::new(self.plan.clone()) };
        let mut strategy = (methods::by_name(name).expect("a strategy").make)(settings);
        let mut search = Search::new(&mut self.worker, strategy.as_mut()).with_snapshots(snapshots);
        let mut visited = Vec::new();
        while let Some((output, feedback)) = step(&mut search) {
            let picks: Vec<String> = feedback.picks().map(|thread| thread.to_string()).collect();
            visited.push(Visit { picks: picks.concat(), preemptions: preemptions(&feedback), output });
            assert!(visited.len() < 20_000, "{name} does not end");
        }
        visited
    }
}

/// A schedule: who was picked, decision by decision, and what was printed.
#[derive(Debug, PartialEq, Eq)]
struct Visit {
    picks: String,
    preemptions: u32,
    output: String,
}

/// Switches away from a thread that could have gone on.
fn preemptions(feedback: &Feedback) -> u32 {
    let interrupted = |pair: &&[Decision]| {
        pair[0].picked != pair[1].picked && pair[1].alternatives.contains(&pair[0].picked)
    };
    feedback.decisions.windows(2).filter(interrupted).count() as u32
}

fn compile(source: &PathBuf, program: &Path) {
    let mut command = Command::new("gcc");
    command.args(["-g", "-O0", "-fsanitize=thread", "-pthread"]).arg(source).arg("-o").arg(program);
    assert!(command.status().expect("the compiler can be started").success());
}

/// The next run of a search: what it printed, and what the strategy was told.
fn step(search: &mut Search<'_>) -> Option<(String, Feedback)> {
    let mut output = String::new();
    let answered = search.step(|run| output = run.output(100)).expect("a run")?;
    Some((output, answered.feedback))
}

fn outcomes(visited: &[Visit]) -> BTreeSet<&str> {
    visited.iter().map(|visit| visit.output.as_str()).collect()
}

/// Visits with bounds 0, 1 and 2, each schedule once, the smaller bound's first; gives how many there are.
fn count_by_bound(subject: &mut Subject, name: &str) -> [usize; 3] {
    let mut smaller: BTreeSet<String> = BTreeSet::new();
    [0, 1, 2].map(|bound| {
        let visited = subject.visit(name, bound);
        let schedules: BTreeSet<String> = visited.iter().map(|visit| visit.picks.clone()).collect();
        assert_eq!(schedules.len(), visited.len(), "{name} {bound}: a schedule was visited twice");
        assert!(smaller.is_subset(&schedules), "{name} {bound}: a smaller bound had more");
        smaller = schedules;
        visited.len()
    })
}

#[test]
fn preemption_bounds_visit_each_schedule_once() {
    let counts = |program, argument| count_by_bound(&mut Subject::new(program, argument), "preemption-bound");
    let programs = [("writes.c", "1"), ("writes.c", "2"), ("locked.c", "1")];
    assert_eq!(
        programs.map(|(program, argument)| counts(program, argument)),
        [[3, 16, 56], [3, 24, 125], [3, 24, 89]]
    );
}

/// The same, counted from outside: of all schedules there are, those with so many preemptions.
#[test]
fn preemption_bounds_leave_out_nothing() {
    let mut subject = Subject::new("writes.c", "1");
    let all = subject.visit("preemption-bound", u32::MAX);
    let within = |bound| all.iter().filter(|visit| visit.preemptions <= bound).count();
    assert_eq!([0, 1, 2].map(within), [3, 16, 56]);
}

#[test]
fn without_preemptions_threads_go_one_after_the_other() {
    let mut visited: Vec<String> = Subject::new("writes.c", "1")
        .visit("preemption-bound", 0)
        .into_iter()
        .map(|visit| visit.picks)
        .collect();
    visited.sort();
    assert_eq!(visited, ["00111102222000", "00111122220000", "00222211110000"]);
}

#[test]
fn delay_bounds_visit_each_schedule_once() {
    assert_eq!(count_by_bound(&mut Subject::new("writes.c", "1"), "delay-bound"), [1, 7, 26]);
}

#[test]
fn dfs_and_rank_see_what_an_exhaustive_search_sees() {
    for (program, argument) in [("writes.c", "1"), ("writes.c", "2"), ("locked.c", "2")] {
        let mut subject = Subject::new(program, argument);
        let mut all = BTreeSet::new();
        let (plan, worker) = (subject.plan.clone(), &mut subject.worker);
        let exhausted = exhaust(worker, &plan, 20_000, |run| {
            all.insert(run.output(100));
        });
        assert!(exhausted.expect("the search ends").complete);
        let all: BTreeSet<&str> = all.iter().map(String::as_str).collect();
        for name in ["dfs", "rank"] {
            assert_eq!(outcomes(&subject.visit(name, 0)), all, "{name} on {program} {argument}");
        }
    }
}

#[test]
fn snapshots_change_nothing() {
    let mut subject = Subject::new("locked.c", "2");
    let plain = subject.visit("rank", 0);
    let often = Keep { gap: Some(2), ..Keep::default() };
    assert_eq!(subject.visit_with("rank", 0, Some(often)), plain);
}

#[test]
fn a_seed_fixes_what_is_drawn() {
    for name in ["random", "pct", "pos", "surw"] {
        let mut subject = Subject::new("writes.c", "2");
        let mut draw = |seed| {
            let settings = Settings::new(Plan { seed, ..subject.plan.clone() });
            let mut strategy = (methods::by_name(name).expect("a strategy").make)(settings);
            let mut search = Search::new(&mut subject.worker, strategy.as_mut());
            let outputs = std::iter::from_fn(|| step(&mut search)).map(|(output, _)| output);
            let outputs: Vec<String> = outputs.take(40).collect();
            assert_eq!(outputs.len(), 40, "there is no end to samples");
            outputs
        };
        let first = draw(1);
        assert_eq!(first, draw(1), "{name}");
        assert_ne!(first, draw(2), "{name}");
        assert!(first.iter().collect::<BTreeSet<_>>().len() > 2, "{name} sees {first:?}");
    }
}
