//! What a session is to do, and with what.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use threadbare_executor::{Limits, Target};
use threadbare_predict::{ConfirmConfig, Confirming};
use threadbare_program::Program;
use threadbare_search::outlast::{Make, ThenOutlast};
use threadbare_search::{Settings, Strategy, StrategyEntry, Tuple};
use threadbare_trace::Plan;

use crate::clip::Origin;
use crate::{Budget, GuideConfig, atomic_write, methods};

/// The program that a session is about.
pub struct Subject {
    pub target: Target,
    /// How it was named, for clips.
    pub origin: Origin,
    /// What the names of its clips begin with.
    pub name: String,
    /// Standard input that stands in no file yet. Clips name one, and it is written beside them.
    pub unsaved_input: Option<Vec<u8>>,
}

impl Subject {
    /// Makes sure that what clips name as standard input is there.
    pub(crate) fn save_input(&self) -> io::Result<()> {
        match (&self.unsaved_input, &self.origin.input) {
            (Some(bytes), Some(named)) => {
                atomic_write::write_into(Path::new(&named.path), |out| out.write_all(bytes))
            }
            _ => Ok(()),
        }
    }
}

/// What a session is to do, and within what limits.
pub struct HuntConfig {
    pub budget: Budget,
    pub strategy: StrategyChoice,
    /// Stop at the first finding.
    pub stop_at_first: bool,
    /// Report data races, whether they make anything fail or not.
    pub races: bool,
    /// Waits that may end without a notification, in each run.
    pub spurious: u32,
    /// Workers side by side.
    pub jobs: u32,
    pub seed: u64,
    /// The most events of a run.
    pub max_events: u64,
    pub limits: Limits,
    /// Where clips go.
    pub out: PathBuf,
    /// Threads that the program has before it does anything of its own. With no more than these there is nothing to
    /// schedule, and the session ends early.
    pub harness_threads: u32,
    /// An exit code other than 0 is a failure, also if the program always ends with it. That is so for tests.
    pub exit_code_must_be_0: bool,
}

/// The strategy of a session.
pub enum StrategyChoice {
    /// All methods together.
    Hunt,
    /// One strategy.
    Named {
        entry: StrategyEntry,
        bound: u32,
        tuples: Option<Vec<Tuple>>,
        /// In bytes.
        memory: u64,
        /// For `race-equivalent`: the method as its paper has it.
        branches_only: bool,
    },
    /// Predictions, each followed to a verdict. Failures are reported only as the harm of an anomaly.
    Predict(ConfirmConfig),
    /// Runs that are driven through a sequence of locations.
    Guide(GuideConfig),
}

impl HuntConfig {
    /// As many workers as there are processors, no limit on time or runs.
    pub fn new(strategy: StrategyChoice) -> HuntConfig {
        HuntConfig {
            budget: Budget::UNLIMITED,
            strategy,
            stop_at_first: false,
            races: false,
            spurious: 0,
            jobs: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
            seed: 0,
            max_events: Plan::default().max_events,
            limits: Limits::default(),
            out: PathBuf::from("threadbare-out"),
            harness_threads: 1,
            exit_code_must_be_0: false,
        }
    }

    pub(crate) fn make_strategy(&self, program: &Arc<Program>) -> Box<dyn Strategy> {
        let plan = Plan {
            races: self.races,
            spurious: self.spurious,
            max_events: self.max_events,
            seed: self.seed,
            ..Plan::default()
        };
        let runs = self.budget.runs;
        match &self.strategy {
            StrategyChoice::Hunt => {
                let program = Arc::clone(program);
                let [first, later]: [Make; 2] = [
                    Box::new(move |settings| Box::new(methods::hunt(&settings, Arc::clone(&program)))),
                    Box::new(|settings| Box::new(methods::hunt_with_outlasting(&settings))),
                ];
                Box::new(ThenOutlast::new(first, later, Settings { runs, ..Settings::new(plan) }))
            }
            StrategyChoice::Named { entry, bound, tuples, memory, branches_only } => {
                let (bound, tuples, memory, branches_only) =
                    (*bound, tuples.clone(), *memory, *branches_only);
                let program = Some(Arc::clone(program));
                let settings = Settings { plan, bound, tuples, memory, runs, program, branches_only };
                Box::new(ThenOutlast::new(Box::new(entry.make), Box::new(entry.make), settings))
            }
            StrategyChoice::Predict(config) => Box::new(Confirming::new(plan, config.clone())),
            StrategyChoice::Guide(config) => {
                let make = || -> Make {
                    let config = config.clone();
                    Box::new(move |settings| Box::new(config.make(settings.plan)))
                };
                Box::new(ThenOutlast::new(make(), make(), Settings::new(plan)))
            }
        }
    }

    /// The sequence, if the search is guided.
    pub(crate) fn guide(&self) -> Option<&GuideConfig> {
        match &self.strategy {
            StrategyChoice::Guide(guide) => Some(guide),
            _ => None,
        }
    }

    /// A failing run is a finding of its own.
    pub(crate) fn reports_failures(&self) -> bool {
        !matches!(self.strategy, StrategyChoice::Predict(_))
    }
}
