//! All classes of interleavings, by trying every thread at every decision: what explorations are compared with.

use std::collections::BTreeSet;

use threadbare_search::{Explored, Feedback, Next, Round, Schedule, Strategy, Token};
use threadbare_trace::{End, Plan, Policy, ThreadIndex, Turns};

use crate::class::classes;

/// What an exploration has found.
#[derive(Debug)]
pub struct Found {
    /// The classes, in the order of its runs.
    pub classes: Vec<u64>,
    /// The plan of its last run.
    pub plan: Plan,
    pub figures: Explored,
}

/// Asks the strategy until it is exhausted. `run` makes the runs. `None` if there are more than `max_classes`.
pub fn explore<E>(
    strategy: &mut dyn Strategy,
    max_classes: usize,
    mut run: impl FnMut(&Schedule) -> Result<Feedback, E>,
) -> Result<Option<Found>, E> {
    let (mut found, mut plan) = (Vec::new(), Plan::default());
    while let Next::Run(schedule) = strategy.ask() {
        let feedback = run(&schedule)?;
        if matches!(schedule.plan.policy, Policy::Awake { .. }) && is_whole(&feedback) {
            found.extend(classes(&feedback).last());
        }
        strategy.tell(schedule.token, &feedback);
        plan = schedule.plan;
        if found.len() > max_classes {
            return Ok(None);
        }
    }
    let figures = strategy.explored().unwrap_or_default();
    // Runs from before all shared memory was known are not of this search.
    let own = found.split_off(found.len().saturating_sub(figures.classes as usize));
    Ok(Some(Found { classes: own, plan, figures }))
}

/// The classes of all interleavings under plans like this one: every thread that can go on is tried after every beginning,
/// except where a beginning of the same class was seen before. `None` if there are more than `max_beginnings` of those.
pub fn all_classes<E>(
    plan: &Plan,
    max_beginnings: usize,
    mut run: impl FnMut(&Schedule) -> Result<Feedback, E>,
) -> Result<Option<BTreeSet<u64>>, E> {
    let policy = Policy::Awake { asleep: Vec::new(), from: 0 };
    let plan = Plan { turns: Vec::new(), policy, learn: false, ..plan.clone() };
    let (mut seen, mut whole) = (BTreeSet::new(), BTreeSet::new());
    let mut branches: Vec<Vec<ThreadIndex>> = vec![Vec::new()];
    while let Some(picks) = branches.pop() {
        let plan = Plan { turns: Turns::of(picks.iter().copied()), ..plan.clone() };
        let feedback = run(&Schedule { recorded: true, ..Schedule::new(Token(0), "brute force", plan) })?;
        let beginnings = classes(&feedback);
        let mut taken: Vec<ThreadIndex> = Vec::new();
        // Who could have gone on after what was taken so far. A round that the run is the same without may be asked for.
        let mut others: BTreeSet<ThreadIndex> = BTreeSet::new();
        for decision in &feedback.decisions {
            others.extend(decision.alternatives.iter().copied());
            if decision.round == Round::PassedOver {
                continue;
            }
            if taken.len() >= picks.len() {
                if !seen.insert(taken.len().checked_sub(1).map_or(0, |last| beginnings[last])) {
                    break;
                }
                branches.extend(others.iter().map(|&other| [&taken[..], &[other]].concat()));
            }
            taken.push(decision.picked);
            others.clear();
        }
        if is_whole(&feedback) {
            whole.extend(beginnings.last());
        }
        if seen.len() > max_beginnings {
            return Ok(None);
        }
    }
    Ok(Some(whole))
}

/// The run is not the beginning of others.
fn is_whole(feedback: &Feedback) -> bool {
    let is_abandoned = feedback.decisions.iter().any(|decision| decision.round == Round::Abandoned);
    !is_abandoned && !matches!(feedback.ended, End::Diverged { .. })
}
