//! How many schedules the strategies need, and what these cost.

mod cost;
mod fixed;
mod seeds;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use threadbare_executor::{Limits, Target, Worker};
use threadbare_hunt::methods;
use threadbare_search::{Answered, Search as Steps, Settings, Strategy, Tuple};
use threadbare_trace::{End, Plan};

use crate::build::{self, INSTRUMENTED};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Subcommand)]
pub enum Part {
    /// The paper's Table 1: schedules to the first bug, and the tuple
    Table {
        /// Schedules for each subject, at most
        #[arg(long, default_value_t = 5000)]
        budget: u64,
    },
    /// Reorder, TwoStage and Wronglock: mean schedules to the bug, for each strategy
    Seeds {
        /// Schedules for each search, at most
        #[arg(long, default_value_t = 2000)]
        budget: u64,
        /// Searches with seeds of their own, for each strategy
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// Only these strategies, or `hunt`
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        only: Vec<String>,
    },
    /// The subjects without their bugs: nothing may be found
    Fixed {
        /// Schedules for each subject, at most
        #[arg(long, default_value_t = 2000)]
        budget: u64,
    },
    /// Schedules per second and memory, against threads and events
    Cost,
}

pub fn run(part: &Part) -> Result<bool> {
    match part {
        Part::Table { budget } => table::run(*budget),
        Part::Seeds { budget, seeds, only } => seeds::run(*budget, *seeds, only),
        Part::Fixed { budget } => fixed::run(*budget),
        Part::Cost => cost::run(),
    }
}

/// Compiles a subject as `hunt` does, into `directory`.
pub fn compile(subject: &str, directory: &Path, flags: &[&str]) -> Result<PathBuf> {
    let program = directory.join(subject);
    let source = build::root().join("subjects/c").join(subject).with_extension("c");
    build::compile(&source, &program, &[INSTRUMENTED, &["-O0"], flags].concat())?;
    Ok(program)
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

pub fn worker(program: &Path, arguments: &str) -> Result<Worker> {
    let target = Target {
        program: program.to_owned(),
        arguments: arguments.split_whitespace().map(Into::into).collect(),
        ..Target::default()
    };
    let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
    Ok(Worker::start(&target, &limits)?)
}

/// A strategy by its name, or all of them together as `hunt`.
fn strategy(name: &str, seed: u64, worker: &Worker) -> Result<Box<dyn Strategy>> {
    let plan = Plan { seed, ..Plan::default() };
    let settings = Settings { program: Some(Arc::clone(worker.shared_program())), ..Settings::new(plan) };
    if name == HUNT {
        return Ok(Box::new(threadbare_hunt::hunt(&settings, Arc::clone(worker.shared_program()))));
    }
    let entry = methods::by_name(name).ok_or_else(|| format!("no strategy is called {name}"))?;
    Ok((entry.make)(settings))
}

const HUNT: &str = "hunt";

/// How a search went.
struct Search {
    runs: u64,
    /// Where the first failure was in the ranking, if there was one and there is a ranking.
    found: Option<Option<Tuple>>,
    /// The most threads that a run had, and events.
    threads: usize,
    events: u64,
    dropped: u64,
}

/// Runs what `strategy` asks for, one at a time, to the first failure.
fn search(worker: &mut Worker, strategy: &mut dyn Strategy, budget: u64) -> Result<Search> {
    let mut search = Search { runs: 0, found: None, threads: 0, events: 0, dropped: 0 };
    let name = strategy.name();
    for answered in Steps::new(worker, strategy).take(budget as usize) {
        let Answered { schedule, feedback } = answered?;
        search.runs += 1;
        search.threads = search.threads.max(feedback.threads.len());
        search.events = search.events.max(feedback.events);
        match &feedback.ended {
            End::Failed { .. } => {
                search.found = Some(schedule.tuple);
                break;
            }
            // What was predicted may turn out not to be possible; what branches off from a run must be.
            End::Diverged { .. } if !schedule.plan.decisions => {}
            End::Diverged { .. } | End::Unsupported { .. } => {
                return Err(format!("run {} of {name}: {:?}", search.runs, feedback.ended).into());
            }
            _ => {}
        }
    }
    search.dropped = strategy.dropped();
    Ok(search)
}
