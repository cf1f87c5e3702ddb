//! Test cases of the three criteria that tell interleavings apart.

mod figure;
mod subjects;
mod table;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use threadbare_executor::Worker;
use threadbare_search::reorder::History;
use threadbare_search::{Search, Settings, Strategy};
use threadbare_trace::{End, Plan};
use threadbare_variants::{Race, RaceEquivalent, Reachability, ThreadPairs, races};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Args)]
pub struct Options {
    /// Runs of each exploration, at most
    #[arg(long, default_value_t = 20_000)]
    runs: u64,
    /// Where the figure goes
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
    /// Only compare the criteria on these subjects
    names: Vec<String>,
}

/// The paper's Table V and Figure 16, then every subject that is small enough to exhaust.
pub fn run(options: &Options) -> Result<bool> {
    let mut good = true;
    if options.names.is_empty() {
        good &= table::run(options.runs)?;
        figure::run(options.runs, &options.out)?;
    }
    good &= subjects::run(&options.names, options.runs)?;
    Ok(good)
}

/// Which interleavings are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Criterion {
    Reachability,
    ThreadPairs,
    RaceEquivalence { branches_only: bool },
}

/// What an exploration came to.
struct Exploration {
    /// Runs that were made for an interleaving, the first one included. Those that only learn are not counted.
    runs: u64,
    classes: u64,
    ended: bool,
    races: BTreeSet<Race>,
    /// The most accesses to shared memory of a run.
    accesses: usize,
    failed: bool,
}

impl Exploration {
    /// As the paper counts: where nothing but the first run is to be made, there is no test case.
    fn test_cases(&self) -> u64 {
        if self.runs == 1 { 0 } else { self.runs }
    }

    /// The test cases, or that there are more than were tried.
    fn text(&self) -> String {
        if self.ended { self.test_cases().to_string() } else { format!("> {}", self.runs) }
    }
}

fn explore(worker: &mut Worker, criterion: Criterion, max_runs: u64) -> Result<Exploration> {
    let branches_only = criterion == Criterion::RaceEquivalence { branches_only: true };
    let program = Some(Arc::clone(worker.shared_program()));
    let settings = Settings { program, branches_only, ..Settings::new(Plan::default()) };
    let mut strategy: Box<dyn Strategy> = match criterion {
        Criterion::Reachability => Box::new(Reachability::new(settings)),
        Criterion::ThreadPairs => Box::new(ThreadPairs::new(settings)),
        Criterion::RaceEquivalence { .. } => Box::new(RaceEquivalent::new(settings)),
    };
    let (mut seen, mut accesses, mut failed, mut ended) = (BTreeSet::new(), 0, false, false);
    for _ in 0..max_runs {
        let mut trace = None;
        let mut search = Search::new(worker, strategy.as_mut());
        let Some(answered) = search.step(|run| trace = Some(run.trace()))? else {
            ended = true;
            break;
        };
        failed |= matches!(answered.feedback.ended, End::Failed { .. });
        if let Some(Ok(history)) = trace.map(History::new) {
            seen.extend(races(&history));
            let all = history.trace().events.iter();
            accesses = accesses.max(all.filter(|event| event.kind.is_access()).count());
        }
    }
    let figures = strategy.explored().unwrap_or_default();
    let runs = figures.classes + figures.redundant + figures.blocked;
    Ok(Exploration { runs, classes: figures.classes, ended, races: seen, accesses, failed })
}
