//! Going through the tree of decisions.
//!
//! A run goes by its policy, one thread until it blocks and then the next, and each decision that could have gone
//! another way is the beginning of another run. What a run deviates by, counted as the strategy counts it, says when
//! it is tried: cheaper ones first, and those that cost more than the bound never. So each schedule within the bound
//! is run exactly once.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use threadbare_trace::hash::Hasher;
use threadbare_trace::{Plan, Policy, Turns};

use crate::backlog::Backlog;
use crate::ground::Ground;
use crate::{Decision, Feedback, Next, Schedule, Settings, Strategy};

/// What it costs to pick `alternative` at a decision, after `before` was picked at the one before it.
pub type Cost = fn(decision: &Decision, before: Option<u32>, alternative: u32) -> u32;

/// A schedule: as another one for so many decisions, and then this thread.
#[derive(Debug)]
struct Branch {
    picks: Arc<[u32]>,
    len: usize,
    thread: u32,
    cost: u32,
}

#[derive(Debug)]
pub struct Tree {
    name: &'static str,
    ground: Ground,
    cost: Cost,
    bound: u32,
    branches: Backlog<(u32, Reverse<u64>), Branch>,
    /// Counts branches: of those that cost the same, the youngest is next, so that few are open at a time.
    count: u64,
    /// States that were gone on from, if none is to be gone on from twice.
    seen: Option<HashSet<u64, Hasher>>,
    /// The first run is still to be asked for.
    at_root: bool,
    /// Runs that were asked for; `None` is the first one. Those from before the last beginning are not counted on.
    asked: VecDeque<Asked>,
    number: u64,
    beginnings: u64,
}

#[derive(Debug)]
struct Asked {
    branch: Option<Branch>,
    beginning: u64,
}

impl Tree {
    /// All schedules that cost at most `bound`, as the strategy called `name` counts.
    pub fn new(name: &'static str, settings: Settings, bound: u32, cost: Cost) -> Tree {
        Tree {
            name,
            ground: Ground::new(Plan { decisions: true, ..settings.plan }),
            cost,
            bound,
            branches: Backlog::new(settings.memory),
            count: 0,
            seen: None,
            at_root: true,
            asked: VecDeque::new(),
            number: 0,
            beginnings: 0,
        }
    }

    /// What comes after a state does not depend on how the program got there: goes on from each only once.
    pub fn without_repeats(self) -> Tree {
        Tree { seen: Some(HashSet::default()), ..self }
    }

    /// More memory is shared than was known, so there are more decisions than were seen.
    fn begin_again(&mut self) {
        self.branches.clear();
        self.seen.iter_mut().for_each(HashSet::clear);
        self.at_root = true;
        self.beginnings += 1;
    }

    fn branch_off(&mut self, branch: Option<&Branch>, feedback: &Feedback) {
        let (known, spent) = branch.map_or((0, 0), |branch| (branch.len + 1, branch.cost));
        let picks: Arc<[u32]> = feedback.picks().collect();
        let mut branches = Vec::new();
        let mut before = known.checked_sub(1).map(|last| picks[last]);
        for (len, decision) in feedback.decisions.iter().enumerate().skip(known) {
            if self.seen.as_mut().is_some_and(|seen| !seen.insert(decision.state)) {
                break;
            }
            for &thread in decision.alternatives.iter().filter(|&&thread| thread != decision.picked) {
                let cost = spent + (self.cost)(decision, before, thread);
                if cost <= self.bound {
                    self.count += 1;
                    let branch = Branch { picks: Arc::clone(&picks), len, thread, cost };
                    branches.push(((cost, Reverse(self.count)), branch));
                }
            }
            before = Some(decision.picked);
        }
        self.branches.extend(branches, size_of_val(&*picks) as u64);
    }
}

impl Strategy for Tree {
    fn name(&self) -> &'static str {
        self.name
    }

    fn next(&mut self) -> Next {
        let branch = if std::mem::take(&mut self.at_root) {
            None
        } else if let Some((_, branch)) = self.branches.pop() {
            Some(branch)
        } else if self.asked.iter().any(|asked| asked.beginning == self.beginnings) {
            return Next::Wait;
        } else {
            return Next::Exhausted;
        };
        let turns = branch.as_ref().map_or_else(Vec::new, |branch| {
            Turns::of(branch.picks[..branch.len].iter().copied().chain([branch.thread]))
        });
        let plan = self.ground.sample(self.number);
        self.number += 1;
        self.asked.push_back(Asked { branch, beginning: self.beginnings });
        Next::Run(Schedule::new(self.name, Plan { turns, policy: Policy::RunToBlock, ..plan }))
    }

    fn take(&mut self, feedback: &Feedback) {
        let Some(asked) = self.asked.pop_front() else { return };
        if self.ground.take(feedback) {
            self.begin_again();
        }
        if asked.beginning == self.beginnings {
            self.branch_off(asked.branch.as_ref(), feedback);
        }
    }

    fn overhear(&mut self, feedback: &Feedback) {
        if self.ground.take(feedback) {
            self.begin_again();
        }
    }

    fn dropped(&self) -> u64 {
        self.branches.dropped()
    }
}
