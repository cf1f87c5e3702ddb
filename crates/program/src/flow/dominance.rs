//! Dominators, post-dominators and control dependence.
//!
//! The algorithm is the iteration over reverse postorder of Cooper, Harvey and Kennedy, on plain arrays. For
//! post-dominators the graph is reversed, and a virtual exit follows every block that leaves the function. An endless
//! loop has no such block: then the last of its blocks that the search came to is taken for one, so that what is in the
//! loop still depends on the branches that lead there.

use super::function::{BlockIndex, Flow};

/// The immediate dominators of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dominators {
    /// By block. The root and what cannot be reached have none.
    immediate: Vec<Option<BlockIndex>>,
    /// What the walk started from reaches it.
    is_reached: Vec<bool>,
}

/// An edge out of a branch that decides whether a block is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlDependence {
    /// The block that ends with the branch.
    pub branch: BlockIndex,
    /// Which of its successors leads to the block for certain, as a position in [`super::Block::successors`].
    pub edge: usize,
}

impl Dominators {
    /// The closest block, other than itself, that every path from the root to `block` goes through (for
    /// post-dominators: every path from `block` out of the function).
    pub fn immediate(&self, block: BlockIndex) -> Option<BlockIndex> {
        self.immediate[block.index()]
    }

    /// Every path to `block` goes through `dominator`. A block dominates itself.
    pub fn dominates(&self, dominator: BlockIndex, block: BlockIndex) -> bool {
        self.is_reached[block.index()]
            && std::iter::successors(Some(block), |&block| self.immediate(block))
                .any(|block| block == dominator)
    }
}

impl Flow {
    /// Which blocks every path from the entry goes through.
    pub fn dominators(&self) -> Dominators {
        let successors: Vec<Vec<usize>> = self
            .blocks
            .iter()
            .map(|block| block.successors.iter().map(|successor| successor.index()).collect())
            .collect();
        Dominators::of(&successors, self.entry_block.index(), false)
    }

    /// Which blocks every path out of the function goes through. The root is the virtual exit.
    pub fn post_dominators(&self) -> Dominators {
        let exit = self.blocks.len();
        let mut reversed: Vec<Vec<usize>> = self
            .predecessors()
            .iter()
            .map(|before| before.iter().map(|block| block.index()).collect())
            .collect();
        let leaves = self.indices().filter(|&block| self[block].successors.is_empty());
        reversed.push(leaves.map(BlockIndex::index).collect());
        self.open_endless_loops(&mut reversed, exit);
        Dominators::of(&reversed, exit, true)
    }

    /// Adds an edge to the exit for every part of the graph that no path leaves.
    fn open_endless_loops(&self, reversed: &mut [Vec<usize>], exit: usize) {
        let mut reaches_exit = vec![false; reversed.len()];
        mark(reversed, exit, &mut reaches_exit);
        // In postorder the first block of an endless loop that is found lies as deep in it as the search went.
        for block in self.postorder() {
            if !reaches_exit[block.index()] {
                reversed[exit].push(block.index());
                mark(reversed, block.index(), &mut reaches_exit);
            }
        }
    }

    /// All blocks, each after the blocks that a depth-first search first reached from it.
    fn postorder(&self) -> Vec<BlockIndex> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::with_capacity(self.blocks.len());
        for root in [self.entry_block].into_iter().chain(self.indices()) {
            if std::mem::replace(&mut seen[root.index()], true) {
                continue;
            }
            let mut stack = vec![(root, 0)];
            while let Some((block, next)) = stack.last_mut() {
                match self[*block].successors.get(*next) {
                    Some(&successor) => {
                        *next += 1;
                        if !std::mem::replace(&mut seen[successor.index()], true) {
                            stack.push((successor, 0));
                        }
                    }
                    None => {
                        order.push(*block);
                        stack.pop();
                    }
                }
            }
        }
        order
    }

    /// The branches that decide whether each block is executed: those with an edge from which the block is always
    /// reached, while it may be missed from another. Calls with a landing pad are branches too.
    pub fn control_dependences(&self) -> Vec<Vec<ControlDependence>> {
        let after = self.post_dominators();
        let mut found = vec![Vec::new(); self.blocks.len()];
        for branch in self.indices().filter(|&block| self[block].successors.len() > 1) {
            let stop = after.immediate(branch);
            for (edge, &successor) in self[branch].successors.iter().enumerate() {
                let mut block = Some(successor);
                while let Some(here) = block.filter(|_| block != stop) {
                    found[here.index()].push(ControlDependence { branch, edge });
                    block = after.immediate(here);
                }
            }
        }
        found
    }
}

fn mark(graph: &[Vec<usize>], from: usize, marked: &mut [bool]) {
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut marked[node], true) {
            open.extend(&graph[node]);
        }
    }
}

impl Dominators {
    /// A virtual root is no block of the function.
    fn of(successors: &[Vec<usize>], root: usize, is_virtual: bool) -> Dominators {
        let order = reverse_postorder(successors, root);
        let mut position = vec![usize::MAX; successors.len()];
        order.iter().enumerate().for_each(|(at, &node)| position[node] = at);
        let mut predecessors = vec![Vec::new(); order.len()];
        for (at, &node) in order.iter().enumerate() {
            successors[node].iter().for_each(|&successor| predecessors[position[successor]].push(at));
        }
        // By position in the order, in which a dominator always comes first.
        let mut immediate = vec![usize::MAX; order.len()];
        immediate[0] = 0;
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for at in 1..order.len() {
                let known =
                    predecessors[at].iter().copied().filter(|&before| immediate[before] != usize::MAX);
                let Some(closest) = known.reduce(|a, b| meeting_point(&immediate, a, b)) else { continue };
                has_changed |= std::mem::replace(&mut immediate[at], closest) != closest;
            }
        }
        let mut found = vec![None; successors.len()];
        let mut is_reached = vec![false; successors.len()];
        for (at, &node) in order.iter().enumerate() {
            is_reached[node] = true;
            let dominator = order[immediate[at]];
            if node != root && !(is_virtual && dominator == root) {
                found[node] = u32::try_from(dominator).ok().map(BlockIndex);
            }
        }
        Dominators { immediate: found, is_reached }
    }
}

fn meeting_point(immediate: &[usize], a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        if a > b { a = immediate[a] } else { b = immediate[b] }
    }
    a
}

fn reverse_postorder(successors: &[Vec<usize>], root: usize) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    seen[root] = true;
    let mut order = Vec::new();
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        match successors[*node].get(*next) {
            Some(&successor) => {
                *next += 1;
                if !std::mem::replace(&mut seen[successor], true) {
                    stack.push((successor, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
