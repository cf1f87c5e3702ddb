//! What kept a run from a waypoint: a branch that went the other way.
//!
//! The run that came furthest is looked at, from the last waypoint that it passed on. If threads were in the function of
//! the next waypoint, a branch there decided against it: one that the waypoint depends on, and whose other side no thread
//! was seen on. If no thread was in that function, the calls of it are looked at in the same way, and so on outwards.
//! What the branch depends on are loads. The run has their values, and the stores of other threads that could have made
//! them others. A store that the run did not come to is known by the code, if it is to a variable with static storage.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use threadbare_program::Program;
use threadbare_program::flow::{BlockEnd, BlockIndex, Callee, ControlDependence, Flow, ModuleCode};
use threadbare_trace::{Event, EventIndex, Location, ObjectName, ThreadId, Trace, Waypoint};

/// A branch that was in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub branch: Location,
    /// What it depends on, as the run last read it.
    pub reads: Vec<DecidingRead>,
    /// Not all that it depends on could be found out.
    pub may_depend_on_more: bool,
    /// Where others store to what was read: the addresses that the operations return to. First come those that other
    /// threads did in the run.
    pub stores: Vec<u64>,
}

/// A read that a branch depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingRead {
    pub variable: String,
    pub value: u64,
    pub thread: ThreadId,
    pub location: Location,
}

/// How many functions are looked at on the way outwards.
const MAX_FUNCTIONS: usize = 10_000;
/// How many stores are named.
const MAX_STORES: usize = 8;

/// The branch that kept the run of `trace` from `waypoint`, from the event `after` on.
pub fn obstacle(
    program: &Program,
    trace: &Trace,
    waypoint: &Waypoint,
    after: EventIndex,
) -> Option<Obstacle> {
    let seen = Seen::of(program, trace, after);
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
                return Some(describe(program, &code, &flow, branch, trace));
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

/// The branch that decided against `block`, where threads were seen at these addresses of the function.
fn untaken_branch(
    code: &ModuleCode<'_>,
    flow: &Flow,
    block: BlockIndex,
    addresses: &BTreeSet<u64>,
) -> Option<BlockIndex> {
    let dependences = flow.control_dependences();
    let seen: Vec<BlockIndex> =
        addresses.iter().filter_map(|&address| flow.block_at(code.linked(address) - 1)).collect();
    // A thread behind the edge has taken it, if there is no other way there.
    let dominators = flow.dominators();
    let was_taken = |edge: &ControlDependence| {
        let target = flow[edge.branch].successors[edge.edge];
        seen.iter().any(|&seen| dominators.dominates(target, seen))
    };
    // Outermost first: a branch inside of one that was not taken was not come to.
    let mut needed: Vec<ControlDependence> = all_dependences(&dependences, block).into_iter().collect();
    needed.sort_by_key(|edge| all_dependences(&dependences, edge.branch).len());
    let untaken = needed.into_iter().find(|edge| !was_taken(edge))?;
    matches!(flow[untaken.branch].end, BlockEnd::Branch | BlockEnd::Switch(_)).then_some(untaken.branch)
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
) -> Obstacle {
    let last = flow.instructions(branch).last();
    let (address, end) = last.map_or((0, 0), |last| (last.ip(), last.next_ip()));
    let dependence = code.dependence(flow.entry);
    let loads = dependence.iter().flat_map(|dependence| &dependence.branches);
    let loads = loads.filter(|dependent| dependent.address == address).map(|dependent| &dependent.loads);
    let mut may_depend_on_more = true;
    let mut hooks: BTreeSet<u64> = BTreeSet::new();
    for set in loads {
        may_depend_on_more = !set.is_complete();
        hooks.extend(set.all().filter_map(|load| load.hook).map(|hook| code.relocated(hook)));
    }
    let (reads, stores) = deciding(program, trace, &hooks);
    Obstacle { branch: program.location(code.relocated(end)), reads, may_depend_on_more, stores }
}

/// The last reads at these places, one for each variable, and the places where others wrote to what was read.
fn deciding(program: &Program, trace: &Trace, hooks: &BTreeSet<u64>) -> (Vec<DecidingRead>, Vec<u64>) {
    let mut last: BTreeMap<usize, &Event> = BTreeMap::new();
    let reads =
        |event: &&Event| event.kind.is_read() && hooks.contains(&trace.location(event.location).address);
    for event in trace.events.iter().filter(reads) {
        last.insert(event.object.index(), event);
    }
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    for event in trace.events.iter().filter(|event| event.kind.is_write()) {
        if last.get(&event.object.index()).is_some_and(|read| read.thread != event.thread) {
            seen.insert(trace.location(event.location).address);
        }
    }
    let named: BTreeSet<u64> =
        last.values().flat_map(|read| stores_to(program, &trace.object(read.object).name)).collect();
    let stores: Vec<u64> = seen.iter().copied().chain(named.difference(&seen).copied()).collect();
    let reads = last.into_values().map(|event| DecidingRead {
        variable: trace.object(event.object).display.clone(),
        value: event.value,
        thread: trace.thread(event.thread).clone(),
        location: trace.location(event.location).clone(),
    });
    (reads.collect(), stores.into_iter().take(MAX_STORES).collect())
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
