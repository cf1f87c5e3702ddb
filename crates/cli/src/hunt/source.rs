//! Where a hunt's schedules come from: its own mixture, or a strategy.

use threadbare_rank::{Next, Settings, Strategy, Tuple, by_name};
use threadbare_trace::Plan;

use super::Terms;
use super::plans::{self, Knowledge};
use super::pool::Outcome;

/// A run to make, and how it is counted.
pub struct Planned {
    pub plan: Plan,
    pub label: Label,
}

/// What is said of a schedule.
#[derive(Clone, Copy)]
pub struct Label {
    pub method: &'static str,
    /// Where it stands in a ranking.
    pub tuple: Option<Tuple>,
}

/// The strategy that the user wants.
pub struct Chosen {
    pub name: &'static str,
    pub bound: u32,
    pub tuples: Option<Vec<Tuple>>,
    /// In bytes.
    pub memory: u64,
}

pub enum Source {
    Mixture(Knowledge),
    Strategy(Box<dyn Strategy>),
}

impl Source {
    pub fn new(terms: &Terms) -> Source {
        if let Some(strategy) = terms.strategy.as_ref().and_then(|chosen| strategy(chosen, terms)) {
            return Source::Strategy(strategy);
        }
        Source::Mixture(Knowledge {
            races: terms.races,
            spurious: terms.spurious,
            ..Knowledge::new(terms.seed, terms.max_events)
        })
    }

    /// How many runs, starting with the `number`-th, are asked for together.
    pub fn round(&self, number: u64) -> u64 {
        /// While a strategy knows little, it is told of each run before it is asked for the next.
        const ALONE: u64 = 32;
        const TOGETHER: u64 = 16;
        match self {
            Source::Mixture(_) => plans::round(number),
            Source::Strategy(_) if number < ALONE => 1,
            Source::Strategy(_) => TOGETHER,
        }
    }

    /// The next runs, `count` or fewer; none when there is nothing left to try.
    pub fn plans(&mut self, first: u64, count: u64) -> Vec<Planned> {
        match self {
            Source::Mixture(knowledge) => (first..first + count)
                .map(|number| Planned {
                    plan: plans::plan(number, knowledge),
                    label: Label { method: plans::method(number), tuple: None },
                })
                .collect(),
            Source::Strategy(strategy) => {
                let method = strategy.name();
                let next = || match strategy.next() {
                    Next::Run(run) => {
                        Some(Planned { plan: run.plan, label: Label { method, tuple: run.tuple } })
                    }
                    Next::Wait | Next::Exhausted => None,
                };
                std::iter::from_fn(next).take(count as usize).collect()
            }
        }
    }

    /// What came of a run; in the order in which they were asked for.
    pub fn take(&mut self, outcome: &Outcome) {
        match (self, &outcome.feedback) {
            (Source::Mixture(knowledge), _) => {
                knowledge.longest = knowledge.longest.max(outcome.events);
                knowledge.tracked.extend(outcome.learnt.iter().cloned());
            }
            (Source::Strategy(strategy), Some(feedback)) => strategy.take(feedback),
            (Source::Strategy(_), None) => {}
        }
    }

    /// Runs of `round` came to their bound on events. `false` when they cannot have more.
    pub fn allow_more(&mut self, round: &[Planned], most: u64) -> bool {
        match self {
            Source::Mixture(knowledge) => knowledge.allow_more(),
            Source::Strategy(_) => round.iter().all(|planned| planned.plan.max_events < most),
        }
    }

    /// Plans are going to begin as earlier ones did.
    pub fn repeats_beginnings(&self) -> bool {
        matches!(self, Source::Strategy(strategy) if !strategy.draws())
    }

    /// Schedules that were given up for want of memory.
    pub fn dropped(&self) -> u64 {
        match self {
            Source::Mixture(_) => 0,
            Source::Strategy(strategy) => strategy.dropped(),
        }
    }
}

fn strategy(chosen: &Chosen, terms: &Terms) -> Option<Box<dyn Strategy>> {
    let plan = Plan {
        races: terms.races,
        spurious: terms.spurious,
        max_events: terms.max_events,
        seed: terms.seed,
        ..Plan::default()
    };
    let settings = Settings {
        bound: chosen.bound,
        tuples: chosen.tuples.clone(),
        memory: chosen.memory,
        ..Settings::new(plan)
    };
    by_name(chosen.name, settings)
}
