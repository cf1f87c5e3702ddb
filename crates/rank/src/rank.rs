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
use std::hash::{Hash, Hasher as _};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use threadbare_search::backlog::Backlog;
use threadbare_search::{
    CodePoint, Decision, Feedback, Knowledge, Next, Operation, Outstanding, Schedule, Settings, Strategy,
    Token, Variables,
};
use threadbare_trace::{EventKind, Order, Plan, Policy, ThreadId, ThreadIndex, Turns};

use crate::contested::Contested;
use crate::orders::Orders;
use crate::ranking::{Counts, Demand, Ranking};

/// A state from which schedules are still to be run: `prio` of the paper is the `order`-th for `threads` threads, with
/// the preempted thread last. Long runs lead to a great many of these.
#[derive(Clone, Debug)]
struct WorkItem {
    origin: Arc<Origin>,
    /// Where the state was met and who is preempted there; none where the program begins.
    point: Option<Point>,
    threads: u32,
    order: u32,
}

/// A run that led to work items.
#[derive(Debug, Default)]
struct Origin {
    picks: Picks,
    threads: Vec<ThreadId>,
    demand: Demand,
    /// How many of its preemptions are before accesses that nobody else could come before.
    idle: u32,
}

/// The threads that were picked, decision by decision. There are a great many, so each takes two bytes: a run has fewer
/// than 65536 threads.
#[derive(Debug, Default)]
struct Picks(Box<[u16]>);

impl Picks {
    /// The first `count` of them.
    fn first(&self, count: usize) -> impl Iterator<Item = ThreadIndex> {
        self.0[..count].iter().map(|&thread| ThreadIndex::new(thread.into()))
    }

    fn bytes(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }
}

impl FromIterator<ThreadIndex> for Picks {
    fn from_iter<I: IntoIterator<Item = ThreadIndex>>(threads: I) -> Picks {
        let number = |thread: ThreadIndex| {
            debug_assert!(thread.index() <= usize::from(u16::MAX));
            thread.number() as u16
        };
        Picks(threads.into_iter().map(number).collect())
    }
}

impl WorkItem {
    /// The state is reached as far as the origin's picks go, up to here.
    fn len(&self) -> usize {
        self.point.as_ref().map_or(0, |point| point.at as usize)
    }

    fn state(&self) -> u64 {
        self.point.as_ref().map_or(0, |point| point.state)
    }

    fn preempted(&self) -> Option<ThreadId> {
        let point = self.point.as_ref()?;
        self.origin.threads.get(point.thread.index()).cloned()
    }

    fn idle(&self) -> u32 {
        self.origin.idle + u32::from(self.point.as_ref().is_some_and(|point| point.idle))
    }

    fn demand(&self) -> Demand {
        let demand = &self.origin.demand;
        match &self.point {
            Some(point) => demand.and(point.variable, point.repeats),
            None => demand.clone(),
        }
    }

    fn counts(&self) -> Counts {
        let demand = &self.origin.demand;
        match &self.point {
            Some(point) => demand.counts_and(point.variable, point.repeats, self.threads),
            None => demand.counts(self.threads),
        }
    }
}

/// Where an item stands: place of the tuple, variables, preemptions, idle ones, the run it came from, and when it came.
type Key = (usize, Vec<u64>, u32, u32, Reverse<u64>, u64);

/// A run that was asked for.
struct Asked {
    item: WorkItem,
    order: Order,
    /// The most events that it was to have.
    max_events: u64,
    beginning: u64,
}

/// RankChecker's search.
pub struct Rank {
    knowledge: Knowledge,
    /// What every plan is made from: turns mean something only for the memory that was tracked when they were taken.
    plan: Plan,
    ranking: Ranking,
    orders: Orders,
    queue: Backlog<Key, WorkItem>,
    /// Counts items.
    count: u64,
    /// States with priorities that were run on from, as one number each.
    met: FxHashSet<u64>,
    max_met: usize,
    asked: Outstanding<Asked>,
    /// Items that force more turns than this are for when there are no others.
    max_turns: u64,
    /// How often the search has begun, and the tuple that it is at.
    beginnings: u64,
    place: usize,
    /// Runs since the search last began, and whether memory has turned up since that it did not know of.
    runs: u64,
    incomplete: bool,
}

/// When new shared memory turns up within so many runs, the search begins anew at once. Later it waits for the next tuple.
const RESTART_RUNS: u64 = 32;

impl Rank {
    pub fn new(settings: Settings) -> Rank {
        let plan = Plan { decisions: true, ..settings.plan };
        let mut rank = Rank {
            plan: plan.clone(),
            knowledge: Knowledge::new(plan),
            ranking: Ranking::new(settings.tuples),
            orders: Orders::default(),
            queue: Backlog::new(settings.memory / 2),
            count: 0,
            met: FxHashSet::default(),
            max_met: (settings.memory / 2 / 16) as usize,
            asked: Outstanding::default(),
            max_turns: u64::MAX,
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
        self.plan = self.knowledge.plan.clone();
        self.queue.clear();
        self.met.clear();
        self.beginnings += 1;
        (self.place, self.runs, self.incomplete) = (0, 0, false);
        let demand = Demand { repeats: 1, ..Demand::default() };
        let origin = Arc::new(Origin { demand, ..Origin::default() });
        self.push(WorkItem { origin, point: None, threads: 2, order: 0 });
    }

    fn push(&mut self, item: WorkItem) {
        if let Some(key) = self.key(&item) {
            self.queue.push(key, item);
        }
    }

    /// Where a new item stands; `None` if no tuple has it.
    fn key(&mut self, item: &WorkItem) -> Option<Key> {
        let counts = item.counts();
        let place = self.ranking.place(counts)?;
        let taken_apart = matches!(self.ranking.tuple(place).v, Variables::Some(1..));
        let variables = if taken_apart { item.demand().variables } else { Vec::new() };
        self.count += 1;
        Some((place, variables, counts.preemptions, item.idle(), Reverse(self.runs), self.count))
    }

    /// The first item in the queue, with the first of its orders that leads to anything new.
    fn pop(&mut self) -> Option<(WorkItem, Order)> {
        while let Some((key, item)) = self.queue.pop_wanted(|item| item.len() as u64 <= self.max_turns) {
            self.place = key.0;
            let orders = match (item.threads, &item.point) {
                (2, None) => self.orders.at_the_beginning(),
                (threads, _) => self.orders.of(threads),
            };
            let Some(order) = orders.get(item.order as usize) else {
                self.next_threads(item);
                continue;
            };
            let order = Order { last: item.preempted(), ..order.clone() };
            self.queue.push(key, WorkItem { order: item.order + 1, ..item.clone() });
            if self.meet(item.state(), number(&order)) {
                return Some((item, order));
            }
        }
        None
    }

    /// All orders for `t` threads were tried in this state: those for one thread more are another tuple's.
    fn next_threads(&mut self, item: WorkItem) {
        let threads = item.threads + 1;
        if threads <= self.orders.max_threads() {
            self.push(WorkItem { order: 0, threads, ..item });
        }
    }

    /// Notes that the search goes on from here with the order of this number; `false` if it has before.
    fn meet(&mut self, state: u64, order: u64) -> bool {
        let met = state ^ order;
        if self.met.len() < self.max_met { self.met.insert(met) } else { !self.met.contains(&met) }
    }

    fn was_met(&self, state: u64, order: u64) -> bool {
        self.met.contains(&(state ^ order))
    }

    /// The rest of the paper's `Search`: wherever the run came to an operation at which it could have been preempted
    /// there is more work.
    fn search(&mut self, asked: &Asked, feedback: &Feedback) {
        let begin = asked.item.len();
        let order = number(&asked.order);
        // A run that was cut short is gone on with only as far as it went by its order, and others may still go on where
        // it was.
        let is_cut = feedback.bound < asked.max_events;
        let fair_from = if is_cut { (feedback.bound / 2) as usize } else { usize::MAX };
        let mut met_from = feedback.decisions.len().min(fair_from);
        for at in begin + 1..met_from {
            let state = feedback.decisions[at].state;
            let was_met = if is_cut { self.was_met(state, order) } else { !self.meet(state, order) };
            if was_met {
                met_from = at;
                break;
            }
        }
        let origin = Arc::new(Origin {
            picks: feedback.picks().take(met_from).collect(),
            threads: feedback.threads.clone(),
            demand: asked.item.demand(),
            idle: asked.item.idle(),
        });
        let mut items = Vec::new();
        for point in points(&feedback.decisions) {
            let is_known = point.thread.index() < feedback.threads.len();
            if is_known && (begin..met_from).contains(&(point.at as usize)) {
                let origin = Arc::clone(&origin);
                let item = WorkItem { origin, point: Some(point), threads: asked.item.threads, order: 0 };
                items.extend(self.key(&item).map(|key| (key, item)));
            }
        }
        self.queue.extend(items, origin.picks.bytes());
    }
}

fn number(order: &Order) -> u64 {
    let mut hasher = FxHasher::default();
    order.hash(&mut hasher);
    hasher.finish()
}

/// A decision at which the running thread could have been preempted: it stands before an operation that matters to
/// others, and somebody else could go.
#[derive(Clone, Debug)]
struct Point {
    at: u32,
    /// The thread that ran up to there.
    thread: ThreadIndex,
    state: u64,
    /// The memory that it is about to access; none for synchronisation.
    variable: Option<u64>,
    /// How often a thread has come to this place by now.
    repeats: u32,
    /// Nobody else could come before that access.
    idle: bool,
}

fn points(decisions: &[Decision]) -> Vec<Point> {
    let pending = pending(decisions);
    let contested = Contested::of(decisions);
    let mut passed: FxHashMap<CodePoint, u32> = FxHashMap::default();
    let mut points = Vec::new();
    for (at, decision) in decisions.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| decisions[before].picked);
        if let (Some(thread), Some(operation)) = (before, pending[at])
            && operation.kind.is_preemption_point()
            && decision.alternatives.len() > 1
            && decision.alternatives.contains(&thread)
        {
            let plain = matches!(operation.kind, EventKind::Read | EventKind::Write);
            points.push(Point {
                at: at as u32,
                thread,
                state: decision.state,
                variable: plain.then_some(operation.object),
                repeats: passed.get(&operation.point).copied().unwrap_or(0) + 1,
                idle: plain && !contested.contains(thread, operation.object),
            });
        }
        if let Some(operation) = decision.operation {
            *passed.entry(operation.point).or_default() += 1;
        }
    }
    points
}

/// For each decision, what the thread that was picked before it stands before.
fn pending(decisions: &[Decision]) -> Vec<Option<Operation>> {
    let mut upcoming: FxHashMap<ThreadIndex, Operation> = FxHashMap::default();
    let mut pending = vec![None; decisions.len()];
    for at in (1..decisions.len()).rev() {
        if let Some(operation) = decisions[at].operation {
            upcoming.insert(decisions[at].picked, operation);
        }
        pending[at] = upcoming.get(&decisions[at - 1].picked).copied();
    }
    pending
}

impl Strategy for Rank {
    fn name(&self) -> &'static str {
        "rank"
    }

    fn ask(&mut self) -> Next {
        let is_next_tuple = self.queue.first().is_none_or(|key| key.0 > self.place);
        if self.incomplete && is_next_tuple {
            self.begin();
        }
        let Some((item, order)) = self.pop() else {
            let waits = self.asked.iter().any(|asked| asked.beginning == self.beginnings);
            return if waits { Next::Wait } else { Next::Exhausted };
        };
        let plan = Plan {
            turns: Turns::of(item.origin.picks.first(item.len())),
            policy: Policy::Ordered(order.clone()),
            learn: item.point.is_none() || Knowledge::learns_from_snapshot(self.asked.issued()),
            max_events: self.knowledge.plan.max_events,
            ..self.plan.clone()
        };
        let max_events = plan.max_events;
        let token = self.asked.issue(Asked { item, order, max_events, beginning: self.beginnings });
        let tuple = Some(self.ranking.tuple(self.place));
        Next::Run(Schedule { tuple, ..Schedule::new(token, self.name(), plan) })
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some(asked) = self.asked.answer(token) else { return };
        self.runs += 1;
        self.observe(feedback);
        if asked.beginning == self.beginnings {
            self.search(&asked, feedback);
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.incomplete |= self.knowledge.update(feedback);
        self.orders.meet(&self.knowledge.threads);
        if self.incomplete && self.runs <= RESTART_RUNS {
            self.begin();
        }
    }

    fn prefer_short(&mut self, max_turns: u64) {
        self.max_turns = max_turns;
    }

    fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}
