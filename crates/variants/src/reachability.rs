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
//! Several branches may be explored at a time: what is asleep was begun, whether or not its runs have ended, and all that
//! begins with it is explored below it.

use threadbare_search::{
    Explored, Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token,
};
use threadbare_trace::{End, Plan, Sleeper};

use crate::execution::Execution;
use crate::step::{Names, steps};
use crate::tree::{Beginning, Continuation, NodeId, Tree};

/// The bytes that a node or a planned step takes, about.
const STEP_BYTES: u64 = 400;

pub struct Reachability {
    knowledge: Knowledge,
    names: Names,
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
            tree,
            root: Some(root),
            asked: Outstanding::default(),
            beginnings: 0,
            figures: Explored::default(),
            max_steps: settings.memory / STEP_BYTES,
            dropped: 0,
            open: 0,
        }
    }

    fn begin_again(&mut self) {
        let (tree, root) = Tree::new();
        (self.tree, self.root) = (tree, Some(root));
        self.beginnings += 1;
        self.open = 0;
        self.dropped = 0;
        let Explored { classes, redundant, blocked, learning } = self.figures;
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
        match &feedback.ended {
            End::Diverged { reason, .. } => {
                match reason == Sleeper::ALL_ASLEEP {
                    true => self.figures.redundant += 1,
                    false => self.figures.blocked += 1,
                }
                self.tree.open(path);
            }
            ended => {
                // What comes after a limit is not known.
                let is_cut = matches!(ended, End::EventBound | End::TimeLimit { .. } | End::MemoryLimit);
                self.dropped += u64::from(is_cut);
                self.figures.classes += 1;
                self.add(path, feedback);
            }
        }
        self.tree.release(path[path.len() - 1]);
    }

    /// Adds the run to the tree, and plans what its races call for.
    fn add(&mut self, path: &[NodeId], feedback: &Feedback) {
        let (taken, pending) = steps(feedback, &mut self.names);
        let first = self.tree.depth(path[0]) as usize;
        self.tree.made(path, &taken[first..]);
        let mut nodes = self.tree.ancestors(path[0]);
        nodes.extend(&path[1..]);
        let leaf = path[path.len() - 1];
        let mut last = leaf;
        for step in &taken[nodes.len() - 1..] {
            last = self.tree.grow(last, step);
            nodes.push(last);
        }
        self.tree.hold(last);
        self.tree.open(path);
        let execution = Execution::new(&taken, &pending);
        for race in execution.races() {
            if self.tree.size() >= self.max_steps {
                self.dropped += 1;
                continue;
            }
            let (node, instead_of) = (nodes[race.first], taken[race.first].thread);
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
        if let Some(plan) = self.knowledge.learning_plan(self.asked.issued()) {
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
                self.observe(feedback);
            }
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        if self.knowledge.update(feedback) {
            self.begin_again();
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn explored(&self) -> Option<Explored> {
        Some(self.figures)
    }
}
