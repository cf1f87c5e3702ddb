//! Small programs in a model of the runtime, and all their interleavings: what the search is compared with.

use std::collections::{BTreeMap, BTreeSet};

use threadbare_search::{
    Condition, Decision, Feedback, Next, OperationPatience, PendingRecord, Record, Round, Schedule, Strategy,
    Update,
};
use threadbare_trace::{
    Deed, Effect, End, EventKind, MemoryOrder, Outcome, Outlasting, Policy, Sleeper, ThreadId, ThreadIndex,
    Touch, touches,
};

use crate::class::classes as classes_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Read(u8),
    /// Reads 1 for 0 and 0 for all else.
    ReadNot(u8),
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
    /// Goes back by so many operations unless the last value read was this.
    BackUnless(u8, u8),
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
    spins: Vec<Spin>,
    records: Vec<Record>,
    decisions: Vec<Decision>,
}

/// What the runtime keeps of a thread that may go round in vain.
#[derive(Clone, Default)]
struct Spin {
    looks: Vec<Look>,
    waits: bool,
    is_stuck: bool,
    /// The decision that began a round in vain, without being asked to, since this was last taken.
    went_round_since: Option<usize>,
}

#[derive(Clone)]
struct Look {
    state: u64,
    at: Touch,
    decision: usize,
    is_planned: bool,
    is_outdated: bool,
}

impl Spin {
    fn mark(&mut self, decisions: &mut [Decision]) {
        let round = match (self.waits, self.is_stuck) {
            (true, _) => Round::Last,
            (false, true) => Round::Abandoned,
            (false, false) => Round::PassedOver,
        };
        for look in &self.looks {
            decisions[look.decision].round = round;
        }
        if round == Round::PassedOver {
            self.looks.clear();
        }
    }
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
            spins: vec![Spin::default(); program.len()],
            records: Vec::new(),
            decisions: Vec::new(),
        };
        (0..program.len()).for_each(|thread| machine.settle(thread));
        machine
    }

    /// Goes past what is no operation.
    fn settle(&mut self, thread: usize) {
        loop {
            let is_last = |value: u8| self.last[thread] == u64::from(value);
            match self.program[thread].get(self.counters[thread]) {
                Some(&Op::Unless(value)) => self.counters[thread] += if is_last(value) { 1 } else { 2 },
                Some(&Op::BackUnless(_, value)) if is_last(value) => self.counters[thread] += 1,
                Some(&Op::BackUnless(count, _)) => self.counters[thread] -= usize::from(count),
                _ => return,
            }
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
        let spin = &self.spins[thread];
        match self.op(thread) {
            _ if spin.waits || spin.is_stuck => false,
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

    /// What a thread's state is before an operation that may only look. What was read last does not matter there.
    fn state(&self, thread: usize) -> u64 {
        match self.op(thread) {
            Some(Op::Read(_) | Op::ReadNot(_) | Op::Cas(..) | Op::TryLock(_)) => {
                (thread * 1000 + self.counters[thread]) as u64 + 1
            }
            _ => 0,
        }
    }

    /// The thread has taken a step that began in `state`. `true` if that was no more than a look.
    fn has_done(&mut self, thread: usize, state: u64, from: usize, is_planned: bool) -> bool {
        let mut has_only_looked = true;
        let decision = self.decisions.len() - 1;
        for record in &self.records[from..] {
            for touch in touches(&deed(record)) {
                if touch.effect == Effect::Observes {
                    let look = Look { state, at: touch, decision, is_planned, is_outdated: false };
                    self.spins[thread].looks.push(look);
                    continue;
                }
                has_only_looked = false;
                for spin in &mut self.spins {
                    let mut is_concerned = false;
                    for look in spin.looks.iter_mut().filter(|look| look.at.conflicts(&touch)) {
                        look.is_outdated = true;
                        is_concerned = true;
                    }
                    if is_concerned && std::mem::take(&mut spin.waits) {
                        spin.mark(&mut self.decisions);
                    }
                }
            }
        }
        if !has_only_looked {
            self.spins[thread].looks.clear();
        }
        has_only_looked
    }

    /// The thread comes to its next operation.
    fn arrive(&mut self, thread: usize) {
        let state = self.state(thread);
        let spin = &mut self.spins[thread];
        let round = spin.looks.iter().position(|look| look.state == state && state != 0);
        let Some(first) = round else { return };
        spin.looks.drain(..first);
        spin.is_stuck = spin.looks.iter().any(|look| look.is_planned);
        spin.waits = !spin.looks.iter().any(|look| look.is_outdated);
        spin.went_round_since = spin.looks.first().filter(|_| !spin.is_stuck).map(|look| look.decision);
        spin.mark(&mut self.decisions);
    }

    /// Takes a step of the thread, which the plan asks for or not. `true` if that was no more than a look.
    fn go_on(&mut self, thread: usize, is_planned: bool) -> bool {
        let (state, from) = (self.state(thread), self.records.len());
        self.take_step(thread);
        if let Some(decision) = self.decisions.last_mut() {
            decision.state = state;
        }
        let has_only_looked = self.has_done(thread, state, from, is_planned);
        if self.op(thread).is_some() {
            self.arrive(thread);
        }
        has_only_looked
    }

    fn update(&self, op: Op) -> Option<Update> {
        let (variable, condition) = match op {
            Op::Write(v, _) | Op::Add(v) => (v, Condition::ALWAYS),
            Op::Cas(v, old, new) if old == new => (v, Condition::NEVER),
            Op::Cas(v, old, _) => {
                (v, Condition { mask: u64::MAX, value: old.into(), changes_if_equal: true })
            }
            _ => return None,
        };
        Some(Update { found: self.memory.get(&variable).copied().unwrap_or(0), condition })
    }

    fn is_abandoned(&self) -> bool {
        self.spins.iter().any(|spin| spin.is_stuck && !spin.waits)
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
            round: Round::None,
            update: self.update(op),
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
            Op::ReadNot(v) => {
                let value = self.memory.get(&v).copied().unwrap_or(0);
                self.last[thread] = u64::from(value == 0);
                self.record(thread, AtomicLoad, Outcome::Done, variable(v), value);
            }
            Op::Write(v, value) => {
                self.memory.insert(v, value.into());
                self.record(thread, AtomicStore, Outcome::Done, variable(v), value.into());
            }
            Op::Add(v) => {
                let value = self.memory.entry(v).or_default();
                self.last[thread] = *value;
                *value += 1;
                let value = *value;
                self.record(thread, AtomicRmw, Outcome::Done, variable(v), value);
            }
            Op::Cas(v, old, new) => {
                let value = self.memory.entry(v).or_default();
                self.last[thread] = *value;
                let outcome = match *value == u64::from(old) {
                    true if old == new => Outcome::Unchanged,
                    true => Outcome::Done,
                    false => Outcome::Failed,
                };
                if outcome == Outcome::Done {
                    *value = new.into();
                }
                let value = *value;
                self.record(thread, AtomicRmw, outcome, variable(v), value);
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
            Op::Unless(_) | Op::BackUnless(..) => unreachable!("it is no operation"),
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
                    _ if self.spins[thread].waits || self.spins[thread].is_stuck => return None,
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
                    condition: [0; 3],
                    patience: OperationPatience::Endless.to_bits(),
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
            machine.go_on(thread, false);
        }
        return machine.feedback(End::Finished);
    };
    let mut asleep: Vec<Sleeper> = asleep.clone();
    // Who was woken by looks, and by whose.
    let mut stirred: Vec<(Sleeper, Vec<(usize, usize)>)> = Vec::new();
    let mut turns = schedule
        .plan
        .turns
        .iter()
        .flat_map(|turns| std::iter::repeat_n(turns.thread.index(), turns.count as usize));
    let mut current = 0;
    loop {
        let enabled = machine.enabled();
        if enabled.is_empty() {
            let reason = Policy::IN_VAIN;
            let end = if machine.is_abandoned() { diverged(reason) } else { End::Finished };
            return machine.feedback(end);
        }
        let awake = |thread: &&usize| !asleep.iter().any(|sleeper| sleeper.thread.index() == **thread);
        let (next, is_planned) = match turns.next() {
            Some(thread) if enabled.contains(&thread) => (thread, true),
            Some(_) => return machine.feedback(diverged("cannot run")),
            None if enabled.contains(&current) && awake(&&current) => (current, false),
            None => match enabled.iter().find(awake) {
                Some(&thread) => (thread, false),
                None => return machine.feedback(diverged(Sleeper::ALL_ASLEEP)),
            },
        };
        let turn = machine.decisions.len();
        let before = machine.records.len();
        let has_only_looked = machine.go_on(next, is_planned);
        current = next;
        if turn as u64 >= *from {
            let touched: Vec<Touch> =
                machine.records[before..].iter().flat_map(|record| touches(&deed(record))).collect();
            let concerns = |sleeper: &Sleeper| {
                sleeper.touches.iter().any(|touch| touched.iter().any(|other| other.conflicts(touch)))
            };
            if has_only_looked {
                for (_, by) in stirred.iter_mut().filter(|(sleeper, _)| concerns(sleeper)) {
                    by.push((next, turn));
                }
                let woken = asleep.extract_if(.., |sleeper| concerns(sleeper));
                stirred.extend(woken.map(|sleeper| (sleeper, vec![(next, turn)])));
            } else {
                asleep.retain(|sleeper| !concerns(sleeper));
                stirred.retain(|(sleeper, by)| by.iter().all(|&(by, _)| by != next) && !concerns(sleeper));
            }
        }
        if let Some(since) = machine.spins[next].went_round_since.take() {
            let is_in_vain = |&(by, turn): &(usize, usize)| by == next && turn >= since;
            stirred.iter_mut().for_each(|(_, by)| by.retain(|by| !is_in_vain(by)));
            asleep.extend(stirred.extract_if(.., |(_, by)| by.is_empty()).map(|(sleeper, _)| sleeper));
        }
    }
}

fn deed(record: &Record) -> Deed {
    Deed {
        thread: record.thread_index(),
        kind: record.event_kind().expect("a kind"),
        outcome: record.outcome().expect("an outcome"),
        object: record.object,
        size: record.size(),
        value: record.value,
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
            if machine.is_abandoned() {
                continue;
            }
            classes.extend(classes_of(&machine.feedback(End::Finished)).last());
            continue;
        }
        for thread in enabled {
            let mut next = machine.clone();
            next.go_on(thread, true);
            open.push(next);
        }
    }
    Some(classes)
}

/// What a strategy explores.
#[derive(Debug, Default)]
pub struct Explored {
    /// In the order of its runs.
    pub classes: Vec<u64>,
    /// Runs that showed nothing new.
    pub wasted: usize,
    /// Runs in which a thread went round in vain where the plan asked for it.
    pub blocked: usize,
}

/// The strategy is asked for up to `at_a_time` runs before it is told of any.
pub fn explored(program: &Program, strategy: &mut dyn Strategy, at_a_time: usize) -> Explored {
    let mut explored = Explored::default();
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
            return explored;
        }
        for schedule in round {
            let feedback = run(program, &schedule);
            if matches!(schedule.plan.policy, Policy::Awake { .. }) {
                match feedback.ended {
                    End::Diverged { ref reason, .. } if reason == Policy::IN_VAIN => explored.blocked += 1,
                    End::Diverged { .. } => explored.wasted += 1,
                    _ => explored.classes.extend(classes_of(&feedback).last()),
                }
            }
            strategy.tell(schedule.token, &feedback);
        }
    }
}
