//! Iterative context bounding for t-thread bugs (Algorithm 1), over all tuples at once.
//!
//! A work item is a state of the program and the thread that is preempted there. Each is queued under the first tuple
//! of the ranking that has it, and the first in the queue is always next; so tuples are searched in their order, and
//! nothing that an earlier tuple had is run again. Within a tuple items stand by variables, if these are taken some
//! at a time, then by preemptions (the paper's work queues); of those, preemptions before accesses that another thread
//! could come before are first, and then what the latest run led to.
//!
//! A state is reached by the turns of an earlier run, so that a worker's snapshots serve; from there threads go by
//! priority. What follows depends on the state and the priorities only, so nothing is run, or gone on with, where
//! both were met before.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use threadbare_trace::{EventKind, Order, Plan, Policy, ThreadId, Turns};

use crate::backlog::Backlog;
use crate::contested::Contested;
use crate::feedback::{Decision, Operation, Place};
use crate::ground::Ground;
use crate::orders::Orders;
use crate::tuple::{Demand, Ranking};
use crate::{Feedback, Next, Schedule, Settings, Strategy, Variables};

/// A state from which schedules are still to be run: `prio` of the paper is the `order`-th for `demand.threads`
/// threads, with the preempted thread last.
#[derive(Clone, Debug)]
struct WorkItem {
    /// The state is reached as far as these picks go, up to `len`.
    picks: Arc<[u16]>,
    len: usize,
    state: u64,
    /// The thread to be preempted; none where the program begins.
    preempted: Option<ThreadId>,
    order: usize,
    demand: Demand,
    /// How many of its preemptions are before accesses that nobody else could come before.
    idle: u32,
}

/// Where an item stands: place of the tuple, variables, preemptions, idle ones, the run it came from, and when it came.
type Key = (usize, Vec<u64>, u32, u32, Reverse<u64>, u64);

/// A run that was asked for.
struct Asked {
    item: WorkItem,
    order: Order,
    beginning: u64,
}

/// RankChecker's search.
pub struct Rank {
    ground: Ground,
    /// What every plan is made from: turns mean something only for the memory that was tracked when they were taken.
    plan: Plan,
    ranking: Ranking,
    orders: Orders,
    queue: Backlog<Key, WorkItem>,
    /// Counts items.
    count: u64,
    /// States with priorities that were run on from, as one number each.
    met: HashSet<u64>,
    most_met: usize,
    asked: VecDeque<Asked>,
    asked_for: u64,
    /// How often the search has begun, and the tuple that it is at.
    beginnings: u64,
    place: usize,
    /// Runs since the search last began, and whether memory has turned up since that it did not know of.
    runs: u64,
    incomplete: bool,
}

/// Memory that turns up within the first runs is taken into account at once; later, when the next tuple begins.
const EARLY: u64 = 32;
/// Of the runs that begin like another, one in so many looks for shared memory that is not known yet.
const LEARNING: u64 = 8;

impl Rank {
    pub fn new(settings: Settings) -> Rank {
        let plan = Plan { decisions: true, ..settings.plan };
        let mut rank = Rank {
            plan: plan.clone(),
            ground: Ground::new(plan),
            ranking: Ranking::new(settings.tuples),
            orders: Orders::default(),
            queue: Backlog::new(settings.memory / 2),
            count: 0,
            met: HashSet::new(),
            most_met: (settings.memory / 2 / 16) as usize,
            asked: VecDeque::new(),
            asked_for: 0,
            beginnings: 0,
            place: 0,
            runs: 0,
            incomplete: false,
        };
        rank.begin();
        rank
    }

    /// The work queue begins with the initial state.
    fn begin(&mut self) {
        self.plan = self.ground.plan.clone();
        self.queue.clear();
        self.met.clear();
        self.beginnings += 1;
        (self.place, self.runs, self.incomplete) = (0, 0, false);
        let demand = Demand { threads: 2, repeats: 1, ..Demand::default() };
        let picks = Arc::new([]);
        let item = WorkItem { picks, len: 0, state: 0, preempted: None, order: 0, demand, idle: 0 };
        self.push(item, 0);
    }

    fn push(&mut self, item: WorkItem, shared: u64) {
        let Some(place) = self.ranking.place(&item.demand) else { return };
        let taken_apart = matches!(self.ranking.tuple(place).v, Variables::Some(_));
        let variables = if taken_apart { item.demand.variables.clone() } else { Vec::new() };
        self.count += 1;
        let key = (place, variables, item.demand.preemptions, item.idle, Reverse(self.runs), self.count);
        self.queue.push(key, item, shared);
    }

    /// The first item in the queue, with the first of its orders that leads to anything new.
    fn pop(&mut self) -> Option<(WorkItem, Order)> {
        while let Some((key, item)) = self.queue.pop() {
            self.place = key.0;
            let orders = match (item.demand.threads, &item.preempted) {
                (2, None) => self.orders.at_the_beginning(),
                (threads, _) => self.orders.of(threads),
            };
            let Some(order) = orders.get(item.order) else {
                self.next_threads(item);
                continue;
            };
            let order = Order { last: item.preempted.clone(), ..order.clone() };
            self.queue.push(key, WorkItem { order: item.order + 1, ..item.clone() }, 0);
            if self.meet(item.state, &order) {
                return Some((item, order));
            }
        }
        None
    }

    /// All orders for `t` threads were tried in this state: those for one thread more are another tuple's.
    fn next_threads(&mut self, item: WorkItem) {
        let threads = item.demand.threads + 1;
        if threads <= self.orders.most() {
            let demand = Demand { threads, ..item.demand.clone() };
            self.push(WorkItem { order: 0, demand, ..item }, 0);
        }
    }

    /// Notes that the search goes on from here; `false` if it has before.
    fn meet(&mut self, state: u64, order: &Order) -> bool {
        let mut hasher = DefaultHasher::new();
        (state, order).hash(&mut hasher);
        let met = hasher.finish();
        if self.met.len() < self.most_met { self.met.insert(met) } else { !self.met.contains(&met) }
    }

    /// The rest of the paper's `Search`: wherever the run came to an operation at which it could have been preempted
    /// there is more work.
    fn search(&mut self, asked: &Asked, feedback: &Feedback) {
        let picks: Arc<[u16]> = feedback.picks().map(|thread| thread as u16).collect();
        let points = points(&feedback.decisions);
        let contested = Contested::of(&feedback.decisions);
        let shared = picks.len() as u64 * 2 / points.len().max(1) as u64;
        let mut met_from = feedback.decisions.len();
        for (at, decision) in feedback.decisions.iter().enumerate().skip(asked.item.len + 1) {
            if !self.meet(decision.state, &asked.order) {
                met_from = at;
                break;
            }
        }
        for point in points.iter().filter(|point| (asked.item.len..met_from).contains(&point.at)) {
            let Some(preempted) = feedback.threads.get(point.thread as usize) else { continue };
            let item = WorkItem {
                picks: Arc::clone(&picks),
                len: point.at,
                state: feedback.decisions[point.at].state,
                preempted: Some(preempted.clone()),
                order: 0,
                demand: more(&asked.item.demand, point),
                idle: asked.item.idle + u32::from(point.is_idle(&contested)),
            };
            self.push(item, shared);
        }
    }
}

/// What a schedule demands that is also preempted at `point`.
fn more(demand: &Demand, point: &Point) -> Demand {
    let mut variables = demand.variables.clone();
    if let Some(variable) = point.variable
        && let Err(at) = variables.binary_search(&variable)
    {
        variables.insert(at, variable);
    }
    Demand {
        preemptions: demand.preemptions + 1,
        variables,
        threads: demand.threads,
        repeats: demand.repeats.max(point.repeats),
    }
}

/// A decision at which the running thread could have been preempted: it stands before an operation that matters to
/// others, and somebody else could go.
struct Point {
    at: usize,
    thread: u32,
    /// The memory that it is about to access; none for synchronisation.
    variable: Option<u64>,
    /// How often a thread has come to this place by now.
    repeats: u32,
}

impl Point {
    fn is_idle(&self, contested: &Contested) -> bool {
        self.variable.is_some_and(|variable| !contested.contains(self.thread, variable))
    }
}

fn points(decisions: &[Decision]) -> Vec<Point> {
    let pending = pending(decisions);
    let mut passed: HashMap<Place, u32> = HashMap::new();
    let mut points = Vec::new();
    for (at, decision) in decisions.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| decisions[before].picked);
        if let (Some(thread), Some(operation)) = (before, pending[at])
            && is_preemption_point(operation.kind)
            && decision.alternatives.len() > 1
            && decision.alternatives.contains(&thread)
        {
            let plain = matches!(operation.kind, EventKind::Read | EventKind::Write);
            let repeats = passed.get(&operation.place).copied().unwrap_or(0) + 1;
            points.push(Point { at, thread, variable: plain.then_some(operation.object), repeats });
        }
        if let Some(operation) = decision.operation {
            *passed.entry(operation.place).or_default() += 1;
        }
    }
    points
}

/// For each decision, what the thread that was picked before it stands before.
fn pending(decisions: &[Decision]) -> Vec<Option<Operation>> {
    let mut upcoming: HashMap<u32, Operation> = HashMap::new();
    let mut pending = vec![None; decisions.len()];
    for at in (1..decisions.len()).rev() {
        if let Some(operation) = decisions[at].operation {
            upcoming.insert(decisions[at].picked, operation);
        }
        pending[at] = upcoming.get(&decisions[at - 1].picked).copied();
    }
    pending
}

/// To be preempted before any other operation is the same as before the thread's next: it does nothing that others
/// could come before or after. (Whoever waits for an unlock waits as well for what comes after it.)
fn is_preemption_point(kind: EventKind) -> bool {
    !kind.is_silent()
        && !matches!(
            kind,
            EventKind::Begin
                | EventKind::End
                | EventKind::Exit
                | EventKind::Join
                | EventKind::Detach
                | EventKind::Fence
                | EventKind::Unlock
                | EventKind::ReadUnlock
        )
}

impl Strategy for Rank {
    fn name(&self) -> &'static str {
        "rank"
    }

    fn next(&mut self) -> Next {
        let is_next_tuple = self.queue.first().is_none_or(|key| key.0 > self.place);
        if self.incomplete && is_next_tuple {
            self.begin();
        }
        let Some((item, order)) = self.pop() else {
            let waits = self.asked.iter().any(|asked| asked.beginning == self.beginnings);
            return if waits { Next::Wait } else { Next::Exhausted };
        };
        let plan = Plan {
            turns: Turns::of(item.picks[..item.len].iter().map(|&thread| u32::from(thread))),
            policy: Policy::Ordered(order.clone()),
            // A run that learns cannot begin with a snapshot.
            learn: item.len == 0 || self.asked_for.is_multiple_of(LEARNING),
            max_events: self.ground.plan.max_events,
            ..self.plan.clone()
        };
        self.asked_for += 1;
        self.asked.push_back(Asked { item, order, beginning: self.beginnings });
        let tuple = Some(self.ranking.tuple(self.place));
        Next::Run(Schedule { tuple, ..Schedule::new(self.name(), plan) })
    }

    fn take(&mut self, feedback: &Feedback) {
        let Some(asked) = self.asked.pop_front() else { return };
        self.runs += 1;
        self.overhear(feedback);
        if asked.beginning == self.beginnings {
            self.search(&asked, feedback);
        }
    }

    fn overhear(&mut self, feedback: &Feedback) {
        self.incomplete |= self.ground.take(feedback);
        self.orders.meet(&self.ground.threads);
        if self.incomplete && self.runs <= EARLY {
            self.begin();
        }
    }

    fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}
