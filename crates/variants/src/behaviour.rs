//! What the threads of a run did, in terms that are the same in every run.
//!
//! What a thread does follows from what it observed: the values of reads that decide, and how operations on objects with a
//! state of their own went. Its *history* at some point is a number for all that it observed before. Iterations of a loop in
//! which it observes the same with the same locks are equivalent. From the [`EQUIVALENT_ITERATIONS`]th on they leave the
//! history as it is, so that an endless loop has finitely many histories.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use threadbare_search::reorder::History;
use threadbare_search::reorder::variable::Variable;
use threadbare_trace::{Event, EventIndex, EventKind, ObjectName, Outcome, StackIndex, ThreadIndex, Trace};

use crate::access_manner::AccessManners;
use crate::operation::{Action, Operation};

/// Iterations that are told apart although their access-manners are the same. A program may count so far.
const EQUIVALENT_ITERATIONS: u32 = 3;

/// What the threads of a run did.
pub struct Behaviour {
    /// By thread: a number for its name.
    pub threads: Vec<u64>,
    /// By thread: a number for its set of access-manners.
    manners: Vec<u64>,
    /// In the order of the run.
    pub observations: Vec<Observation>,
}

/// A thread found something out that may decide where it goes.
#[derive(Clone, Debug)]
pub struct Observation {
    pub event: EventIndex,
    /// What was observed, where, and with which history.
    pub question: u64,
    /// The place and the variable alone: the branch of the paper, without what came before.
    pub branch: u64,
    pub answer: u64,
    pub done: Done,
}

/// What a thread had done by some point, with the locks that it held at each operation.
#[derive(Clone, Debug)]
pub struct Done {
    /// Different operations of the whole run, in the order in which they were first done.
    all: Arc<Vec<u64>>,
    /// How many of them were done by then, and a number for these.
    count: usize,
    pub sum: u64,
}

impl Done {
    /// The other has done all that this one has.
    pub fn is_within(&self, other: &Done) -> bool {
        let [mine, theirs] = [self, other].map(|done| &done.all[..done.count]);
        if theirs.starts_with(mine) {
            return true;
        }
        let theirs: FxHashSet<u64> = theirs.iter().copied().collect();
        mine.iter().all(|done| theirs.contains(done))
    }
}

/// The value that memory had before the run, as far as nobody has read it.
pub const INITIAL: u64 = 0x1e17_1a1e_0000_0001;

pub fn number(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Behaviour {
    /// `deciding` says of each event whether it is a read that decides.
    pub fn of(history: &History, names: &Names, deciding: &[bool]) -> Behaviour {
        let trace = history.trace();
        let threads: Vec<u64> = trace.threads.iter().map(number).collect();
        let mut walks: Vec<Walk> = threads.iter().map(|&thread| Walk::new(thread)).collect();
        let mut values = Values::new(history);
        let mut observations = Vec::new();
        for (index, event) in trace.indexed_events() {
            let walk = &mut walks[event.thread.index()];
            let operand = names.object(event.object.index());
            let location = trace.location(event.location).address;
            let answer = match event.kind.is_access() {
                true => deciding[index.index()].then(|| values.seen_by(index)),
                false => outcome(event),
            };
            if let Some(answer) = answer {
                observations.push(walk.observe(index, location, operand, answer));
            }
            if let Some(action) = Action::of(event) {
                walk.step(Operation { location, action, operand });
            }
            values.step(index);
        }
        // What a thread has done is complete only now.
        let all: Vec<Arc<Vec<u64>>> =
            walks.iter_mut().map(|walk| Arc::new(std::mem::take(&mut walk.in_order))).collect();
        let thread = |observation: &Observation| history.thread(observation.event).index();
        for observation in &mut observations {
            observation.done.all = Arc::clone(&all[thread(observation)]);
        }
        let manners = walks.into_iter().map(Walk::finish).collect();
        Behaviour { threads, manners, observations }
    }

    /// A number for the set of access-manners of every thread.
    pub fn manners(&self) -> u64 {
        let threads = ThreadIndex::first(self.threads.len());
        threads.fold(0, |sum, thread| sum.wrapping_add(self.share(thread)))
    }

    /// A number for the sets of access-manners of all other threads.
    pub fn manners_of_others(&self, thread: ThreadIndex) -> u64 {
        self.manners().wrapping_sub(self.share(thread))
    }

    fn share(&self, thread: ThreadIndex) -> u64 {
        number((self.threads[thread.index()], self.manners[thread.index()]))
    }
}

/// How an operation went that may go in several ways.
fn outcome(event: &Event) -> Option<u64> {
    let is_open = event.kind.is_stateful() || event.kind.lock_effect().is_some();
    let is_usual = event.outcome == Outcome::Done && event.kind.lock_effect().is_some();
    (is_open && !is_usual).then(|| match event.kind {
        EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake => {
            number((event.outcome as u8, event.value))
        }
        _ => number(event.outcome as u8),
    })
}

/// One thread, while it runs.
struct Walk {
    thread: u64,
    history: u64,
    manners: AccessManners,
    /// What was done with which locks held, and a number for all of it.
    done: FxHashSet<u64>,
    in_order: Vec<u64>,
    all_done: u64,
    /// How often the same was observed when the same had been done.
    observed: FxHashMap<u64, u32>,
}

impl Walk {
    fn new(thread: u64) -> Walk {
        Walk {
            thread,
            history: 0,
            manners: AccessManners::default(),
            done: FxHashSet::default(),
            in_order: Vec::new(),
            all_done: 0,
            observed: FxHashMap::default(),
        }
    }

    fn observe(&mut self, event: EventIndex, location: u64, operand: u64, answer: u64) -> Observation {
        let branch = number((self.thread, location, operand));
        let question = number((branch, self.history, self.all_done));
        let times = self.observed.entry(number((branch, answer, self.all_done))).or_default();
        *times += 1;
        if *times < EQUIVALENT_ITERATIONS {
            self.history = number((question, answer));
        }
        let done = Done { all: Arc::default(), count: self.in_order.len(), sum: self.all_done };
        Observation { event, question, branch, answer, done }
    }

    fn step(&mut self, operation: Operation) {
        let done = number((operation, self.manners.held()));
        if self.done.insert(done) {
            self.all_done = self.all_done.wrapping_add(done);
            self.in_order.push(done);
        }
        self.manners.step(operation);
    }

    fn finish(self) -> u64 {
        number(self.manners.finish())
    }
}

/// What reads see, and what writes write, as numbers.
pub struct Values<'h> {
    history: &'h History,
    /// By variable: the last write.
    last: FxHashMap<Variable, EventIndex>,
}

impl<'h> Values<'h> {
    pub fn new(history: &'h History) -> Values<'h> {
        Values { history, last: FxHashMap::default() }
    }

    fn step(&mut self, event: EventIndex) {
        if self.history.event(event).kind.is_access() && self.history.writes(event) {
            self.last.insert(self.history.variable(event), event);
        }
    }

    fn seen_by(&self, read: EventIndex) -> u64 {
        let event = self.history.event(read);
        match event.kind {
            EventKind::Read | EventKind::AtomicLoad if self.is_simple(read) => event.value,
            // The value of an atomic operation is what it has left behind.
            _ => match self.last.get(&self.history.variable(read)) {
                Some(&write) => self.written_by(write),
                None => INITIAL,
            },
        }
    }

    /// Accesses to the variable are all to the same bytes, and their values are known.
    fn is_simple(&self, access: EventIndex) -> bool {
        let is_mixed = self.history.variables().is_mixed(self.history.variable(access));
        !is_mixed && self.history.event(access).size <= 8
    }

    /// What a read sees that comes after this write.
    pub fn written_by(&self, write: EventIndex) -> u64 {
        let event = self.history.event(write);
        if self.is_simple(write) {
            return event.value;
        }
        let trace = self.history.trace();
        number((trace.thread(event.thread), trace.location(event.location).address, event.value))
    }
}

/// What memory held before the run, by the number of the object, as far as reads of the run show it.
pub fn initial_values(history: &History, names: &Names) -> Vec<(u64, u64)> {
    let mut written: FxHashSet<Variable> = FxHashSet::default();
    let mut values = Vec::new();
    for (index, event) in history.trace().indexed_events().filter(|(_, event)| event.kind.is_access()) {
        let variable = history.variable(index);
        if !written.contains(&variable) && matches!(event.kind, EventKind::Read | EventKind::AtomicLoad) {
            values.push((names.object(event.object.index()), event.value));
        }
        if history.writes(index) {
            written.insert(variable);
        }
    }
    values
}

/// Numbers for the objects of a trace.
pub struct Names(Vec<u64>);

impl Names {
    /// With `arrays` the elements of an array are one object.
    pub fn of(trace: &Trace, arrays: bool) -> Names {
        let stack = |site: StackIndex| {
            let nodes = std::iter::successors((!site.is_empty()).then_some(site), |&site| {
                Some(trace.stack(site).parent).filter(|parent| !parent.is_empty())
            });
            let calls = nodes.map(|node| trace.location(trace.stack(node).location).address);
            number(calls.collect::<Vec<u64>>())
        };
        let thread = |thread: ThreadIndex| number(trace.thread(thread));
        let objects = trace.objects.iter().map(|object| match &object.name {
            ObjectName::Global { symbol, .. } if arrays && object.display.contains('[') => {
                number((symbol, without_indices(&object.display)))
            }
            &ObjectName::Heap { site, thread: by, ordinal, offset } => {
                number((stack(site), thread(by), ordinal, offset))
            }
            &ObjectName::Stack { thread: of, offset } => number((thread(of), offset)),
            &ObjectName::Thread(index) => thread(index),
            name => number(name),
        });
        Names(objects.collect())
    }

    pub fn object(&self, index: usize) -> u64 {
        self.0[index]
    }
}

/// `accounts[1].amount` without the numbers.
fn without_indices(display: &str) -> String {
    let mut depth = 0u32;
    let outside = display.chars().filter(|&letter| {
        depth += u32::from(letter == '[');
        let is_outside = depth == 0 || letter == '[' || letter == ']';
        depth = depth.saturating_sub(u32::from(letter == ']'));
        is_outside
    });
    outside.collect()
}
