//! The part of the tree of executions that is still to be explored (wakeup trees and sleep sets).
//!
//! A node stands for a beginning of a run. Its *branches* are continuations that have to be explored, as trees of steps,
//! in the order in which they were found. A branch that was begun has a node of its own, and its first step goes to sleep
//! at the parent: whoever continues otherwise need not take that step first.
//!
//! Several branches of a node may be explored at a time. Of two branches the one that was begun first is the *left* one. A
//! race that a run of the left one shows may call for a continuation that begins with the first step of the right one. It
//! is then planned below the right one, as it would have been if the left one had been explored before.
//!
//! A node is *finished* when nothing is left to explore below it. It is gone when all that is left of it is finished too,
//! so the tree is as deep as a run and not as large as the search.

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
    /// From the root down: the first node that is not finished among the children of the one before. What was left of it is
    /// gone.
    frontier: Vec<NodeId>,
    /// Continuations whose place depends on runs that were not answered yet. With each, the node that the run which calls
    /// for it went to instead: it is held, so that what is right of it stays.
    deferred: Vec<(Continuation, NodeId)>,
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
    begun: Vec<Begun>,
    branches: Vec<Branch>,
    /// A branch was begun whose run was not made yet.
    is_closed: bool,
    /// Children that are not finished, and runs that were asked for and not answered.
    unfinished: u32,
    /// The parent counts this node as finished.
    counts_as_finished: bool,
}

/// A branch that was begun.
struct Begun {
    step: Step,
    /// Until it is gone.
    child: Option<NodeId>,
}

impl Node {
    /// Steps that a branch which is begun now takes only after one that conflicts with them.
    fn asleep(&self) -> impl Iterator<Item = &Step> {
        self.inherited.iter().chain(self.begun.iter().map(|begun| &begun.step))
    }

    fn is_finished(&self) -> bool {
        self.unfinished == 0 && self.branches.is_empty()
    }

    /// Where the branch stands that begins with a step of this thread.
    fn place(&self, thread: ThreadIndex) -> usize {
        let place = self.begun.iter().position(|begun| begun.step.thread == thread);
        place.expect("the branch was begun here")
    }

    /// The first branch from `right` on that was begun and that some order of `steps` begins with.
    fn begun_with(&self, steps: &[Step], right: usize) -> Option<(usize, Initial)> {
        let branches = self.begun.iter().enumerate().skip(right);
        branches.filter_map(|(place, begun)| Some((place, initial(&begun.step, steps)?))).next()
    }
}

/// Some run that goes on from `node` has to begin with `steps`, up to the order of those that can change places.
pub struct Continuation {
    pub node: NodeId,
    /// The thread whose step was taken at the node in the run that calls for this.
    pub instead_of: ThreadIndex,
    pub steps: Vec<Step>,
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
            unfinished: 1,
            counts_as_finished: false,
        });
        tree.frontier.push(root);
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

    /// About how much of the tree is finished, from 0 to 1: at each node, all branches are taken to be as large as each
    /// other (the weighted backtrack estimate of Kilby and others, 2006). Branches that no run has called for yet are not
    /// known, so this is more than there is at first.
    pub fn finished_share(&self) -> f64 {
        let mut by_depth: Vec<NodeId> = (0..self.nodes.len() as NodeId).collect();
        by_depth.retain(|&id| self.nodes[id as usize].is_some());
        by_depth.sort_unstable_by_key(|&id| std::cmp::Reverse(self.node(id).depth));
        let mut shares = vec![0.0; self.nodes.len()];
        for id in by_depth {
            let node = self.node(id);
            let of_child = |begun: &Begun| begun.child.map_or(1.0, |child| shares[child as usize]);
            let branches = node.begun.len() + node.branches.len();
            shares[id as usize] = match (node.is_finished(), branches) {
                (true, _) => 1.0,
                (false, 0) => 0.0,
                (false, count) => node.begun.iter().map(of_child).sum::<f64>() / count as f64,
            };
        }
        self.frontier.first().map_or(0.0, |&root| shares[root as usize])
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
        self.node_mut(last).unfinished += 1;
        for &id in path.iter().rev() {
            self.tell_parents(id);
        }
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
        let node = self.node(parent);
        let inherited = node.asleep().filter(|other| !other.conflicts(step)).cloned().collect();
        let (depth, thread) = (node.depth + 1, step.thread);
        let child = self.add(Node {
            parent: Some(parent),
            depth,
            thread,
            inherited,
            begun: Vec::new(),
            branches: Vec::new(),
            is_closed: false,
            unfinished: 0,
            counts_as_finished: true,
        });
        self.node_mut(parent).begun.push(Begun { step: step.clone(), child: Some(child) });
        child
    }

    /// A run was made along this path: what its steps really touch is known now.
    pub fn made(&mut self, path: &[NodeId], steps: &[Step]) {
        for (pair, step) in path.windows(2).zip(steps) {
            let node = self.node_mut(pair[0]);
            let place = node.place(step.thread);
            node.begun[place].step = step.clone();
            let before = node.inherited.iter().chain(node.begun[..place].iter().map(|begun| &begun.step));
            let inherited = before.filter(|other| !other.conflicts(step)).cloned().collect();
            self.node_mut(pair[1]).inherited = inherited;
        }
    }

    /// The branch along this path has been tried, and what followed has grown: more may be planned and begun here.
    pub fn open(&mut self, path: &[NodeId]) {
        for &id in path {
            self.node_mut(id).is_closed = false;
            self.note_open(id);
        }
        for (continuation, left) in std::mem::take(&mut self.deferred) {
            self.plan(continuation);
            self.release(left);
        }
    }

    /// Plans the continuation, unless that is planned, or was begun.
    pub fn plan(&mut self, continuation: Continuation) {
        let Continuation { node: start, instead_of, ref steps } = continuation;
        let mut steps = steps.clone();
        let node = self.node(start);
        let place = node.place(instead_of);
        let left = node.begun[place].child.expect("the run that calls for this is held below");
        let before = node.begun[..place].iter().map(|begun| &begun.step);
        if node.inherited.iter().chain(before).any(|sleeper| initial(sleeper, &steps).is_some()) {
            return;
        }
        let (mut at, mut right) = (start, place + 1);
        loop {
            // What the steps of its branches touch is not known for certain yet.
            if self.node(at).is_closed {
                self.hold(left);
                self.deferred.push((continuation, left));
                return;
            }
            let Some((place, found)) = self.node(at).begun_with(&steps, right) else { break };
            let Some(child) = self.node(at).begun[place].child else { return };
            if let Initial::At(position) = found {
                steps.remove(position);
            }
            let inherited = &self.node(child).inherited;
            // Where nobody is asleep, all is explored without help from the left.
            let is_covered = steps.is_empty() || inherited.is_empty() && !self.node(child).is_closed;
            if is_covered || inherited.iter().any(|sleeper| initial(sleeper, &steps).is_some()) {
                return;
            }
            (at, right) = (child, 0);
        }
        self.insert(at, steps);
    }

    /// Adds the steps to the branches of node `id` that were not begun.
    fn insert(&mut self, id: NodeId, mut steps: Vec<Step>) {
        let mut branches = &mut self.node_mut(id).branches;
        'down: loop {
            for place in 0..branches.len() {
                if let Some(found) = initial(&branches[place].step, &steps) {
                    if let Initial::At(position) = found {
                        steps.remove(position);
                    }
                    if branches[place].next.is_empty() || steps.is_empty() {
                        return;
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
        self.tell_parents(id);
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

    /// Node `id` is not finished until [`release`](Tree::release).
    pub fn hold(&mut self, id: NodeId) {
        self.node_mut(id).unfinished += 1;
        self.tell_parents(id);
    }

    /// Takes a [`hold`](Tree::hold) back, and takes away the nodes that nothing needs any more.
    pub fn release(&mut self, id: NodeId) {
        self.node_mut(id).unfinished -= 1;
        let last = self.tell_parents(id);
        self.advance();
        self.remove_covered(id, last);
    }

    /// Node `id` may have become finished, or may be so no longer: its ancestors count anew. Returns the last of them for
    /// which something changed.
    fn tell_parents(&mut self, id: NodeId) -> NodeId {
        let mut at = id;
        loop {
            let node = self.node_mut(at);
            let is_finished = node.is_finished();
            if node.counts_as_finished == is_finished {
                return at;
            }
            node.counts_as_finished = is_finished;
            let Some(parent) = node.parent else { return at };
            let parent_node = self.node_mut(parent);
            match is_finished {
                true => parent_node.unfinished -= 1,
                false => parent_node.unfinished += 1,
            }
            at = parent;
        }
    }

    /// Takes away what is below a finished node at which nobody is asleep, from `id` up to `last`: no continuation is
    /// planned there any more.
    fn remove_covered(&mut self, id: NodeId, last: NodeId) {
        let mut at = Some(id);
        let mut covered = None;
        while let Some(id) = at {
            let Some(node) = &self.nodes[id as usize] else { return };
            if node.is_finished() && node.inherited.is_empty() {
                covered = Some(id);
            }
            at = node.parent.filter(|_| id != last);
        }
        if let Some(id) = covered {
            self.remove_below(id);
        }
    }

    /// Moves the frontier on, past what is finished.
    fn advance(&mut self) {
        while let Some(&last) = self.frontier.last() {
            let node = self.node(last);
            let first = node.begun.iter().position(|begun| begun.child.is_some());
            match first.and_then(|place| Some((place, node.begun[place].child?))) {
                Some((place, child)) if self.node(child).is_finished() => self.remove(last, place),
                Some((_, child)) => self.frontier.push(child),
                None if node.is_finished() && self.frontier.len() > 1 => {
                    self.frontier.pop();
                }
                None => return,
            }
        }
    }

    /// Takes away a child of node `id`, and all below it.
    fn remove(&mut self, id: NodeId, place: usize) {
        let Some(child) = self.node_mut(id).begun[place].child.take() else { return };
        self.remove_below(child);
        self.nodes[child as usize] = None;
        self.free.push(child);
    }

    fn remove_below(&mut self, id: NodeId) {
        let mut open: Vec<NodeId> =
            self.node_mut(id).begun.iter_mut().filter_map(|begun| begun.child.take()).collect();
        while let Some(id) = open.pop() {
            open.extend(self.node(id).begun.iter().filter_map(|begun| begun.child));
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
