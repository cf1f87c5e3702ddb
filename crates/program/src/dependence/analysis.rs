//! Analyses functions in the order in which they need each other, and keeps what was found.

use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::callers::Callers;
use super::code::Code;
use super::summary::{Source, Sources, Summary};
use super::values::Values;
use super::{FunctionDependence, Gap, Load, library, summarize, targets, tracking};
use crate::flow::{BlockEnd, Call, Callee, Flow, ModuleCode};
use crate::symbols::Kind;
use crate::unpoisoned;

/// How often functions that call each other are looked at, for what they do to settle.
const MAX_ROUNDS: usize = 6;
/// More functions than this that all call each other are not looked at together.
const MAX_CYCLE: usize = 200;
/// Graphs of functions that are kept, for when an argument leads to one again.
const MAX_KEPT: usize = 512;

/// What was found out about a file, by entry of the function.
#[derive(Default)]
pub(crate) struct DependenceCache {
    summaries: Mutex<FxHashMap<u64, Arc<Summary>>>,
    functions: Mutex<FxHashMap<u64, Arc<FunctionDependence>>>,
    values: Mutex<FxHashMap<u64, Arc<Mutex<Values>>>>,
    pub(super) callers: OnceLock<Callers>,
    /// What something that a function is given depends on, at all its callers.
    pub(super) given: Mutex<FxHashMap<(u64, Source), Sources>>,
}

/// The analysis of one file.
#[derive(Clone, Copy)]
pub(super) struct Analysis<'program> {
    pub(super) code: ModuleCode<'program>,
    pub(super) cache: &'program DependenceCache,
}

impl<'program> Analysis<'program> {
    pub(super) fn new(code: ModuleCode<'program>) -> Analysis<'program> {
        Analysis { code, cache: &code.image().dependences }
    }

    pub(super) fn function(&self, entry: u64) -> Option<Arc<FunctionDependence>> {
        if let Some(known) = unpoisoned(&self.cache.functions).get(&entry) {
            return Some(Arc::clone(known));
        }
        let found = Arc::new(targets::of_function(self, entry)?);
        unpoisoned(&self.cache.functions).insert(entry, Arc::clone(&found));
        Some(found)
    }

    /// The graph of a function, with the final descriptions of what it calls.
    pub(super) fn values(&self, entry: u64) -> Option<Arc<Mutex<Values>>> {
        if let Some(known) = unpoisoned(&self.cache.values).get(&entry) {
            return Some(Arc::clone(known));
        }
        let flow = self.code.flow(entry)?;
        for callee in self.callees(&flow) {
            self.settle(callee);
        }
        let values = Arc::new(Mutex::new(self.graph(flow, &FxHashMap::default())));
        let mut kept = unpoisoned(&self.cache.values);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(entry, Arc::clone(&values));
        Some(values)
    }

    /// The function that a call leads to, if its code is looked at.
    pub(super) fn followed(&self, callee: &Callee) -> Option<u64> {
        let name = self.code.callee_name(callee);
        match callee {
            Callee::Function(_) if name.is_some_and(is_of_runtime) => None,
            Callee::Function(entry) => Some(*entry),
            Callee::Import(name) if is_known(name) => None,
            Callee::Import(name) => {
                let symbol = self.code.image().symbols.resolve(name)?;
                (symbol.kind == Kind::Function).then_some(symbol.address)
            }
            Callee::Indirect => None,
        }
    }

    fn callees(&self, flow: &Flow) -> Vec<u64> {
        let mut callees: Vec<u64> = flow.calls().filter_map(|call| self.followed(&call.callee)).collect();
        callees.sort_unstable();
        callees.dedup();
        callees
    }

    /// What a call does.
    fn call(&self, call: &Call, unsettled: &FxHashMap<u64, Arc<Summary>>) -> Arc<Summary> {
        let site = Load { address: call.address, hook: Some(call.return_address) };
        if let Some(entry) = self.followed(&call.callee) {
            let settled = || unpoisoned(&self.cache.summaries).get(&entry).cloned();
            let known = unsettled.get(&entry).cloned().or_else(settled);
            return known.unwrap_or_else(|| Arc::new(Summary::unknown(Gap::Recursion)));
        }
        let name = self.code.callee_name(&call.callee);
        let known = name.and_then(|name| library::summary(name, site));
        Arc::new(known.unwrap_or_else(|| {
            Summary::unknown(match name {
                Some(name) => Gap::External(name.into()),
                None => Gap::IndirectCall(call.address),
            })
        }))
    }

    fn graph(&self, flow: Arc<Flow>, unsettled: &FxHashMap<u64, Arc<Summary>>) -> Values {
        let calls =
            flow.blocks.iter().map(|block| Some(self.call(block.call.as_ref()?, unsettled))).collect();
        let mut code = Code::new(flow, calls);
        let is_read_only = |address: u64| self.code.is_constant(address);
        let tracking = tracking::track(&mut code, &is_read_only);
        let (hooks, deciders) = (self.hooks(&code), deciders(&code.flow));
        Values::new(code, tracking, hooks, deciders)
    }

    /// The hook of each access that has one, by number of the instruction.
    fn hooks(&self, code: &Code) -> FxHashMap<usize, u64> {
        let mut hooks = FxHashMap::default();
        for (index, block) in code.flow.indices().zip(&code.flow.blocks) {
            let Some(call) = &block.call else { continue };
            let Some(access) = self.code.announced_access(&code.flow, index) else { continue };
            let Some(holder) = code.flow.block_at(access) else { continue };
            let mut instructions = code.blocks[holder.index()].clone();
            if let Some(found) = instructions.find(|&number| code.instructions[number].ip() == access) {
                hooks.insert(found, call.return_address);
            }
        }
        hooks
    }

    /// Finds out what a function does, after those that it calls.
    ///
    /// This is Tarjan's search for cycles, with a list in place of recursion: calls are nested deeper than a stack allows.
    fn settle(&self, root: u64) {
        if unpoisoned(&self.cache.summaries).contains_key(&root) {
            return;
        }
        let mut search = Search::default();
        self.enter(&mut search, root);
        while let Some((entry, callees, next)) = search.path.last_mut() {
            let entry = *entry;
            if let Some(callee) = callees.get(*next).copied() {
                *next += 1;
                match search.numbers.get(&callee) {
                    Some(&number) if search.open.contains(&callee) => search.lower(entry, number),
                    Some(_) => {}
                    None if unpoisoned(&self.cache.summaries).contains_key(&callee) => {}
                    None => self.enter(&mut search, callee),
                }
                continue;
            }
            search.path.pop();
            let lowest = search.lowest[&entry];
            if let Some((caller, ..)) = search.path.last() {
                let caller = *caller;
                search.lower(caller, lowest);
            }
            if lowest == search.numbers[&entry] {
                self.settle_cycle(&search.close(entry));
            }
        }
    }

    fn enter(&self, search: &mut Search, entry: u64) {
        let callees = self.code.flow(entry).map(|flow| self.callees(&flow)).unwrap_or_default();
        let number = search.numbers.len();
        search.numbers.insert(entry, number);
        search.lowest.insert(entry, number);
        search.stack.push(entry);
        search.open.insert(entry);
        search.path.push((entry, callees, 0));
    }

    /// Finds out what functions do that all call each other: starting from nothing, until it no longer grows.
    fn settle_cycle(&self, cycle: &[u64]) {
        let mut found: FxHashMap<u64, Arc<Summary>> =
            cycle.iter().map(|&entry| (entry, Arc::new(Summary::unvisited()))).collect();
        let rounds = if cycle.len() > MAX_CYCLE { 0 } else { MAX_ROUNDS };
        let mut has_changed = true;
        for _ in 0..rounds {
            has_changed = false;
            for &entry in cycle {
                let summary = match self.code.flow(entry) {
                    Some(flow) => self.summarize(flow, &found),
                    None => Summary::unknown(Gap::External(format!("{entry:#x}").into())),
                };
                let old = found.insert(entry, Arc::new(summary));
                has_changed |= old != found.get(&entry).cloned();
            }
            let calls_itself =
                |entry: u64| self.code.flow(entry).is_some_and(|flow| self.callees(&flow).contains(&entry));
            let is_alone = matches!(*cycle, [only] if !calls_itself(only));
            if !has_changed || is_alone {
                has_changed = false;
                break;
            }
        }
        if has_changed {
            let unknown = Arc::new(Summary::unknown(Gap::Recursion));
            found.values_mut().for_each(|summary| *summary = Arc::clone(&unknown));
        }
        unpoisoned(&self.cache.summaries).extend(found);
    }

    fn summarize(&self, flow: Arc<Flow>, unsettled: &FxHashMap<u64, Arc<Summary>>) -> Summary {
        let mut values = self.graph(flow, unsettled);
        let gaps = own_gaps(&values);
        let mut summary = summarize::summarize(&mut values);
        if !gaps.is_empty() {
            summary.add_gaps(&gaps);
        }
        summary
    }
}

/// Why nothing about a function is complete.
pub(super) fn own_gaps(values: &Values) -> Vec<Gap> {
    let flow = &values.code.flow;
    let reachable = flow.blocks.iter().zip(&values.code.reachable).filter(|(_, reachable)| **reachable);
    let unresolved = reachable.filter(|(block, _)| block.end == BlockEnd::UnresolvedJump);
    let mut gaps: Vec<Gap> = unresolved.map(|(block, _)| Gap::UnresolvedJump(block.range.end)).collect();
    if values.tracking.is_lost {
        gaps.push(Gap::StackPointer(flow.entry));
    }
    gaps
}

/// Functions of ThreadSanitizer's runtime, or of a C library that is linked in, which are known by name.
fn is_of_runtime(name: &str) -> bool {
    const COPIES: [&str; 6] = ["memcpy", "memmove", "memset", "memcmp", "malloc", "free"];
    (name.starts_with("__tsan_")
        || name.starts_with("__interceptor_")
        || name.starts_with("pthread_")
        || COPIES.contains(&name))
        && is_known(name)
}

fn is_known(name: &str) -> bool {
    library::summary(name, Load { address: 0, hook: None }).is_some()
}

fn deciders(flow: &Flow) -> Vec<Vec<usize>> {
    let branches = flow.control_dependences().into_iter().map(|all| {
        let mut branches: Vec<usize> = all.into_iter().map(|known| known.branch.index()).collect();
        branches.sort_unstable();
        branches.dedup();
        branches
    });
    branches.collect()
}

/// The state of the search for cycles.
#[derive(Default)]
struct Search {
    /// The functions that are being looked at, each with its callees and how many of them were seen.
    path: Vec<(u64, Vec<u64>, usize)>,
    /// In the order in which they were found.
    numbers: FxHashMap<u64, usize>,
    /// The lowest number that is known to be reached from each.
    lowest: FxHashMap<u64, usize>,
    stack: Vec<u64>,
    open: FxHashSet<u64>,
}

impl Search {
    fn lower(&mut self, entry: u64, number: usize) {
        if let Some(lowest) = self.lowest.get_mut(&entry) {
            *lowest = number.min(*lowest);
        }
    }

    /// Takes the cycle that was entered at `first` off the stack.
    fn close(&mut self, first: u64) -> Vec<u64> {
        let start = self.stack.iter().rposition(|&entry| entry == first).unwrap_or_default();
        let cycle = self.stack.split_off(start);
        for entry in &cycle {
            self.open.remove(entry);
        }
        cycle
    }
}
