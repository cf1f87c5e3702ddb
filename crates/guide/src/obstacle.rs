//! What kept a run from a waypoint: a branch that went the other way.
//!
//! The run that came furthest is looked at, from the last waypoint that it passed on. If threads were in the function of
//! the next waypoint, a branch there decided against it: one that the waypoint depends on, and whose other side no thread
//! was seen on. If no thread was in that function, the calls of it are looked at in the same way, and so on outwards.
//! What the branch depends on are loads, and the run has their values. Only threads that may pass the waypoint are looked at.
//!
//! What may be done about it is in [`remedy`](mod@crate::remedy).

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use threadbare_program::Program;
use threadbare_program::flow::{BlockEnd, BlockIndex, Callee, ControlDependence, Flow, ModuleCode};
use threadbare_trace::{Event, EventIndex, Location, ThreadId, ThreadIndex, Trace, Waypoint, WhichThread};

use crate::remedy::{self, Decision, Remedy};

/// A branch that was in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub branch: Location,
    /// What it depends on, as the run last read it.
    pub reads: Vec<DecidingRead>,
    /// Not all that it depends on could be found out.
    pub may_depend_on_more: bool,
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

/// What is known of a run that stopped short of a waypoint.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    pub obstacle: Option<Obstacle>,
    /// What to try, the most promising first.
    pub remedies: Vec<Remedy>,
}

/// A run on its way through a sequence.
#[derive(Clone, Copy)]
pub struct Journey<'t> {
    pub trace: &'t Trace,
    pub waypoints: &'t [Waypoint],
    /// Who passed the first waypoints, and with which events.
    pub passes: &'t [(ThreadIndex, EventIndex)],
    /// Who was picked, decision by decision, and the event that came next.
    pub picks: &'t [(ThreadIndex, EventIndex)],
}

impl Journey<'_> {
    /// The waypoint that the run did not pass.
    pub fn next(&self) -> Option<&Waypoint> {
        self.waypoints.get(self.passes.len())
    }

    /// Whether a thread may pass the next waypoint.
    pub fn is_meant(&self, thread: ThreadIndex) -> bool {
        let passed =
            self.waypoints.iter().zip(self.passes).map(|(waypoint, pass)| (&waypoint.thread, pass.0));
        match self.next().map(|next| &next.thread) {
            None | Some(WhichThread::Any) => true,
            Some(WhichThread::Id(id)) => self.trace.thread(thread) == id,
            Some(variable) => {
                let is_other = |(of, bound): (&WhichThread, ThreadIndex)| {
                    matches!(of, WhichThread::Variable(_)) && (of == variable) != (bound == thread)
                };
                !passed.into_iter().any(is_other)
            }
        }
    }

    /// The waypoints that were passed before this event.
    pub fn passed_before(&self, event: EventIndex) -> usize {
        self.passes.iter().filter(|(_, pass)| *pass < event).count()
    }
}

/// How many functions are looked at on the way outwards.
const MAX_FUNCTIONS: usize = 10_000;

/// What kept a run from its next waypoint.
pub fn diagnose(program: &Program, journey: &Journey<'_>) -> Diagnosis {
    let Some(waypoint) = journey.next() else { return Diagnosis::default() };
    let last = journey.passes.last().map_or(EventIndex::new(0), |(_, event)| *event);
    let mut remedies = remedy::for_early(journey);
    // If no thread was near the waypoint since the last one was passed, threads may have gone past it before.
    let found = [last, EventIndex::new(0)].into_iter().find_map(|after| {
        let seen = Seen::of(program, journey, after);
        branch_against(program, &seen, waypoint)
    });
    let obstacle = found.map(|(code, flow, branch)| {
        let (hooks, is_complete) = loads_behind(&code, &flow, branch);
        let reads = deciding(journey, &hooks);
        let decision =
            Decision { program, reads: &reads, places: &hooks, comparison: flow.comparison(branch) };
        remedies.extend(remedy::for_reads(journey, &decision));
        // As long as nobody is known to store there, reads are no events.
        if reads.is_empty() && !hooks.is_empty() {
            remedies.push(Remedy::watching(&hooks));
        }
        describe(program, &code, &flow, branch, journey.trace, &reads, is_complete)
    });
    remedies.truncate(remedy::MAX_REMEDIES);
    for remedy in &mut remedies {
        remedy.beginning = journey.beginning(remedy);
    }
    Diagnosis { obstacle, remedies }
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
    /// Of the threads that may pass the next waypoint.
    fn of(program: &Program, journey: &Journey<'_>, after: EventIndex) -> Seen {
        let trace = journey.trace;
        let mut addresses: BTreeSet<u64> = BTreeSet::new();
        let mut stacks = HashSet::new();
        let events = trace.events.iter().skip(after.index());
        let events = events.map(|event| (event.thread, event.location, event.stack));
        let pending = trace.pending.iter().map(|pending| (pending.thread, pending.location, pending.stack));
        for (_, location, stack) in events.chain(pending).filter(|(thread, ..)| journey.is_meant(*thread)) {
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

/// The places of the loads that a branch depends on, the nearest first, and whether these are all.
fn loads_behind(code: &ModuleCode<'_>, flow: &Flow, branch: BlockIndex) -> (Vec<u64>, bool) {
    let address = flow.instructions(branch).last().map_or(0, |last| last.ip());
    let dependence = code.dependence(flow.entry);
    let loads = dependence.iter().flat_map(|dependence| &dependence.branches);
    let loads = loads.filter(|dependent| dependent.address == address).map(|dependent| &dependent.loads);
    let mut is_complete = false;
    let mut hooks: Vec<u64> = Vec::new();
    for set in loads {
        is_complete = set.is_complete();
        hooks.extend(set.all().filter_map(|load| load.hook));
    }
    // The loads next to the branch say most about it.
    let distances = distances_to(flow, branch);
    hooks.sort_by_key(|&hook| flow.block_at(hook - 1).map_or(usize::MAX, |block| distances[block.index()]));
    (hooks.into_iter().map(|hook| code.relocated(hook)).collect(), is_complete)
}

fn describe(
    program: &Program,
    code: &ModuleCode<'_>,
    flow: &Flow,
    branch: BlockIndex,
    trace: &Trace,
    reads: &[EventIndex],
    is_complete: bool,
) -> Obstacle {
    let end = flow.instructions(branch).last().map_or(0, |last| last.next_ip());
    let read = |&index: &EventIndex| {
        let event = &trace.events[index.index()];
        DecidingRead {
            variable: trace.object(event.object).display.clone(),
            value: event.value,
            size: event.size,
            thread: trace.thread(event.thread).clone(),
            location: trace.location(event.location).clone(),
        }
    };
    Obstacle {
        branch: program.location(code.relocated(end)),
        reads: reads.iter().map(read).collect(),
        may_depend_on_more: !is_complete,
    }
}

/// The last reads at these places, one for each variable, by threads that may pass the next waypoint.
fn deciding(journey: &Journey<'_>, hooks: &[u64]) -> Vec<EventIndex> {
    let trace = journey.trace;
    let mut last: HashMap<u64, (EventIndex, &Event)> = HashMap::new();
    let is_meant = |(_, event): &(EventIndex, &Event)| event.kind.is_read() && journey.is_meant(event.thread);
    for (index, event) in trace.indexed_events().filter(is_meant) {
        last.insert(trace.location(event.location).address, (index, event));
    }
    let mut objects = HashSet::new();
    let reads = hooks.iter().filter_map(|hook| last.get(hook));
    reads.filter(|(_, event)| objects.insert(event.object)).map(|(index, _)| *index).collect()
}
