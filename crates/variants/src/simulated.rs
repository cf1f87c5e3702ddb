//! Small programs in a model of the runtime, and all their interleavings: what the search is compared with.

use std::collections::{BTreeMap, BTreeSet};

use threadbare_search::{
    Decision, Feedback, Next, OperationPatience, PendingRecord, Record, Schedule, Strategy,
};
use threadbare_trace::{
    Deed, End, EventKind, MemoryOrder, Outcome, Outlasting, Policy, Sleeper, ThreadId, ThreadIndex, Touch,
    touches,
};

use crate::class::classes as classes_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Read(u8),
    Write(u8, u8),
    Add(u8),
    Cas(u8, u8, u8),
    Lock(u8),
    TryLock(u8),
    Unlock(u8),
    Post(u8),
    Take(u8),
    /// Waits for a condition, with the lock of the same number held.
    Wait(u8),
    Notify(u8),
    NotifyAll(u8),
    /// Passes the next operation over unless the last value read was this.
    Unless(u8),
}

pub type Program = Vec<Vec<Op>>;

#[derive(Clone)]
struct Machine<'p> {
    program: &'p Program,
    counters: Vec<usize>,
    last: Vec<u64>,
    memory: BTreeMap<u8, u64>,
    owners: BTreeMap<u8, usize>,
    semaphores: BTreeMap<u8, u64>,
    clock: u64,
    waiting: BTreeMap<usize, (u8, u64)>,
    tokens: Vec<(u8, u64)>,
    records: Vec<Record>,
    decisions: Vec<Decision>,
}

const LOCKS: u64 = 1000;
const SEMAPHORES: u64 = 2000;
const CONDITIONS: u64 = 3000;

impl<'p> Machine<'p> {
    fn new(program: &'p Program) -> Machine<'p> {
        let mut machine = Machine {
            program,
            counters: vec![0; program.len()],
            last: vec![0; program.len()],
            memory: BTreeMap::new(),
            owners: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            clock: 0,
            waiting: BTreeMap::new(),
            tokens: Vec::new(),
            records: Vec::new(),
            decisions: Vec::new(),
        };
        (0..program.len()).for_each(|thread| machine.settle(thread));
        machine
    }

    /// Goes past what is no operation.
    fn settle(&mut self, thread: usize) {
        while let Some(&Op::Unless(value)) = self.program[thread].get(self.counters[thread]) {
            self.counters[thread] += if self.last[thread] == u64::from(value) { 1 } else { 2 };
        }
    }

    fn op(&self, thread: usize) -> Option<Op> {
        self.program[thread].get(self.counters[thread]).copied()
    }

    fn has_token(&self, thread: usize) -> bool {
        self.waiting.get(&thread).is_some_and(|&(condition, since)| {
            self.tokens.iter().any(|&(of, time)| of == condition && time > since)
        })
    }

    fn is_enabled(&self, thread: usize) -> bool {
        match self.op(thread) {
            None => false,
            Some(Op::Wait(condition)) if self.waiting.contains_key(&thread) => {
                self.has_token(thread) && !self.owners.contains_key(&condition)
            }
            Some(Op::Lock(lock)) => !self.owners.contains_key(&lock),
            Some(Op::Take(semaphore)) => self.semaphores.get(&semaphore).is_some_and(|&value| value > 0),
            Some(_) => true,
        }
    }

    fn enabled(&self) -> Vec<usize> {
        (0..self.program.len()).filter(|&thread| self.is_enabled(thread)).collect()
    }

    fn record(&mut self, thread: usize, kind: EventKind, outcome: Outcome, object: u64, value: u64) {
        let size = if kind.is_access() { 8 } else { 0 };
        self.records.push(Record {
            kind: kind as u8,
            detail: Record::detail(MemoryOrder::Relaxed, outcome),
            thread: thread as u16,
            stack: 0,
            pc_size: Record::pc_size(0, size),
            object,
            value,
        });
    }

    fn notify(&mut self, condition: u8, max: usize) -> u64 {
        let waiting = self.waiting.values().filter(|&&(of, _)| of == condition).count();
        let given = self.tokens.iter().filter(|&&(of, _)| of == condition).count();
        let woken = max.min(waiting.saturating_sub(given));
        for _ in 0..woken {
            self.clock += 1;
            self.tokens.push((condition, self.clock));
        }
        woken as u64
    }

    fn take_step(&mut self, thread: usize) {
        use EventKind::*;
        let op = self.op(thread).expect("the thread has not ended");
        let variable = |v: u8| 8 * u64::from(v) + 8;
        let patience = match op {
            Op::Lock(_) | Op::Take(_) => OperationPatience::Endless,
            Op::Wait(_) if self.waiting.contains_key(&thread) => OperationPatience::Endless,
            _ => OperationPatience::None,
        };
        self.decisions.push(Decision {
            state: 0,
            picked: ThreadIndex::at(thread),
            alternatives: self.enabled().into_iter().map(ThreadIndex::at).collect(),
            patience,
            operation: None,
            first_record: self.records.len(),
            guided: None,
        });
        let mut moves_on = true;
        match op {
            Op::Read(v) => {
                self.last[thread] = self.memory.get(&v).copied().unwrap_or(0);
                self.record(thread, AtomicLoad, Outcome::Done, variable(v), self.last[thread]);
            }
            Op::Write(v, value) => {
                self.memory.insert(v, value.into());
                self.record(thread, AtomicStore, Outcome::Done, variable(v), value.into());
            }
            Op::Add(v) => {
                let value = self.memory.entry(v).or_default();
                self.last[thread] = *value;
                *value += 1;
                self.record(thread, AtomicRmw, Outcome::Done, variable(v), self.last[thread]);
            }
            Op::Cas(v, old, new) => {
                let value = self.memory.entry(v).or_default();
                self.last[thread] = *value;
                let outcome = if *value == u64::from(old) { Outcome::Done } else { Outcome::Failed };
                if outcome == Outcome::Done {
                    *value = new.into();
                }
                self.record(thread, AtomicRmw, outcome, variable(v), self.last[thread]);
            }
            Op::Lock(lock) => {
                self.owners.insert(lock, thread);
                self.record(thread, Lock, Outcome::Done, LOCKS + u64::from(lock), 0);
            }
            Op::TryLock(lock) => {
                let is_free = !self.owners.contains_key(&lock);
                self.last[thread] = u64::from(is_free);
                if is_free {
                    self.owners.insert(lock, thread);
                }
                let outcome = if is_free { Outcome::Done } else { Outcome::Failed };
                self.record(thread, Lock, outcome, LOCKS + u64::from(lock), 0);
            }
            Op::Unlock(lock) => {
                if self.owners.get(&lock) == Some(&thread) {
                    self.owners.remove(&lock);
                    self.record(thread, Unlock, Outcome::Done, LOCKS + u64::from(lock), 0);
                } else {
                    self.record(thread, Unlock, Outcome::Error, LOCKS + u64::from(lock), 0);
                }
            }
            Op::Post(semaphore) => {
                let value = self.semaphores.entry(semaphore).or_default();
                *value += 1;
                let value = *value;
                self.record(thread, SemPost, Outcome::Done, SEMAPHORES + u64::from(semaphore), value);
            }
            Op::Take(semaphore) => {
                let value = self.semaphores.entry(semaphore).or_default();
                *value -= 1;
                let value = *value;
                self.record(thread, SemWait, Outcome::Done, SEMAPHORES + u64::from(semaphore), value);
            }
            Op::Wait(condition) => {
                let (object, lock) = (CONDITIONS + u64::from(condition), LOCKS + u64::from(condition));
                if let Some((_, since)) = self.waiting.remove(&thread) {
                    let token = self.tokens.iter().position(|&(of, time)| of == condition && time > since);
                    self.tokens.remove(token.expect("it is enabled"));
                    self.owners.insert(condition, thread);
                    self.record(thread, Wake, Outcome::Done, object, lock);
                    self.record(thread, Lock, Outcome::Done, lock, 0);
                } else if self.owners.get(&condition) == Some(&thread) {
                    self.clock += 1;
                    self.waiting.insert(thread, (condition, self.clock));
                    self.owners.remove(&condition);
                    self.record(thread, Wait, Outcome::Done, object, lock);
                    self.record(thread, Unlock, Outcome::Done, lock, 0);
                    moves_on = false;
                } else {
                    self.record(thread, Wait, Outcome::Error, object, 0);
                }
            }
            Op::Notify(condition) => {
                let woken = self.notify(condition, 1);
                self.record(thread, NotifyOne, Outcome::Done, CONDITIONS + u64::from(condition), woken);
            }
            Op::NotifyAll(condition) => {
                let woken = self.notify(condition, usize::MAX);
                self.record(thread, NotifyAll, Outcome::Done, CONDITIONS + u64::from(condition), woken);
            }
            Op::Unless(_) => unreachable!("it is no operation"),
        }
        if moves_on {
            self.counters[thread] += 1;
            self.settle(thread);
        }
    }

    fn pending(&self) -> Vec<PendingRecord> {
        (0..self.program.len())
            .filter_map(|thread| {
                let (kind, object) = match self.op(thread)? {
                    Op::Wait(condition) => (EventKind::Wake, CONDITIONS + u64::from(condition)),
                    Op::Lock(lock) => (EventKind::Lock, LOCKS + u64::from(lock)),
                    Op::Take(semaphore) => (EventKind::SemWait, SEMAPHORES + u64::from(semaphore)),
                    _ => unreachable!("at the end of a run, threads wait"),
                };
                let thread = thread as u32;
                Some(PendingRecord {
                    thread,
                    kind: kind as u8,
                    blocked: 1,
                    size: 0,
                    stack: 0,
                    holder: 0,
                    pc: 0,
                    object,
                })
            })
            .collect()
    }

    fn feedback(self, ended: threadbare_executor::RunEnd) -> Feedback {
        let pending = self.pending_if_over();
        Feedback {
            decisions: self.decisions,
            threads: vec![ThreadId::main(); self.program.len()],
            events: self.records.len() as u64,
            learnt: Vec::new(),
            ended,
            bound: u64::MAX,
            outlasting: Outlasting::NONE,
            held_sleep: None,
            passes: Vec::new(),
            records: self.records,
            pending,
            recording: None,
        }
    }

    fn pending_if_over(&self) -> Vec<PendingRecord> {
        if self.enabled().is_empty() { self.pending() } else { Vec::new() }
    }
}

/// Runs the program as the runtime does.
pub fn run(program: &Program, schedule: &Schedule) -> Feedback {
    let mut machine = Machine::new(program);
    let diverged = |reason: &str| End::Diverged { step: 0, reason: reason.into() };
    let Policy::Awake { asleep, from } = &schedule.plan.policy else {
        // A run that learns.
        while let Some(&thread) = machine.enabled().first() {
            machine.take_step(thread);
        }
        return machine.feedback(End::Finished);
    };
    let mut asleep: Vec<Sleeper> = asleep.clone();
    let mut turns = schedule
        .plan
        .turns
        .iter()
        .flat_map(|turns| std::iter::repeat_n(turns.thread.index(), turns.count as usize));
    let mut current = 0;
    loop {
        let enabled = machine.enabled();
        if enabled.is_empty() {
            return machine.feedback(End::Finished);
        }
        let awake = |thread: &&usize| !asleep.iter().any(|sleeper| sleeper.thread.index() == **thread);
        let next = match turns.next() {
            Some(thread) if enabled.contains(&thread) => thread,
            Some(_) => return machine.feedback(diverged("cannot run")),
            None if enabled.contains(&current) && awake(&&current) => current,
            None => match enabled.iter().find(awake) {
                Some(&thread) => thread,
                None => return machine.feedback(diverged(Sleeper::ALL_ASLEEP)),
            },
        };
        let turn = machine.decisions.len() as u64;
        let before = machine.records.len();
        machine.take_step(next);
        current = next;
        if turn >= *from {
            let touched: Vec<Touch> = machine.records[before..]
                .iter()
                .flat_map(|record| {
                    touches(&Deed {
                        thread: record.thread_index(),
                        kind: record.event_kind().expect("a kind"),
                        outcome: record.outcome().expect("an outcome"),
                        object: record.object,
                        size: record.size(),
                        value: record.value,
                    })
                })
                .collect();
            asleep.retain(|sleeper| {
                !sleeper.touches.iter().any(|touch| touched.iter().any(|other| other.conflicts(touch)))
            });
        }
    }
}

/// The classes of all interleavings, by number.
pub fn all_classes(program: &Program, max_runs: usize) -> Option<BTreeSet<u64>> {
    let mut classes = BTreeSet::new();
    let mut open = vec![Machine::new(program)];
    let mut runs = 0;
    while let Some(machine) = open.pop() {
        let enabled = machine.enabled();
        if enabled.is_empty() {
            runs += 1;
            if runs > max_runs {
                return None;
            }
            classes.extend(classes_of(&machine.feedback(End::Finished)).last());
            continue;
        }
        for thread in enabled {
            let mut next = machine.clone();
            next.take_step(thread);
            open.push(next);
        }
    }
    Some(classes)
}

/// The classes that a strategy explores, in the order of its runs, and how many runs were for nothing. It is asked for
/// up to `at_a_time` runs before it is told of any.
pub fn explored(program: &Program, strategy: &mut dyn Strategy, at_a_time: usize) -> (Vec<u64>, usize) {
    let (mut classes, mut wasted) = (Vec::new(), 0);
    loop {
        let mut round = Vec::new();
        let mut is_exhausted = false;
        while round.len() < at_a_time {
            match strategy.ask() {
                Next::Run(schedule) => round.push(schedule),
                Next::Wait => break,
                Next::Exhausted => {
                    is_exhausted = true;
                    break;
                }
            }
        }
        if round.is_empty() {
            assert!(is_exhausted, "nothing to wait for");
            return (classes, wasted);
        }
        for schedule in round {
            let feedback = run(program, &schedule);
            if matches!(schedule.plan.policy, Policy::Awake { .. }) {
                match feedback.ended {
                    End::Diverged { .. } => wasted += 1,
                    _ => classes.extend(classes_of(&feedback).last()),
                }
            }
            strategy.tell(schedule.token, &feedback);
        }
    }
}
