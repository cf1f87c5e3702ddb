//! Whether one number ever stands for two different states.
//!
//! Makes random schedules of every subject. At each decision it compares the number that the runtime gave to the state
//! with the full state, as far as the trace shows it: everything that each thread did and saw, event by event, and the
//! contents of shared memory.

use std::collections::HashMap;
use std::error::Error;

use threadbare_executor::{Limits, Run, Target, Worker, learn};
use threadbare_trace::{EventKind, Outcome, Plan, Policy};
use threadbare_wire::Record;

use crate::build::{self, INSTRUMENTED};
use crate::subjects;

/// The most events that are looked at in a run.
const MAX_DECISIONS: usize = 2000;

pub fn run(states: u64) -> Result<bool, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let subjects = subjects::all()?;
    let share = states.div_ceil(subjects.len() as u64);
    let mut total = Tally::default();
    for (source, subject) in subjects {
        let program = directory.path().join(&subject.name);
        build::compile(&source, &program, &[INSTRUMENTED, &["-O0"]].concat())?;
        let mut worker = Worker::start(
            &Target { program, arguments: Vec::new(), ..Target::default() },
            &Limits::default(),
        )?;
        let tally = compare(&mut worker, share)?;
        println!(
            "{:<20} {:>8} states, {:>7} different   {} false matches, {} missed",
            subject.name, tally.states, tally.different, tally.false_matches, tally.missed
        );
        total.states += tally.states;
        total.different += tally.different;
        total.false_matches += tally.false_matches;
        total.missed += tally.missed;
    }
    println!(
        "in all {} states, {} of them different: {} false matches, {} missed",
        total.states, total.different, total.false_matches, total.missed
    );
    Ok(total.false_matches == 0)
}

#[derive(Default)]
struct Tally {
    states: u64,
    different: u64,
    /// Two states in full, one number.
    false_matches: u64,
    /// One state as far as the trace tells, two numbers. Wake-ups under way, time and output are in the number only.
    missed: u64,
}

fn compare(worker: &mut Worker, states: u64) -> Result<Tally, Box<dyn Error>> {
    let mut plan = Plan::default();
    learn(worker, &mut plan)?;
    plan.decisions = true;
    let mut histories = Histories::default();
    let mut by_number: HashMap<u64, State> = HashMap::new();
    let mut by_state: HashMap<State, u64> = HashMap::new();
    let mut tally = Tally::default();
    for seed in 0.. {
        plan.policy = Policy::Random { seed };
        for (number, state) in in_full(&worker.run(&plan)?, &mut histories) {
            tally.states += 1;
            let first = by_number.entry(number).or_insert_with(|| state.clone());
            tally.false_matches += u64::from(*first != state);
            let known = *by_state.entry(state).or_insert(number);
            tally.missed += u64::from(known != number);
        }
        if tally.states >= states {
            break;
        }
    }
    tally.different = by_state.len() as u64;
    Ok(tally)
}

/// A state in full: what each thread has done, and what shared memory holds.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    histories: Vec<u32>,
    memory: Vec<(u64, u8)>,
}

/// What a thread may do next, given what it has done: a tree, in which a node is a history.
#[derive(Default)]
struct Histories(HashMap<(u32, [u64; 7]), u32>);

impl Histories {
    fn after(&mut self, history: u32, event: [u64; 7]) -> u32 {
        let next = self.0.len() as u32 + 1;
        *self.0.entry((history, event)).or_insert(next)
    }
}

/// The states at the decisions of a run, each with its number.
fn in_full(run: &Run<'_>, histories: &mut Histories) -> Vec<(u64, State)> {
    let skipped = run.bytes().len() as u64 / size_of::<Record>() as u64 - run.events();
    let mut records = run.records().iter();
    let mut done = skipped;
    let mut threads: Vec<u32> = Vec::new();
    let mut memory: HashMap<u64, u8> = HashMap::new();
    let mut states = Vec::new();
    for decision in run.decisions().take(MAX_DECISIONS) {
        while done < decision.records
            && let Some(record) = records.next()
        {
            done += 1;
            let thread = usize::from(record.thread);
            threads.resize(threads.len().max(thread + 1), 0);
            threads[thread] = histories.after(threads[thread], event(record, &memory));
            write(record, &mut memory);
        }
        let mut contents: Vec<(u64, u8)> = memory.iter().map(|(&address, &byte)| (address, byte)).collect();
        contents.sort_unstable();
        states.push((decision.state, State { histories: threads.clone(), memory: contents }));
    }
    states
}

/// What an event tells of its thread: what was written follows from that.
fn event(record: &Record, memory: &HashMap<u64, u8>) -> [u64; 7] {
    let value = if record.kind == EventKind::Write as u8 { 0 } else { record.value };
    let replaced = match record.event_kind() {
        Some(EventKind::AtomicRmw) => (0..record.size().min(8)).fold(0, |old, i| {
            old << 8 | u64::from(memory.get(&(record.object + i)).copied().unwrap_or_default())
        }),
        _ => 0,
    };
    let (kind, detail) = (u64::from(record.kind), u64::from(record.detail));
    [kind, detail, record.pc(), record.object, record.size(), value, replaced]
}

/// Changes `memory` as the event did. Larger writes do not say what they wrote.
fn write(record: &Record, memory: &mut HashMap<u64, u8>) {
    let writes = record.event_kind().is_some_and(EventKind::is_write);
    if writes && record.outcome() == Some(Outcome::Done) && record.size() <= 8 {
        let bytes = record.value.to_le_bytes();
        memory.extend((0..record.size()).map(|i| (record.object + i, bytes[i as usize])));
    }
}
