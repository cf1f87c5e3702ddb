//! Going through the tree of decisions.
//!
//! A run goes by its policy, one thread until it blocks and then the next, and each decision that could have gone
//! another way is the beginning of another run. What a run deviates by, counted as the strategy counts it, says when
//! it is tried: cheaper ones first, and those that cost more than the bound never. So each schedule within the bound
//! is run exactly once.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use threadbare_trace::{Plan, Policy, ThreadIndex, Turns};

use crate::backlog::Backlog;
use crate::{Decision, Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token};

/// What it costs to pick `alternative` at a decision, after `before` was picked at the one before it.
pub type Cost = fn(decision: &Decision, before: Option<ThreadIndex>, alternative: ThreadIndex) -> u32;

/// A schedule: as another one for so many decisions, and then this thread.
#[derive(Debug)]
struct Branch {
    picks: Arc<[ThreadIndex]>,
    len: usize,
    thread: ThreadIndex,
    cost: u32,
}

#[derive(Debug)]
pub struct Tree {
    name: &'static str,
    knowledge: Knowledge,
    cost: Cost,
    bound: u32,
    branches: Backlog<(u32, Reverse<u64>), Branch>,
    /// Counts branches: of those that cost the same, the youngest is next, so that few are open at a time.
    count: u64,
    /// States that were gone on from, if none is to be gone on from twice.
    seen: Option<FxHashSet<u64>>,
    /// The first run is still to be asked for.
    at_root: bool,
    asked: Outstanding<Asked>,
    beginnings: u64,
}

/// A run that was asked for. One from before the last beginning is not gone on from.
#[derive(Debug)]
struct Asked {
    /// `None` for the first run.
    branch: Option<Branch>,
    beginning: u64,
}

impl Tree {
    /// All schedules that cost at most `bound`, as the strategy called `name` counts.
    pub fn new(name: &'static str, settings: Settings, bound: u32, cost: Cost) -> Tree {
        Tree {
            name,
            knowledge: Knowledge::new(Plan { decisions: true, ..settings.plan }),
            cost,
            bound,
            branches: Backlog::new(settings.memory),
            count: 0,
            seen: None,
            at_root: true,
            asked: Outstanding::default(),
            beginnings: 0,
        }
    }

    /// What comes after a state does not depend on how the program got there: goes on from each only once.
    pub fn without_repeats(self) -> Tree {
        Tree { seen: Some(FxHashSet::default()), ..self }
    }

    /// More memory is shared than was known, so there are more decisions than were seen.
    fn begin_again(&mut self) {
        self.branches.clear();
        self.seen.iter_mut().for_each(FxHashSet::clear);
        self.at_root = true;
        self.beginnings += 1;
    }

    fn branch_off(&mut self, branch: Option<&Branch>, feedback: &Feedback) {
        let (known, spent) = branch.map_or((0, 0), |branch| (branch.len + 1, branch.cost));
        let picks: Arc<[ThreadIndex]> = feedback.picks().collect();
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

    fn ask(&mut self) -> Next {
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
        let plan = self.knowledge.sample(self.asked.issued());
        let token = self.asked.issue(Asked { branch, beginning: self.beginnings });
        Next::Run(Schedule::new(token, self.name, Plan { turns, policy: Policy::RunToBlock, ..plan }))
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some(asked) = self.asked.answer(token) else { return };
        self.observe(feedback);
        if asked.beginning == self.beginnings {
            self.branch_off(asked.branch.as_ref(), feedback);
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        if self.knowledge.update(feedback) {
            self.begin_again();
        }
    }

    fn dropped(&self) -> u64 {
        self.branches.dropped()
    }
}
