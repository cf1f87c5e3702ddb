//! What kept a run from a waypoint: a branch that went the other way.
//!
//! The run that came furthest is looked at, from the last waypoint that it passed on. If threads were in the function of
//! the next waypoint, a branch there decided against it: one that the waypoint depends on, and whose other side no thread
//! was seen on. If no thread was in that function, the calls of it are looked at in the same way, and so on outwards.
//! What the branch depends on are loads. The run has their values, and the stores of other threads that could have made
//! them others. A store that the run did not come to is known by the code, if it is to a variable with static storage.
//!
//! The branch may go the other way if such a store is done before the read, or if the read is done before a waypoint that
//! stores. Both are a [`Detour`]: one more place to be passed. Or the store is [`PutOff`] until the waypoint is passed, or the
//! read until those are that come before it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use threadbare_program::Program;
use threadbare_program::flow::{BlockEnd, BlockIndex, Callee, ControlDependence, Flow, ModuleCode};
use threadbare_search::reorder::lockset::{CriticalSection, Locksets};
use threadbare_trace::{Event, EventIndex, KeptBack, Location, ObjectName, ThreadId, Trace, Waypoint};

/// A branch that was in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub branch: Location,
    /// What it depends on, as the run last read it.
    pub reads: Vec<DecidingRead>,
    /// Not all that it depends on could be found out.
    pub may_depend_on_more: bool,
    /// Stores by others to what was read. First come those that other threads did in the run.
    pub stores: Vec<Detour>,
    /// Reads of what a waypoint had stored: they could come before it.
    pub reads_first: Vec<Detour>,
    /// Stores that other threads had done before, and reads that came too early: they could come later.
    pub put_off: Vec<PutOff>,
}

impl Obstacle {
    /// The same branch went the same way for the same reason.
    pub fn is_same(&self, other: &Obstacle) -> bool {
        let values = |obstacle: &Obstacle| -> Vec<(String, u64)> {
            obstacle.reads.iter().map(|read| (read.variable.clone(), read.value)).collect()
        };
        self.branch == other.branch && values(self) == values(other)
    }
}

/// A place that may be passed on the way, so that the branch goes the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The address that the operation returns to.
    pub place: u64,
    /// It is to come after so many waypoints.
    pub passed: usize,
}

/// An operation that may come later, so that the branch goes the other way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOff {
    /// Its thread stays before it, or before the locks that it holds there.
    pub kept_back: KeptBack,
    /// The thread stays while one of these waypoints is the next.
    pub until: Range<usize>,
}

/// A read that a branch depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingRead {
    pub variable: String,
    pub value: u64,
    /// Of the value, in bytes.
    pub size: u32,
    pub thread: ThreadId,
    pub location: Location,
}

/// How many functions are looked at on the way outwards.
const MAX_FUNCTIONS: usize = 10_000;
/// How many stores are named.
const MAX_STORES: usize = 8;

/// The branch that kept the run of `trace` from `waypoint`. It passed those before it with the events `passes`.
pub fn obstacle(
    program: &Program,
    trace: &Trace,
    waypoint: &Waypoint,
    passes: &[EventIndex],
) -> Option<Obstacle> {
    let last = passes.last().copied().unwrap_or(EventIndex::new(0));
    // If no thread was near the waypoint since the last one was passed, threads may have gone past it before.
    [last, EventIndex::new(0)].into_iter().find_map(|after| {
        let seen = Seen::of(program, trace, after);
        let (code, flow, branch) = branch_against(program, &seen, waypoint)?;
        Some(describe(program, &code, &flow, branch, trace, passes))
    })
}

/// The branch that decided against a waypoint, where threads were at these places, with the function that it is in.
fn branch_against<'p>(
    program: &'p Program,
    seen: &Seen,
    waypoint: &Waypoint,
) -> Option<(ModuleCode<'p>, Arc<Flow>, BlockIndex)> {
    let code = program.code_at(*waypoint.points.first()?)?;
    let mut open: VecDeque<(u64, BlockIndex)> = VecDeque::new();
    for &point in &waypoint.points {
        let linked = code.linked(point);
        let Some(flow) = code.function_at(linked - 1).and_then(|entry| code.flow(entry)) else { continue };
        open.extend(flow.block_at(linked - 1).map(|block| (flow.entry, block)));
    }
    let mut looked_at: HashSet<(u64, BlockIndex)> = HashSet::new();
    while let Some((entry, block)) = open.pop_front() {
        if looked_at.len() > MAX_FUNCTIONS || !looked_at.insert((entry, block)) {
            continue;
        }
        let flow = code.flow(entry)?;
        if let Some(addresses) = seen.by_function.get(&code.relocated(entry)) {
            if let Some(branch) = untaken_branch(&code, &flow, block, addresses) {
                return Some((code, flow, branch));
            }
            continue;
        }
        for &caller in code.call_graph().callers(entry) {
            let Some(flow) = code.flow(caller) else { continue };
            let sites = code.call_graph().calls(caller).iter();
            let calls = sites.filter(|site| {
                site.callee == Callee::Function(entry) || site.starts_thread_at == Some(entry)
            });
            for site in calls {
                open.extend(flow.block_of_call(site.return_address).map(|block| (caller, block)));
            }
        }
    }
    None
}

/// The places that threads were seen at: addresses that operations, and the calls that led to them, return to.
struct Seen {
    /// By the entry of the function, in the process.
    by_function: HashMap<u64, BTreeSet<u64>>,
}

impl Seen {
    fn of(program: &Program, trace: &Trace, after: EventIndex) -> Seen {
        let mut addresses: BTreeSet<u64> = BTreeSet::new();
        let mut stacks = HashSet::new();
        let events = trace.events.iter().skip(after.index());
        let events = events.map(|event| (event.location, event.stack));
        let pending = trace.pending.iter().map(|pending| (pending.location, pending.stack));
        for (location, stack) in events.chain(pending) {
            addresses.insert(trace.location(location).address);
            if stacks.insert(stack) {
                addresses.extend(trace.calls(location, stack).map(|call| trace.location(call).address));
            }
        }
        let mut by_function: HashMap<u64, BTreeSet<u64>> = HashMap::new();
        for address in addresses.into_iter().filter(|&address| address != 0) {
            let Some(code) = program.code_at(address) else { continue };
            if let Some(entry) = code.function_at(code.linked(address) - 1) {
                by_function.entry(code.relocated(entry)).or_default().insert(address);
            }
        }
        Seen { by_function }
    }
}

/// The branch that decided against `block`, where threads were seen at these addresses of the function: the nearest one
/// that a thread came to and that nobody left by the right edge.
fn untaken_branch(
    code: &ModuleCode<'_>,
    flow: &Flow,
    block: BlockIndex,
    addresses: &BTreeSet<u64>,
) -> Option<BlockIndex> {
    let seen: Vec<BlockIndex> =
        addresses.iter().filter_map(|&address| flow.block_at(code.linked(address) - 1)).collect();
    let (dominators, post_dominators) = (flow.dominators(), flow.post_dominators());
    // Blocks in which nothing happens that others can notice are not seen. Those that every way to or from a seen block
    // leads through were passed.
    let was_passed = |block: BlockIndex| {
        seen.iter().any(|&seen| dominators.dominates(block, seen) || post_dominators.dominates(block, seen))
    };
    // A thread behind the edge has taken it, if there is no other way there.
    let was_taken = |edge: &ControlDependence| {
        let target = flow[edge.branch].successors[edge.edge];
        seen.iter().any(|&seen| dominators.dominates(target, seen))
    };
    let distances = distances_to(flow, block);
    let dependences = all_dependences(&flow.control_dependences(), block);
    let open = dependences.into_iter().filter(|edge| was_passed(edge.branch) && !was_taken(edge));
    let nearest = open.min_by_key(|edge| distances[flow[edge.branch].successors[edge.edge].index()])?;
    matches!(flow[nearest.branch].end, BlockEnd::Branch | BlockEnd::Switch(_)).then_some(nearest.branch)
}

/// For each block, how many others there are from it to `target`, at least.
fn distances_to(flow: &Flow, target: BlockIndex) -> Vec<usize> {
    let predecessors = flow.predecessors();
    let mut distances = vec![usize::MAX; predecessors.len()];
    distances[target.index()] = 0;
    let mut open = VecDeque::from([target]);
    while let Some(block) = open.pop_front() {
        for &before in &predecessors[block.index()] {
            if distances[before.index()] == usize::MAX {
                distances[before.index()] = distances[block.index()] + 1;
                open.push_back(before);
            }
        }
    }
    distances
}

/// The edges that a block depends on, and those that their branches depend on.
fn all_dependences(dependences: &[Vec<ControlDependence>], block: BlockIndex) -> BTreeSet<ControlDependence> {
    let mut found: BTreeSet<ControlDependence> = BTreeSet::new();
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        for &edge in &dependences[block.index()] {
            if found.insert(edge) {
                open.push(edge.branch);
            }
        }
    }
    found
}

fn describe(
    program: &Program,
    code: &ModuleCode<'_>,
    flow: &Flow,
    branch: BlockIndex,
    trace: &Trace,
    passes: &[EventIndex],
) -> Obstacle {
    let last = flow.instructions(branch).last();
    let (address, end) = last.map_or((0, 0), |last| (last.ip(), last.next_ip()));
    let dependence = code.dependence(flow.entry);
    let loads = dependence.iter().flat_map(|dependence| &dependence.branches);
    let loads = loads.filter(|dependent| dependent.address == address).map(|dependent| &dependent.loads);
    let mut may_depend_on_more = true;
    let mut hooks: Vec<u64> = Vec::new();
    for set in loads {
        may_depend_on_more = !set.is_complete();
        hooks.extend(set.all().filter_map(|load| load.hook));
    }
    // The loads next to the branch say most about it.
    let distances = distances_to(flow, branch);
    hooks.sort_by_key(|&hook| flow.block_at(hook - 1).map_or(usize::MAX, |block| distances[block.index()]));
    let hooks: Vec<u64> = hooks.into_iter().map(|hook| code.relocated(hook)).collect();
    let reads = deciding(trace, &hooks);
    let mut stores: Vec<Detour> = Vec::new();
    let mut reads_first: Vec<Detour> = Vec::new();
    for &(index, read) in &reads {
        let passed = passes.iter().filter(|&&pass| pass.index() < index).count();
        stores.extend(done_stores(trace, read).into_iter().map(|place| Detour { place, passed }));
        let source = last_store(trace, index, read);
        if let Some(pass) = source.and_then(|store| passes.iter().position(|pass| pass.index() == store)) {
            let place = trace.location(read.location).address;
            reads_first.push(Detour { place, passed: pass });
        }
    }
    for &(index, read) in &reads {
        let passed = passes.iter().filter(|&&pass| pass.index() < index).count();
        let named = stores_to(program, &trace.object(read.object).name);
        stores.extend(named.into_iter().map(|place| Detour { place, passed }));
    }
    // What only tries to store, and has read the value, is the read itself.
    let mut known: HashSet<u64> = hooks.into_iter().collect();
    stores.retain(|store| known.insert(store.place));
    stores.truncate(MAX_STORES);
    let put_off = put_off(trace, &reads, passes);
    let reads = reads.into_iter().map(|(_, event)| DecidingRead {
        variable: trace.object(event.object).display.clone(),
        value: event.value,
        size: event.size,
        thread: trace.thread(event.thread).clone(),
        location: trace.location(event.location).clone(),
    });
    let reads = reads.collect();
    let branch = program.location(code.relocated(end));
    Obstacle { branch, reads, may_depend_on_more, stores, reads_first, put_off }
}

/// The last reads at these places, one for each variable, with their numbers in the trace.
fn deciding<'t>(trace: &'t Trace, hooks: &[u64]) -> Vec<(usize, &'t Event)> {
    let mut last: HashMap<u64, (usize, &Event)> = HashMap::new();
    for (index, event) in trace.events.iter().enumerate().filter(|(_, event)| event.kind.is_read()) {
        last.insert(trace.location(event.location).address, (index, event));
    }
    let mut objects = HashSet::new();
    let reads = hooks.iter().filter_map(|hook| last.get(hook)).copied();
    reads.filter(|(_, event)| objects.insert(event.object)).collect()
}

/// What could come later. A read waits for the waypoints that the run passed after it. A store that came before a read waits
/// for the next waypoint too.
fn put_off(trace: &Trace, reads: &[(usize, &Event)], passes: &[EventIndex]) -> Vec<PutOff> {
    let locksets = Locksets::of(trace).unwrap_or_default();
    let put_off = |index: EventIndex, until: usize| {
        let event = &trace.events[index.index()];
        let is_around = |section: &&CriticalSection| {
            section.thread == event.thread
                && section.acquire < index
                && section.release.is_none_or(|release| release > index)
        };
        let outermost = locksets.sections().iter().find(is_around).map_or(index, |section| section.acquire);
        let before = trace.location(trace.events[outermost.index()].location).address;
        let first = passes.iter().filter(|&&pass| pass < outermost).count();
        let kept_back = KeptBack { thread: trace.thread(event.thread).clone(), before };
        PutOff { kept_back, until: first..until }
    };
    let mut found: Vec<PutOff> = Vec::new();
    for &(at, read) in reads {
        let is_store = |(_, event): &(EventIndex, &Event)| {
            event.kind.is_write() && event.object == read.object && event.thread != read.thread
        };
        let stores = trace.indexed_events().take(at).filter(is_store);
        let stores = stores.map(|(index, _)| put_off(index, passes.len() + 1));
        for new in [put_off(EventIndex::at(at), passes.len())].into_iter().chain(stores) {
            if !new.until.is_empty() && !found.iter().any(|known| known.kept_back == new.kept_back) {
                found.push(new);
            }
            if found.len() == MAX_STORES {
                return found;
            }
        }
    }
    found
}

/// The places where other threads stored to what was read.
fn done_stores(trace: &Trace, read: &Event) -> BTreeSet<u64> {
    let is_store =
        |event: &&Event| event.kind.is_write() && event.object == read.object && event.thread != read.thread;
    trace.events.iter().filter(is_store).map(|event| trace.location(event.location).address).collect()
}

/// The number of the store, by another thread, that a read has seen.
fn last_store(trace: &Trace, index: usize, read: &Event) -> Option<usize> {
    let is_store = |event: &Event| event.kind.is_write() && event.object == read.object;
    let store = trace.events[..index].iter().rposition(is_store)?;
    (trace.events[store].thread != read.thread).then_some(store)
}

/// The places that store to a variable with static storage, by the code.
fn stores_to(program: &Program, variable: &ObjectName) -> Vec<u64> {
    let stores = || {
        let ObjectName::Global { symbol, offset } = variable else { return None };
        let address = program.symbol_address(symbol)?.wrapping_add(*offset);
        let code = program.code_at(address)?;
        let stores = code.stores_to(code.linked(address)).iter();
        Some(stores.map(|&store| code.relocated(store)).collect())
    };
    stores().unwrap_or_default()
}
