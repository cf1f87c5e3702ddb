//! Every schedule of a small program, by a search that shares nothing with the strategies: their reference in tests.
//!
//! Depth first: a run goes by its plan's policy, and each decision that could have gone another way is the
//! beginning of another run. What comes after a state does not depend on how the program got there, so a state
//! that was seen before is not gone on from again.

use std::collections::HashSet;
use std::rc::Rc;

use threadbare_executor::{Run, RunError, Worker};
use threadbare_trace::{Plan, ThreadIndex, Turns};

/// How an exhaustive search went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    pub runs: u64,
    /// Different states that decisions were made in.
    pub states: u64,
    /// Nothing is left; otherwise the search was stopped at its bound.
    pub complete: bool,
}

/// A schedule to be tried: the first `len` picks of an earlier run, and then this thread.
struct Branch {
    picked: Rc<[ThreadIndex]>,
    len: usize,
    thread: ThreadIndex,
}

/// Runs `plan`, and then every other schedule, in at most `max_runs` runs. Shows each run to `visit`.
///
/// The plan's own turns, steps and policy say how the first run goes, and the policy what comes after a branch.
pub fn exhaust(
    worker: &mut Worker,
    plan: &Plan,
    max_runs: u64,
    mut visit: impl FnMut(&Run<'_>),
) -> Result<Exhausted, RunError> {
    let mut plan = Plan { decisions: true, ..plan.clone() };
    let mut seen = HashSet::new();
    let mut branches: Vec<Branch> = Vec::new();
    let mut runs = 0;
    let mut known = 0;
    while runs < max_runs {
        let run = worker.run(&plan)?;
        runs += 1;
        visit(&run);
        let picked: Rc<[ThreadIndex]> = run.decisions().map(|decision| decision.picked).collect();
        for (len, decision) in run.decisions().enumerate().skip(known) {
            if !seen.insert(decision.state) {
                break;
            }
            let others = decision.alternatives().filter(|&thread| thread != decision.picked);
            branches.extend(others.map(|thread| Branch { picked: Rc::clone(&picked), len, thread }));
        }
        let Some(branch) = branches.pop() else {
            return Ok(Exhausted { runs, states: seen.len() as u64, complete: true });
        };
        plan.turns = Turns::of(branch.picked[..branch.len].iter().copied().chain([branch.thread]));
        plan.steps.clear();
        known = branch.len + 1;
    }
    Ok(Exhausted { runs, states: seen.len() as u64, complete: false })
}
