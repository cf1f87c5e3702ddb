//! The strategies by name, and the one that combines several.

use std::sync::Arc;

use threadbare_guide::FollowUp;
use threadbare_program::Program;
use threadbare_search::{Settings, Strategy, StrategyEntry, general};
use threadbare_trace::{Preference, Waypoint};
use threadbare_variants::Reachability;

use crate::Pipeline;

/// The methods that are strategies of their own. A new method is one line here.
const METHODS: &[StrategyEntry] = &[threadbare_rank::STRATEGY, threadbare_predict::STRATEGY];

/// Every strategy that users can name, the methods first.
pub fn all() -> impl Iterator<Item = &'static StrategyEntry> {
    METHODS.iter().chain(explorations()).chain(general::STRATEGIES)
}

/// The strategies that tell classes of interleavings apart.
pub fn explorations() -> impl Iterator<Item = &'static StrategyEntry> {
    threadbare_variants::STRATEGIES.iter()
}

/// The strategy with this name.
pub fn by_name(name: &str) -> Option<&'static StrategyEntry> {
    all().find(|entry| entry.name == name)
}

/// The members of the hunt, and how many runs each has in turn before all take turns: a recording shows what memory is
/// shared, then come the simplest schedules, then what a recording predicts.
const MEMBERS: [&str; 4] = ["predict", "rank", "random", "pct"];
const OPENING: [(usize, usize); 3] = [(0, 1), (1, 5), (0, 8)];

/// What small programs are told by, where the time is limited and the number of runs is not: all their interleavings are
/// tried within so many runs.
const RUNS: u64 = 2000;

/// The search of `threadbare hunt`. A program with few classes of interleavings is run once in each of them. What is predicted and cannot be shown is left to guided tests.
pub fn hunt(settings: &Settings, program: Arc<Program>) -> Pipeline {
    let members = MEMBERS.iter().filter_map(|name| by_name(name));
    let mut strategies: Vec<Box<dyn Strategy>> =
        members.map(|entry| (entry.make)(settings.clone())).collect();
    let prefer = move |waypoints: &[Waypoint]| Preference::Nearest(program.distances(waypoints));
    strategies.push(Box::new(FollowUp::new(settings.clone(), Box::new(prefer))));
    let pipeline = Pipeline::new("hunt", strategies, &OPENING);
    // An exploration does not try spurious wake-ups.
    if settings.plan.spurious > 0 {
        return pipeline;
    }
    let finisher = Box::new(Reachability::new(settings.clone()));
    pipeline.finishing(finisher, settings.runs.unwrap_or(RUNS))
}

/// The members of the hunt that go on where sleeps may be outlasted.
const LATER_MEMBERS: [&str; 3] = ["rank", "random", "pct"];

/// The part of the hunt that lets sleeps be outlasted.
pub fn hunt_with_outlasting(settings: &Settings) -> Pipeline {
    let members = LATER_MEMBERS.iter().filter_map(|name| by_name(name));
    let strategies: Vec<Box<dyn Strategy>> = members.map(|entry| (entry.make)(settings.clone())).collect();
    Pipeline::new("hunt", strategies, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the hunt against a member whose name has changed: it would be left out without a word.
    #[test]
    fn every_member_of_the_hunt_has_a_strategy() {
        for name in MEMBERS.iter().chain(&LATER_MEMBERS) {
            assert!(by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn no_two_strategies_have_the_same_name() {
        let names: std::collections::HashSet<&str> = all().map(|entry| entry.name).collect();
        assert_eq!(names.len(), all().count());
    }
}
