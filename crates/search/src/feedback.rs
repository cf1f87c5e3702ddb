//! What a strategy is told of a run.

use std::sync::Arc;

use threadbare_executor::{Run, RunEnd};
use threadbare_trace::{EventKind, Extent, Outlasting, StackIndex, Step, ThreadId, ThreadIndex, Trace};
use threadbare_wire::{GuidedStep, OperationPatience, PendingRecord, Record, Round, Update};

use crate::Schedule;

/// What came of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Every decision, in order, if the plan asked for them.
    pub decisions: Vec<Decision>,
    /// The threads' names, by index.
    pub threads: Vec<ThreadId>,
    pub events: u64,
    /// Shared memory that the run found out about.
    pub learnt: Vec<Extent>,
    pub ended: RunEnd,
    /// The most events that the run was allowed.
    pub bound: u64,
    /// The sleeps that the run might outlast.
    pub outlasting: Outlasting,
    /// The shortest sleep of the others, in nanoseconds, that lasted while threads could run.
    pub held_sleep: Option<u64>,
    /// The threads that passed the waypoints of a guided run, in their order.
    pub passes: Vec<ThreadIndex>,
    /// What the run wrote down, if the schedule asked for it.
    pub records: Vec<Record>,
    /// What threads stood before when the run ended, if the schedule asked for records.
    pub pending: Vec<PendingRecord>,
    /// If the schedule asked for it.
    pub recording: Option<Box<Recording>>,
}

/// Everything a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub trace: Arc<Trace>,
    /// The schedule of the run as forced steps.
    pub steps: Vec<Step>,
}

/// The scheduler had to pick a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The same number is the same state of the program. In an exploration it is the state of the picked thread, or 0.
    pub state: u64,
    pub picked: ThreadIndex,
    /// The threads that were enabled, in order, and the one that ran.
    pub alternatives: Arc<[ThreadIndex]>,
    /// How its operation might have had to wait.
    pub patience: OperationPatience,
    pub round: Round,
    /// Only in an exploration, and only for what may write to at most eight bytes.
    pub update: Option<Update>,
    /// What the picked thread did, if it did anything.
    pub operation: Option<Operation>,
    /// Where what happened then begins in [`Feedback::records`], if the schedule asked for records.
    pub first_record: usize,
    /// If the run was guided.
    pub guided: Option<GuidedDecision>,
}

/// What guidance knew at a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidedDecision {
    /// Waypoints that were passed before.
    pub passed: u32,
    /// For each of the alternatives.
    pub steps: Vec<GuidedStep>,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub kind: EventKind,
    /// An address, or for thread events the number of the other thread.
    pub object: u64,
    pub size: u64,
    pub point: CodePoint,
}

impl Operation {
    /// The other thread of a thread event, such as a fork or a join.
    pub fn other_thread(&self) -> ThreadIndex {
        ThreadIndex::new(self.object as u32)
    }
}

/// A point in the code: an address, and the calls that led there. Comparable within one run only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodePoint {
    pub pc: u64,
    pub stack: StackIndex,
}

impl Feedback {
    /// The threads that passed the waypoints of a guided run, in order.
    pub fn passing_threads(&self) -> Vec<ThreadId> {
        self.passes.iter().filter_map(|thread| self.threads.get(thread.index()).cloned()).collect()
    }

    /// What came of `schedule`.
    pub fn of(run: &Run<'_>, schedule: &Schedule) -> Feedback {
        Feedback {
            decisions: decisions(run),
            threads: run.thread_ids(),
            events: run.events(),
            learnt: run.learnt(),
            ended: run.ended().clone(),
            bound: schedule.plan.max_events,
            outlasting: schedule.plan.outlasting,
            held_sleep: run.held_sleep(),
            passes: run.passes().into_iter().map(|(thread, _)| thread).collect(),
            records: if schedule.recorded { run.records().to_vec() } else { Vec::new() },
            pending: if schedule.recorded { run.pending_records() } else { Vec::new() },
            recording: schedule
                .traced
                .then(|| Box::new(Recording { trace: Arc::new(run.trace()), steps: run.steps() })),
        }
    }

    /// The threads that were picked, decision by decision.
    pub fn picks(&self) -> impl Iterator<Item = ThreadIndex> {
        self.decisions.iter().map(|decision| decision.picked)
    }
}

fn decisions(run: &Run<'_>) -> Vec<Decision> {
    let prologue = run.bytes().len() as u64 / size_of::<Record>() as u64 - run.events();
    let records = run.records();
    let done: Vec<usize> = run.decisions().map(|decision| (decision.records - prologue) as usize).collect();
    // The set of enabled threads seldom changes from one decision to the next.
    let mut alternatives: Arc<[ThreadIndex]> = Arc::new([]);
    let decision = |(i, decision): (usize, threadbare_wire::Decision<'_>)| {
        if !decision.alternatives().eq(alternatives.iter().copied()) {
            alternatives = decision.alternatives().collect();
        }
        let until = done.get(i + 1).copied().unwrap_or(records.len());
        let caused = records.get(done[i]..until).unwrap_or_default();
        let own = caused.iter().filter(|record| record.thread_index() == decision.picked);
        Decision {
            state: decision.state,
            picked: decision.picked,
            alternatives: Arc::clone(&alternatives),
            patience: decision.patience,
            round: decision.round,
            update: decision.update,
            operation: own.into_iter().find_map(operation),
            first_record: done[i],
            guided: decision
                .passed()
                .map(|passed| GuidedDecision { passed, steps: decision.steps().collect() }),
        }
    };
    run.decisions().enumerate().map(decision).collect()
}

fn operation(record: &Record) -> Option<Operation> {
    let kind = record.event_kind().filter(|kind| !kind.is_silent())?;
    let point = CodePoint { pc: record.pc(), stack: record.stack_index() };
    Some(Operation { kind, object: record.object, size: record.size(), point })
}
