//! The part of the tree of executions that is still to be explored (wakeup trees and sleep sets).
//!
//! A node stands for a beginning of a run. Its *branches* are continuations that have to be explored, as trees of steps,
//! in the order in which they were found. A branch that was begun has a node of its own, and its first step goes to sleep
//! at the parent: whoever continues otherwise need not take that step first.
//!
//! A node is gone when nothing is left to explore below it, so the tree is as deep as a run and not as large as the search.

use std::collections::BTreeSet;

use threadbare_trace::{Policy, Sleeper, ThreadIndex, Turns};

use crate::step::Step;

#[derive(Default)]
pub struct Tree {
    nodes: Vec<Option<Node>>,
    free: Vec<u32>,
    /// Nodes with branches that were not begun, by depth.
    open: BTreeSet<(u32, NodeId)>,
    /// Steps in branches that were not begun.
    planned: u64,
}

pub type NodeId = u32;

struct Node {
    parent: Option<NodeId>,
    depth: u32,
    /// The thread whose step leads here from the parent. The root has none.
    thread: ThreadIndex,
    /// Steps that were asleep at the parent too.
    inherited: Vec<Step>,
    /// The first steps of the branches that were begun here, in this order. Each is asleep in those begun after it.
    begun: Vec<Step>,
    branches: Vec<Branch>,
    /// A branch was begun whose run was not made yet.
    is_closed: bool,
    /// Children that are not gone, and runs that were asked for and not answered.
    children: u32,
}

impl Node {
    /// Steps that a branch which is begun now takes only after one that conflicts with them.
    fn asleep(&self) -> impl Iterator<Item = &Step> {
        self.inherited.iter().chain(&self.begun)
    }
}

/// A continuation that has to be explored.
struct Branch {
    step: Step,
    next: Vec<Branch>,
}

/// A run that is to be made.
#[derive(Clone)]
pub struct Beginning {
    pub turns: Vec<Turns>,
    pub policy: Policy,
    /// The nodes from the one that the branch grows on to the last one, in order.
    pub path: Vec<NodeId>,
}

impl Tree {
    /// A tree whose root is to be explored.
    pub fn new() -> (Tree, Beginning) {
        let mut tree = Tree::default();
        let root = tree.add(Node {
            parent: None,
            depth: 0,
            thread: ThreadIndex::MAIN,
            inherited: Vec::new(),
            begun: Vec::new(),
            branches: Vec::new(),
            is_closed: false,
            children: 1,
        });
        let policy = Policy::Awake { asleep: Vec::new(), from: 0 };
        (tree, Beginning { turns: Vec::new(), policy, path: vec![root] })
    }

    /// Nodes, and steps that are planned.
    pub fn size(&self) -> u64 {
        (self.nodes.len() - self.free.len()) as u64 + self.planned
    }

    fn add(&mut self, node: Node) -> NodeId {
        match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = Some(node);
                id
            }
            None => {
                self.nodes.push(Some(node));
                (self.nodes.len() - 1) as NodeId
            }
        }
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes[id as usize].as_ref().expect("a node that is named is there")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id as usize].as_mut().expect("a node that is named is there")
    }

    /// Begins the next branch: the deepest one, so that few are open at a time.
    pub fn begin(&mut self) -> Option<Beginning> {
        let &(_, from) = self.open.last()?;
        let mut turns: Vec<ThreadIndex> = Vec::new();
        let mut at = Some(from);
        while let Some(id) = at {
            let node = self.node(id);
            at = node.parent;
            if at.is_some() {
                turns.push(node.thread);
            }
        }
        turns.reverse();
        let sleeper = |step: &Step| Sleeper { thread: step.thread, touches: step.addresses.clone() };
        let asleep = self.node(from).asleep().map(sleeper).collect();
        let policy = Policy::Awake { asleep, from: turns.len() as u64 };
        let mut path = vec![from];
        let mut last = from;
        while let Some(branch) = self.take_first(last) {
            turns.push(branch.step.thread);
            last = self.grow(last, &branch.step);
            path.push(last);
            let has_next = !branch.next.is_empty();
            self.node_mut(last).branches = branch.next;
            if !has_next {
                break;
            }
        }
        // What the steps of the path touch is known for certain when the run was made. So long, its nodes stay closed.
        for &id in &path {
            self.node_mut(id).is_closed = true;
            self.note_open(id);
        }
        self.node_mut(last).children += 1;
        Some(Beginning { turns: Turns::of(turns), policy, path })
    }

    fn take_first(&mut self, id: NodeId) -> Option<Branch> {
        let node = self.node_mut(id);
        if node.branches.is_empty() {
            return None;
        }
        let branch = node.branches.remove(0);
        self.planned -= 1;
        Some(branch)
    }

    fn note_open(&mut self, id: NodeId) {
        let entry = (self.node(id).depth, id);
        if self.node(id).branches.is_empty() || self.node(id).is_closed {
            self.open.remove(&entry);
        } else {
            self.open.insert(entry);
        }
    }

    /// The node after `step`, which goes to sleep at `parent`.
    pub fn grow(&mut self, parent: NodeId, step: &Step) -> NodeId {
        let node = self.node_mut(parent);
        let inherited = node.asleep().filter(|other| !other.conflicts(step)).cloned().collect();
        node.begun.push(step.clone());
        node.children += 1;
        let (depth, thread) = (node.depth + 1, step.thread);
        self.add(Node {
            parent: Some(parent),
            depth,
            thread,
            inherited,
            begun: Vec::new(),
            branches: Vec::new(),
            is_closed: false,
            children: 0,
        })
    }

    /// A run was made along this path: what its steps really touch is known now, and the nodes are open.
    pub fn made(&mut self, path: &[NodeId], steps: &[Step]) {
        for (pair, step) in path.windows(2).zip(steps) {
            let node = self.node_mut(pair[0]);
            let place = node.begun.iter().position(|begun| begun.thread == step.thread);
            let place = place.expect("the path begins with a branch that was begun here");
            node.begun[place] = step.clone();
            let before = node.inherited.iter().chain(&node.begun[..place]);
            let inherited = before.filter(|other| !other.conflicts(step)).cloned().collect();
            self.node_mut(pair[1]).inherited = inherited;
        }
        self.open(path);
    }

    /// The branch along this path has been tried.
    pub fn open(&mut self, path: &[NodeId]) {
        for &id in path {
            self.node_mut(id).is_closed = false;
            self.note_open(id);
        }
    }

    /// Some run that goes on from node `id` has to begin with these steps, up to the order of those that can change
    /// places. Does nothing if that is planned, or was begun.
    pub fn plan(&mut self, id: NodeId, steps: Vec<Step>) -> bool {
        let mut steps = steps;
        let node = self.node_mut(id);
        if node.asleep().any(|sleeper| initial(sleeper, &steps).is_some()) {
            return false;
        }
        let mut branches = &mut node.branches;
        'down: loop {
            for place in 0..branches.len() {
                if let Some(found) = initial(&branches[place].step, &steps) {
                    if let Initial::At(position) = found {
                        steps.remove(position);
                    }
                    if branches[place].next.is_empty() || steps.is_empty() {
                        return false;
                    }
                    branches = &mut branches[place].next;
                    continue 'down;
                }
            }
            break;
        }
        let count = steps.len() as u64;
        let mut next = Vec::new();
        for step in steps.into_iter().rev() {
            next = vec![Branch { step, next }];
        }
        branches.append(&mut next);
        self.planned += count;
        self.note_open(id);
        true
    }

    pub fn depth(&self, id: NodeId) -> u32 {
        self.node(id).depth
    }

    /// The nodes from the root to `id`.
    pub fn ancestors(&self, id: NodeId) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = std::iter::successors(Some(id), |&id| self.node(id).parent).collect();
        nodes.reverse();
        nodes
    }

    /// Node `id` stays until [`finish`](Tree::finish).
    pub fn hold(&mut self, id: NodeId) {
        self.node_mut(id).children += 1;
    }

    /// The run that ended at `id` was answered for. Takes away the nodes below which nothing is left.
    pub fn finish(&mut self, id: NodeId) {
        let mut at = Some(id);
        while let Some(id) = at {
            let node = self.node_mut(id);
            node.children -= 1;
            if node.children > 0 || !node.branches.is_empty() {
                return;
            }
            at = node.parent;
            self.nodes[id as usize] = None;
            self.free.push(id);
        }
    }
}

/// How a step can come first.
enum Initial {
    /// It is the one at this place.
    At(usize),
    /// It is none of them, and goes with all of them.
    Beside,
}

/// Whether some order of `steps`, and of `step` if it is none of them, begins with `step`.
fn initial(step: &Step, steps: &[Step]) -> Option<Initial> {
    match steps.iter().position(|other| other.thread == step.thread) {
        Some(place) => {
            let is_first = steps[..place].iter().all(|other| !other.conflicts(&steps[place]));
            is_first.then_some(Initial::At(place))
        }
        None => steps.iter().all(|other| !other.conflicts(step)).then_some(Initial::Beside),
    }
}
