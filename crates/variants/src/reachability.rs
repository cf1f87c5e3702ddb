//! Every class of equivalent interleavings exactly once: optimal dynamic partial order reduction.
//!
//! Two runs are equivalent if one becomes the other by exchanging neighbouring steps that do not conflict
//! (Mazurkiewicz traces). A run goes on from a beginning by itself to its end. Each *race* in it, two conflicting steps that
//! could be taken the other way round, has to be reversed in some other run: the steps that this takes are planned at the
//! node where the first of the two was taken (wakeup trees, Abdulla et al. 2014).
//!
//! Why no class is missed: a class that was not explored differs from an explored run first in a race that the run shows,
//! and that race was planned, or something that comes before it in the order of exploration covers it. Why none is
//! explored twice: when a branch is begun, its first step goes to sleep at its node, and a later run there takes that step
//! only after one that conflicts with it, which makes it another class. A branch is planned only if no sleeping step could
//! come first in it, so a run is never left with sleeping threads alone.
//!
//! What is planned has to be what happens. So the step that is taken elsewhere is planned as it will turn out there: whether
//! a lock is free, and whether a compare-exchange finds what it expects, follows from the run ([`Blocking`](crate::blocking)
//! and [`content`](crate::content)).
//!
//! A loop that waits is like an operation that has to wait ([`rounds`](crate::rounds)). Runs that end where such a loop was
//! made to look too early are *blocked*. They are no classes, but they show races.
//!
//! Several branches may be explored at a time: what is asleep was begun, whether or not its runs have ended, and all that
//! begins with it is explored below it.

use threadbare_search::{
    Explored, Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token,
};
use threadbare_trace::{End, Plan, Policy, Sleeper};

use crate::execution::Execution;
use crate::rounds::Rounds;
use crate::step::{Names, Taken};
use crate::tree::{Beginning, Continuation, NodeId, Tree};

/// The bytes that a node or a planned step takes, about.
const STEP_BYTES: u64 = 400;

pub struct Reachability {
    knowledge: Knowledge,
    names: Names,
    rounds: Rounds,
    tree: Tree,
    /// The first run of the tree, before it is asked for.
    root: Option<Beginning>,
    asked: Outstanding<Asked>,
    /// How often the search has begun: with more shared memory the same turns make another run.
    beginnings: u64,
    figures: Explored,
    max_steps: u64,
    dropped: u64,
    /// Runs that were asked for and not answered, of this beginning.
    open: u64,
    /// Runs of others.
    observed: u64,
}

/// A run that was asked for.
enum Asked {
    /// It looks for shared memory, before the search begins.
    Learning,
    Explores {
        number: u64,
        beginning: Beginning,
    },
}

impl Reachability {
    pub fn new(settings: Settings) -> Reachability {
        let (tree, root) = Tree::new();
        let plan = Plan { decisions: true, learn: true, ..settings.plan };
        Reachability {
            knowledge: Knowledge::new(plan),
            names: Names::default(),
            rounds: Rounds::default(),
            tree,
            root: Some(root),
            asked: Outstanding::default(),
            beginnings: 0,
            figures: Explored::default(),
            max_steps: settings.memory / STEP_BYTES,
            dropped: 0,
            open: 0,
            observed: 0,
        }
    }

    fn begin_again(&mut self) {
        let (tree, root) = Tree::new();
        (self.tree, self.root) = (tree, Some(root));
        self.beginnings += 1;
        self.open = 0;
        self.dropped = 0;
        let Explored { classes, redundant, blocked, learning, .. } = self.figures;
        self.figures = Explored { learning: learning + classes + redundant + blocked, ..Explored::default() };
    }

    fn run(&mut self, beginning: Beginning) -> Next {
        let Beginning { turns, policy, .. } = beginning.clone();
        let plan = Plan { turns, policy, ..self.knowledge.plan.clone() };
        self.open += 1;
        let token = self.asked.issue(Asked::Explores { number: self.beginnings, beginning });
        Next::Run(Schedule { recorded: true, ..Schedule::new(token, NAME, plan) })
    }

    /// A run was made along this path.
    fn made(&mut self, path: &[NodeId], feedback: &Feedback) {
        let diverged = match &feedback.ended {
            End::Diverged { reason, .. } => Some(reason.as_ref()),
            _ => None,
        };
        match diverged {
            None | Some(Policy::IN_VAIN) => {
                // What comes after a limit is not known.
                let ended = &feedback.ended;
                let is_cut = matches!(ended, End::EventBound | End::TimeLimit { .. } | End::MemoryLimit);
                self.dropped += u64::from(is_cut);
                let taken = Taken::of(feedback, &mut self.names);
                let planned = self.tree.depth(path[path.len() - 1]) as usize;
                if taken.steps.len() < planned {
                    // It failed where it was not expected to.
                    self.figures.blocked += 1;
                    self.tree.open(path);
                    return self.tree.release(path[path.len() - 1]);
                }
                let count = match taken.is_abandoned {
                    true => &mut self.figures.blocked,
                    false => &mut self.figures.classes,
                };
                *count += 1;
                self.rounds.learn(&taken);
                self.add(path, &taken);
            }
            Some(reason) => {
                let count = match reason == Sleeper::ALL_ASLEEP {
                    true => &mut self.figures.redundant,
                    false => &mut self.figures.blocked,
                };
                *count += 1;
                self.tree.open(path);
            }
        }
        self.tree.release(path[path.len() - 1]);
    }

    /// Adds the run to the tree, and plans what its races call for.
    fn add(&mut self, path: &[NodeId], taken: &Taken) {
        let first = self.tree.depth(path[0]) as usize;
        self.tree.made(path, &taken.steps[first..]);
        let mut nodes = self.tree.ancestors(path[0]);
        nodes.extend(&path[1..]);
        let leaf = path[path.len() - 1];
        let mut last = leaf;
        for step in &taken.steps[nodes.len() - 1..] {
            last = self.tree.grow(last, step);
            nodes.push(last);
        }
        self.tree.hold(last);
        self.tree.open(path);
        let execution = Execution::new(&taken.steps, &taken.pending, &self.rounds);
        for race in execution.races() {
            if self.tree.size() >= self.max_steps {
                self.dropped += 1;
                continue;
            }
            let (node, instead_of) = (nodes[race.first], taken.steps[race.first].thread);
            self.tree.plan(Continuation { node, instead_of, steps: execution.reversed(race) });
        }
        self.tree.release(last);
    }
}

pub const NAME: &str = "reachability";

impl Strategy for Reachability {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self) -> Next {
        if let Some(plan) = self.knowledge.learning_plan(self.asked.issued() + self.observed) {
            let token = self.asked.issue(Asked::Learning);
            return Next::Run(Schedule::new(token, NAME, plan));
        }
        if self.asked.iter().any(|asked| matches!(asked, Asked::Learning)) {
            return Next::Wait;
        }
        match self.root.take().or_else(|| self.tree.begin()) {
            Some(beginning) => self.run(beginning),
            None if self.open > 0 => Next::Wait,
            None => Next::Exhausted,
        }
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some(asked) = self.asked.answer(token) else { return };
        match asked {
            Asked::Explores { number, beginning } if number == self.beginnings => {
                self.open -= 1;
                let bound = self.knowledge.plan.max_events;
                if self.knowledge.update(feedback) {
                    self.figures.learning += 1;
                    self.begin_again();
                } else if feedback.ended == End::EventBound && self.knowledge.plan.max_events > bound {
                    // The bound has grown: once more.
                    self.figures.learning += 1;
                    self.root = Some(beginning);
                } else {
                    self.made(&beginning.path, feedback);
                }
            }
            _ => {
                self.figures.learning += 1;
                if self.knowledge.update(feedback) {
                    self.begin_again();
                }
            }
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.observed += 1;
        if self.knowledge.update(feedback) {
            self.begin_again();
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn explored(&self) -> Option<Explored> {
        let (share, classes) = (self.tree.finished_share(), self.figures.classes);
        let left = (share > 0.0 && share < 1.0).then(|| (classes as f64 / share) as u64 - classes);
        Some(Explored { left, ..self.figures })
    }
}
