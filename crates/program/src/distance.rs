//! Distances through the code: how many blocks there are, at least, from any place to a given one (e-FCA of the paper on
//! guided test).
//!
//! A way may go into calls and, as the caller counts it, out of them. What it is like after a return depends on the call
//! stack of the thread, so two distances are kept for a place: to the goal without returning, and to the end of the
//! function. Who knows the stack adds them up, frame by frame.
//!
//! Both are shortest paths. To the end of functions it is Knuth's generalisation of Dijkstra's algorithm, because a call
//! is as long as the shortest way through the function that it calls. To the goal it is Dijkstra's own, backwards: from
//! the goal to the entry of its function, from there to all calls of it, and so on.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use threadbare_trace::{Distance, DistanceTable, Waypoint};

use crate::Program;
use crate::flow::{BlockEnd, BlockIndex, CallSite, Callee, Flow, ModuleCode, is_thread_starter};

/// An edge to a landing pad counts as so many blocks. Exceptions are rare, so another way is more likely.
const TO_LANDING_PAD: u32 = 16;

/// The blocks of many functions, with numbers of their own, and how they follow one another.
pub(crate) struct CodeGraph {
    pub(crate) functions: Vec<FunctionBlocks>,
    pub(crate) successors: Vec<Vec<Edge>>,
    /// For each block that ends with a call, what it calls.
    pub(crate) calls: HashMap<u32, CallBlock>,
    /// The block leaves its function.
    pub(crate) leaves: Vec<bool>,
    /// The least number of blocks from the start of a block to the end of its function.
    to_return: Vec<u32>,
    predecessors: Vec<Vec<Edge>>,
    /// The blocks that call each function, or start a thread with it.
    callers: Vec<Vec<u32>>,
    /// The blocks whose calls may lead to any function whose address is taken, and those functions.
    indirect_calls: Vec<u32>,
    pub(crate) is_address_taken: Vec<bool>,
}

pub(crate) struct FunctionBlocks {
    pub(crate) entry: u64,
    pub(crate) entry_block: u32,
    /// Each block's addresses, with their block numbers, which follow one another.
    pub(crate) blocks: Vec<(Range<u64>, u32)>,
}

#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) block: u32,
    pub(crate) kind: EdgeKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeKind {
    /// Behind the block, and behind its call if it has one.
    Next,
    /// Out of the middle of its call.
    LandingPad,
}

pub(crate) struct CallBlock {
    pub(crate) return_address: u64,
    pub(crate) target: CallTarget,
}

/// What a call leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallTarget {
    Function(u32),
    /// It starts a thread with this function, and returns.
    Thread(u32),
    /// Any function whose address is taken, at once or in a thread.
    Indirect,
    /// No code that is known.
    Elsewhere,
}

impl CodeGraph {
    /// The graph of all functions of a file.
    pub(crate) fn of(code: &ModuleCode<'_>) -> CodeGraph {
        let calls = code.call_graph();
        let mut entries: Vec<u64> = calls.functions().collect();
        entries.sort_unstable();
        let numbers: HashMap<u64, u32> = entries.iter().copied().zip(0..).collect();
        let mut graph = CodeGraph::with_functions(entries.len());
        for taken in calls.indirect_targets().iter().filter_map(|entry| numbers.get(entry)) {
            graph.is_address_taken[*taken as usize] = true;
        }
        for &entry in &entries {
            let sites: HashMap<u64, CallTarget> = calls
                .calls(entry)
                .iter()
                .map(|site| (site.return_address, target(code, site, &numbers)))
                .collect();
            if let Some(flow) = code.decode(entry) {
                graph.add(&flow, &sites);
            }
        }
        graph.finished()
    }

    /// A graph that is to have so many functions.
    pub(crate) fn with_functions(count: usize) -> CodeGraph {
        CodeGraph {
            functions: Vec::with_capacity(count),
            successors: Vec::new(),
            calls: HashMap::new(),
            leaves: Vec::new(),
            to_return: Vec::new(),
            predecessors: Vec::new(),
            callers: vec![Vec::new(); count],
            indirect_calls: Vec::new(),
            is_address_taken: vec![false; count],
        }
    }

    /// All functions are there. Works out what follows from them.
    pub(crate) fn finished(mut self) -> CodeGraph {
        self.connect();
        self.find_returns();
        self
    }

    /// Adds a function. `targets` says what its calls lead to, by the address that they return to.
    fn add(&mut self, flow: &Flow, targets: &HashMap<u64, CallTarget>) {
        let first = self.successors.len() as u32;
        let number = |index: BlockIndex| first + index.0;
        for (index, block) in flow.indices().zip(&flow.blocks) {
            let pad = block.call.as_ref().and_then(|call| call.landing_pad);
            let edge = |&successor: &BlockIndex| {
                let kind = if Some(successor) == pad { EdgeKind::LandingPad } else { EdgeKind::Next };
                Edge { block: number(successor), kind }
            };
            self.successors.push(block.successors.iter().map(edge).collect());
            self.leaves.push(matches!(
                block.end,
                BlockEnd::Return | BlockEnd::TailCall | BlockEnd::ConditionalTailCall
            ));
            if let Some(call) = &block.call {
                let return_address = call.return_address;
                let target = targets.get(&return_address).copied().unwrap_or(CallTarget::Elsewhere);
                self.calls.insert(number(index), CallBlock { return_address, target });
            }
        }
        let blocks = flow.indices().zip(&flow.blocks);
        self.functions.push(FunctionBlocks {
            entry: flow.entry,
            entry_block: number(flow.entry_block),
            blocks: blocks.map(|(index, block)| (block.range.clone(), number(index))).collect(),
        });
    }

    fn connect(&mut self) {
        self.predecessors = vec![Vec::new(); self.successors.len()];
        for (block, successors) in self.successors.iter().enumerate() {
            for edge in successors {
                self.predecessors[edge.block as usize].push(Edge { block: block as u32, kind: edge.kind });
            }
        }
        for (&block, call) in &self.calls {
            match call.target {
                CallTarget::Function(callee) | CallTarget::Thread(callee) => {
                    self.callers[callee as usize].push(block);
                }
                CallTarget::Indirect => self.indirect_calls.push(block),
                CallTarget::Elsewhere => {}
            }
        }
        // A hash map has no order of its own, and what follows must be the same every time.
        self.callers.iter_mut().for_each(|callers| callers.sort_unstable());
        self.indirect_calls.sort_unstable();
    }

    /// The function that a block calls and waits for, if that is known.
    fn callee(&self, block: u32) -> Option<&FunctionBlocks> {
        match self.calls.get(&block)?.target {
            CallTarget::Function(callee) => Some(&self.functions[callee as usize]),
            _ => None,
        }
    }

    /// Finds the shortest way from each block to the end of its function.
    ///
    /// A block is settled once, in the order of distances. A block that ends with a call of a known function waits for
    /// two things: a successor, and the entry of that function.
    fn find_returns(&mut self) {
        let mut after = vec![Distance::INFINITE; self.successors.len()];
        let mut to_return = vec![Distance::INFINITE; self.successors.len()];
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); self.functions.len()];
        for (&block, call) in &self.calls {
            if let CallTarget::Function(callee) = call.target {
                waiting[callee as usize].push(block);
            }
        }
        let entries = self.entries();
        let mut open: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let length = |to_return: &[u32], block: u32| {
            self.callee(block).map_or(0, |callee| to_return[callee.entry_block as usize])
        };
        for block in (0..self.successors.len() as u32).filter(|&block| self.leaves[block as usize]) {
            after[block as usize] = 0;
            if length(&to_return, block) != Distance::INFINITE {
                open.push(Reverse((1, block)));
            }
        }
        while let Some(Reverse((distance, block))) = open.pop() {
            if to_return[block as usize] != Distance::INFINITE {
                continue;
            }
            to_return[block as usize] = distance;
            let mut reached: Vec<u32> = Vec::new();
            for edge in &self.predecessors[block as usize] {
                match edge.kind {
                    EdgeKind::LandingPad => {
                        open.push(Reverse((distance.saturating_add(TO_LANDING_PAD), edge.block)));
                    }
                    EdgeKind::Next => {
                        let best = &mut after[edge.block as usize];
                        *best = (*best).min(distance);
                        reached.push(edge.block);
                    }
                }
            }
            if let Some(&function) = entries.get(&block) {
                reached.extend(&waiting[function]);
            }
            for block in reached {
                let (on, through) = (after[block as usize], length(&to_return, block));
                if on != Distance::INFINITE && through != Distance::INFINITE {
                    open.push(Reverse((1u32.saturating_add(on).saturating_add(through), block)));
                }
            }
        }
        self.to_return = to_return;
    }

    /// What it costs to go along an edge from a block, calls included; `None` if its call never returns.
    fn cost(&self, block: u32, kind: EdgeKind) -> Option<u32> {
        if kind == EdgeKind::LandingPad {
            return Some(TO_LANDING_PAD);
        }
        match self.callee(block).map(|callee| self.to_return[callee.entry_block as usize]) {
            None => Some(1),
            Some(Distance::INFINITE) => None,
            Some(length) => Some(1 + length),
        }
    }

    /// The functions by the block of their entry.
    fn entries(&self) -> HashMap<u32, usize> {
        self.functions.iter().enumerate().map(|(i, function)| (function.entry_block, i)).collect()
    }

    /// The blocks with the instructions before these addresses: for the address that a call returns to, its block.
    fn blocks_before(&self, addresses: &[u64]) -> Vec<u32> {
        let mut blocks = Vec::new();
        for function in &self.functions {
            for &address in addresses {
                let after = function.blocks.partition_point(|(range, _)| range.start < address);
                let found = after.checked_sub(1).map(|last| &function.blocks[last]);
                blocks.extend(found.filter(|(range, _)| address <= range.end).map(|&(_, block)| block));
            }
        }
        blocks
    }

    /// The distances to the code before any of these addresses, which calls return to. `stops` are addresses just behind
    /// instructions that threads stop before.
    pub(crate) fn distances(&self, goals: &[u64], stops: &[u64]) -> DistanceTable {
        let to_goal = self.to_goal(&self.blocks_before(goals));
        let mut entries = Vec::new();
        for &stop in stops {
            let block = self.blocks_before(&[stop]).into_iter().next();
            entries.extend(block.map(|block| (stop - 1, self.distance(&to_goal, block))));
        }
        for function in &self.functions {
            entries.push((function.entry, self.distance(&to_goal, function.entry_block)));
        }
        for (&block, call) in &self.calls {
            let ways = self.successors[block as usize].iter();
            let after = |from: &[u32]| {
                let way = |edge: &Edge| match edge.kind {
                    EdgeKind::LandingPad => from[edge.block as usize].saturating_add(TO_LANDING_PAD),
                    EdgeKind::Next => from[edge.block as usize],
                };
                ways.clone().map(way).min().unwrap_or(Distance::INFINITE)
            };
            let leaves = self.leaves[block as usize];
            let to_return = if leaves { 0 } else { after(&self.to_return) };
            entries.push((call.return_address, Distance { to_waypoint: after(&to_goal), to_return }));
        }
        entries.sort_unstable_by_key(|&(address, _)| address);
        DistanceTable { entries }
    }

    fn distance(&self, to_goal: &[u32], block: u32) -> Distance {
        Distance { to_waypoint: to_goal[block as usize], to_return: self.to_return[block as usize] }
    }

    /// The least number of blocks from the start of each block to a goal.
    fn to_goal(&self, goals: &[u32]) -> Vec<u32> {
        let entries = self.entries();
        // The more functions a call may lead to, the less likely it is that it leads to a given one.
        let taken = self.is_address_taken.iter().filter(|is_taken| **is_taken).count();
        let indirect_cost = 1 + taken.checked_ilog2().unwrap_or(0);
        let mut is_indirect_reached = false;
        let mut to_goal = vec![Distance::INFINITE; self.successors.len()];
        let mut open: BinaryHeap<Reverse<(u32, u32)>> =
            goals.iter().map(|&goal| Reverse((0, goal))).collect();
        while let Some(Reverse((distance, block))) = open.pop() {
            if to_goal[block as usize] <= distance {
                continue;
            }
            to_goal[block as usize] = distance;
            for edge in &self.predecessors[block as usize] {
                if let Some(cost) = self.cost(edge.block, edge.kind) {
                    open.push(Reverse((distance.saturating_add(cost), edge.block)));
                }
            }
            let Some(&function) = entries.get(&block) else { continue };
            open.extend(self.callers[function].iter().map(|&caller| Reverse((distance + 1, caller))));
            // The first such function is the nearest.
            if self.is_address_taken[function] && !std::mem::replace(&mut is_indirect_reached, true) {
                let distance = distance.saturating_add(indirect_cost);
                open.extend(self.indirect_calls.iter().map(|&caller| Reverse((distance, caller))));
            }
        }
        to_goal
    }
}

/// What a call leads to, among the functions with these numbers.
fn target(code: &ModuleCode<'_>, site: &CallSite, numbers: &HashMap<u64, u32>) -> CallTarget {
    if let Some(&number) = site.starts_thread_at.and_then(|entry| numbers.get(&entry)) {
        return CallTarget::Thread(number);
    }
    match &site.callee {
        Callee::Function(entry) => {
            numbers.get(entry).map_or(CallTarget::Elsewhere, |&n| CallTarget::Function(n))
        }
        Callee::Indirect => CallTarget::Indirect,
        // It calls a function that it is given.
        Callee::Import(name) if is_thread_starter(name) => CallTarget::Indirect,
        Callee::Import(name) => {
            let own = code.definition(name).and_then(|entry| numbers.get(&entry));
            own.map_or(CallTarget::Elsewhere, |&n| CallTarget::Function(n))
        }
    }
}

impl Program {
    /// The tables of distances to these waypoints, one for each. They have the entries of functions, the addresses that
    /// calls return to, and for threads that stop at a waypoint the address before it.
    pub fn distances(&self, waypoints: &[Waypoint]) -> Arc<[DistanceTable]> {
        let stops: BTreeSet<u64> = waypoints.iter().flat_map(|waypoint| waypoint.points.clone()).collect();
        let tables = waypoints.iter().map(|waypoint| {
            let mut entries = Vec::new();
            for code in self.instrumented_code() {
                let goals: Vec<u64> = waypoint.points.iter().map(|&point| code.linked(point)).collect();
                let stops: Vec<u64> = stops.iter().map(|&stop| code.linked(stop)).collect();
                let table = code.graph().distances(&goals, &stops).entries.into_iter();
                entries.extend(table.map(|(address, distance)| (code.relocated(address), distance)));
            }
            DistanceTable { entries }
        });
        tables.collect()
    }
}
