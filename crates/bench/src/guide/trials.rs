//! Trials: searches with seeds of their own, each to the first error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use threadbare_executor::{Limits, Target, Worker, learn};
use threadbare_guide::{Backtracking, GuidedTest, MAX_BACKTRACK};
use threadbare_search::Search as Steps;
use threadbare_trace::{Afterwards, Guidance, Plan, Preference, Waypoint};

use super::subjects::Subject;
use super::{Result, Search};

/// What a trial may take.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub time: Duration,
    pub states: u64,
}

/// One search to the first error.
#[derive(Clone, Copy, Debug)]
struct Trial {
    found: bool,
    states: u64,
    depth: u64,
    time: Duration,
}

/// The least, the mean and the most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

impl Spread {
    fn of(numbers: impl Iterator<Item = u64>) -> Spread {
        let numbers: Vec<f64> = numbers.map(|number| number as f64).collect();
        if numbers.is_empty() {
            return Spread::default();
        }
        Spread {
            min: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            mean: numbers.iter().sum::<f64>() / numbers.len() as f64,
            max: numbers.iter().copied().fold(0.0, f64::max),
        }
    }
}

pub struct Trials {
    trials: Vec<Trial>,
    /// Bytes of this process at the end.
    memory: u64,
}

impl Trials {
    pub fn make(subject: &Subject, search: Search, count: u64, bounds: Bounds) -> Result<Trials> {
        Trials::with_locations(subject, search, count, bounds, usize::MAX)
    }

    /// With so many of the locations only.
    pub fn with_locations(
        subject: &Subject,
        search: Search,
        count: u64,
        bounds: Bounds,
        locations: usize,
    ) -> Result<Trials> {
        let target = Target {
            program: subject.program.clone(),
            arguments: subject.arguments.iter().map(Into::into).collect(),
            ..Target::default()
        };
        let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
        let mut worker = Worker::start(&target, &limits)?;
        let waypoints: Arc<[Waypoint]> = match search {
            Search::Random => Arc::new([]),
            _ => subject.waypoints(worker.program(), locations)?.into(),
        };
        let preference = match search {
            Search::Nearest => Preference::Nearest(worker.program().distances(&waypoints)),
            Search::Constant | Search::Random => Preference::None,
            Search::Prefer => Preference::Threads(subject.preferred.clone()),
        };
        let mut plan = Plan { max_events: 100_000, ..Plan::default() };
        learn(&mut worker, &mut plan)?;
        let trials = (0..count)
            .map(|seed| {
                let afterwards = match search {
                    Search::Random => Afterwards::Random,
                    _ => Afterwards::RunOn,
                };
                let guidance = Guidance {
                    seed,
                    waypoints: waypoints.clone(),
                    preference: preference.clone(),
                    afterwards,
                };
                let backtracking = match search {
                    Search::Random => Backtracking::Deepest,
                    _ => Backtracking::Nearest,
                };
                let mut test =
                    GuidedTest::new(plan.clone(), guidance, MAX_BACKTRACK).backtracking(backtracking);
                trial(&mut worker, &mut test, bounds)
            })
            .collect::<Result<_>>()?;
        Ok(Trials { trials, memory: resident() })
    }

    fn found(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.found)
    }

    pub fn found_share(&self) -> f64 {
        self.found().count() as f64 / self.trials.len().max(1) as f64
    }

    /// Of the trials that found the error.
    pub fn states(&self) -> Spread {
        Spread::of(self.found().map(|trial| trial.states))
    }

    pub fn depths(&self) -> Spread {
        Spread::of(self.found().map(|trial| trial.depth))
    }

    pub fn milliseconds(&self) -> f64 {
        Spread::of(self.found().map(|trial| trial.time.as_micros() as u64)).mean / 1e3
    }

    /// Of all trials, whether they found the error or not.
    pub fn states_per_second(&self) -> f64 {
        let (states, time) = self
            .trials
            .iter()
            .fold((0, Duration::ZERO), |(states, time), trial| (states + trial.states, time + trial.time));
        states as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub fn mebibytes(&self) -> f64 {
        self.memory as f64 / f64::from(1 << 20)
    }
}

fn trial(worker: &mut Worker, test: &mut GuidedTest, bounds: Bounds) -> Result<Trial> {
    let start = Instant::now();
    let mut found = false;
    loop {
        let figures = test.figures();
        if found || start.elapsed() >= bounds.time || figures.states >= bounds.states {
            return Ok(Trial { found, states: figures.states, depth: figures.depth, time: start.elapsed() });
        }
        let Some(answered) = Steps::new(worker, test).step(|_| {})? else {
            let states = figures.states;
            return Ok(Trial { found, states, depth: figures.depth, time: start.elapsed() });
        };
        found = answered.feedback.ended.failure().is_some();
    }
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
