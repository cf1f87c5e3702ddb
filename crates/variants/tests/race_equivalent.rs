//! Race-equivalent exploration of real programs: how few runs it takes, and that no race is lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use threadbare_executor::{Limits, Target, Worker};
use threadbare_search::reorder::History;
use threadbare_search::{Search, Settings, Strategy};
use threadbare_trace::{End, Plan};
use threadbare_variants::{RaceEquivalent, Reachability, races};

struct Subject {
    worker: Worker,
    _directory: tempfile::TempDir,
}

/// What an exploration came to.
struct Explored {
    runs: u64,
    classes: u64,
    races: BTreeSet<[u64; 2]>,
    /// Some run ended in a failure.
    failed: bool,
}

impl Subject {
    fn new(source: &Path, arguments: &[&str]) -> Subject {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let program = directory.path().join("program");
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O0", "-fsanitize=thread", "-pthread", "-Wno-tsan"])
            .arg(source)
            .arg("-o")
            .arg(&program);
        assert!(gcc.status().expect("the compiler can be started").success());
        let arguments = arguments.iter().map(Into::into).collect();
        let target = Target { program, arguments, ..Target::default() };
        let worker = Worker::start(&target, &Limits::default()).expect("the program starts");
        Subject { worker, _directory: directory }
    }

    /// One of `subjects/c`.
    fn named(name: &str, arguments: &[&str]) -> Subject {
        let subjects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../subjects/c");
        Subject::new(&subjects.join(name).with_extension("c"), arguments)
    }

    fn settings(&self, branches_only: bool) -> Settings {
        let program = Some(Arc::clone(self.worker.shared_program()));
        Settings { program, branches_only, ..Settings::new(Plan::default()) }
    }

    fn race_equivalent(&mut self, branches_only: bool) -> Explored {
        let mut strategy = RaceEquivalent::new(self.settings(branches_only));
        self.explore(&mut strategy)
    }

    fn explore(&mut self, strategy: &mut dyn Strategy) -> Explored {
        let (mut seen, mut failed) = (BTreeSet::new(), false);
        let mut search = Search::new(&mut self.worker, strategy);
        let mut trace = None;
        while let Some(answered) =
            search.step(|run| trace = Some(run.trace())).expect("the program can be run")
        {
            failed |= matches!(answered.feedback.ended, End::Failed { .. });
            let history = trace.take().map(|trace| History::new(trace).expect("the trace can be analysed"));
            seen.extend(history.iter().flat_map(races));
        }
        let figures = strategy.explored().expect("it tells classes apart");
        assert_eq!(strategy.dropped(), 0);
        let runs = figures.classes + figures.redundant + figures.blocked;
        Explored { runs, classes: figures.classes, races: seen, failed }
    }
}

/// The paper's Table V: 2, 0, 5, 2 and 58 test cases. Where there is only the first run, nothing was generated.
#[test]
fn the_papers_programs_take_no_more_test_cases() {
    let programs: [(&str, &[&str], u64); 5] =
        [("pool", &[], 2), ("telnet", &[], 1), ("netmap", &[], 5), ("jobo", &[], 2), ("derby", &["29"], 58)];
    for (name, arguments, most) in programs {
        let explored = Subject::named(name, arguments).race_equivalent(true);
        assert!(explored.runs <= most, "{name}: {} runs", explored.runs);
    }
}

/// Two orders of two threads decide whether there is a race with a third one.
#[test]
fn the_race_in_the_pool_takes_two_runs() {
    let mut subject = Subject::named("pool", &[]);
    let mut strategy = RaceEquivalent::new(subject.settings(false));
    let explored = subject.explore(&mut strategy);
    assert_eq!((explored.runs, explored.classes), (2, 2));
    assert!(strategy.races().iter().copied().eq(explored.races) && strategy.races().len() == 1);
}

/// Protects the search against losing what it is for. Whatever run of the exhaustive search shows a race, some run of this
/// one does.
#[test]
fn no_race_is_lost() {
    let subjects = [
        "pool",
        "netmap",
        "jobo",
        "derby",
        "variants_fig3",
        "variants_fig5",
        "variants_fig7",
        "variants_fig13",
        "twostage",
        "reorder",
        "wronglock",
        "airline",
        "shop",
        "linkedlist",
    ];
    for name in subjects {
        let mut subject = Subject::named(name, &[]);
        let all = subject.explore(&mut Reachability::new(Settings::new(Plan::default())));
        let found = subject.race_equivalent(false);
        let lost: Vec<_> = all.races.difference(&found.races).collect();
        assert!(lost.is_empty(), "{name}: {} of {} races were lost", lost.len(), all.races.len());
    }
}

/// The endless loops of the originals.
#[test]
fn an_endless_loop_has_finitely_many_test_cases() {
    let mut subject = Subject::named("netmap", &["0"]);
    let settings = subject.settings(false);
    let plan = Plan { max_events: 3000, ..settings.plan };
    let explored = subject.explore(&mut RaceEquivalent::new(Settings { plan, ..settings }));
    assert!(explored.runs < 20, "{} runs", explored.runs);
    assert!(explored.failed, "the notification that nobody waits for was missed");
}
