//! The result of a run.

use std::sync::atomic::Ordering;

use threadbare_trace::trace::steps_of;
use threadbare_trace::{
    End, EventIndex, EventKind, Extent, FailureKind, Plan, Role, Step, ThreadId, ThreadIndex, Trace, Turns,
    Until,
};
use threadbare_wire::{self as wire, Pass, PendingRecord, RaceRecord, Record};

use crate::ending::RunEnd;
use crate::symbolise;
use crate::worker::Worker;

/// Identifies a failure. Two runs that fail in the same way have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailureKey {
    pub kind: FailureKind,
    /// Sorted, without duplicates.
    addresses: Vec<u64>,
    message: String,
}

/// The key of a data race.
fn key_of(race: &RaceRecord) -> FailureKey {
    let mut addresses = race.addresses.to_vec();
    addresses.dedup();
    FailureKey { kind: FailureKind::DataRace, addresses, message: String::new() }
}

/// The message with each number replaced by `#`.
fn without_numbers(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for character in message.chars() {
        match character {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            _ => text.push(character),
        }
    }
    text
}

/// The last run of a worker. It borrows the worker, because the next run overwrites it.
pub struct Run<'w> {
    pub(crate) worker: &'w Worker,
    pub(crate) ended: RunEnd,
}

impl Run<'_> {
    pub fn ended(&self) -> &RunEnd {
        &self.ended
    }

    /// The key of the failure, if the run failed.
    pub fn failure(&self) -> Option<FailureKey> {
        let failure = self.ended.failure()?;
        let memory = self.worker.memory();
        let pending = || memory.pending().iter().filter(|pending| pending.kind != 0);
        let mut addresses: Vec<u64> = match failure.kind {
            // A deadlock is told by where threads wait. Which thread came last does not matter.
            FailureKind::Deadlock => pending().map(|pending| pending.pc).collect(),
            // A livelock is told by the functions that the threads loop in, not by where they were stopped.
            FailureKind::Livelock => pending()
                .filter_map(|pending| Some(memory.stacks().get(pending.stack_index().index())?.pc))
                .collect(),
            FailureKind::DataRace => {
                let other = failure.related(Role::OtherAccess);
                std::iter::once(&failure.at).chain(other).map(|at| at.pc).collect()
            }
            _ => vec![failure.at.pc],
        };
        addresses.sort_unstable();
        addresses.dedup();
        let message = match failure.kind {
            // A crash mentions an address, which differs from run to run.
            FailureKind::Signal(_) => String::new(),
            // So do the values that an assertion compared.
            FailureKind::Panic => without_numbers(&failure.message),
            // And the threads that have to do with an object that is gone.
            FailureKind::DestroyedInUse | FailureKind::UseAfterReturn => without_numbers(&failure.message),
            _ => failure.message.clone(),
        };
        Some(FailureKey { kind: failure.kind, addresses, message })
    }

    /// The events as the runtime wrote them, without the prologue.
    pub fn records(&self) -> &[Record] {
        let memory = self.worker.memory();
        let prologue = memory.control().prologue.load(std::sync::atomic::Ordering::Relaxed) as usize;
        memory.records().get(prologue..).unwrap_or_default()
    }

    /// The whole log as bytes, for comparing runs.
    pub fn bytes(&self) -> &[u8] {
        let records = self.worker.memory().records();
        // SAFETY: records are plain data without padding.
        unsafe { std::slice::from_raw_parts(records.as_ptr().cast(), size_of_val(records)) }
    }

    /// The number of events.
    pub fn events(&self) -> u64 {
        self.records().len() as u64
    }

    /// The number of threads, the main thread included.
    pub fn threads(&self) -> u32 {
        self.worker.memory().pending().len() as u32
    }

    /// The shared memory that the run found, if its plan asked for it.
    pub fn learnt(&self) -> Vec<Extent> {
        wire::decode_extents(self.worker.memory().learnt()).unwrap_or_default()
    }

    /// The shortest sleep, in nanoseconds, that lasted for as long as others could run because the plan does not let it be
    /// outlasted.
    pub fn held_sleep(&self) -> Option<u64> {
        self.worker.memory().control().held_sleep.load(Ordering::Relaxed).checked_sub(1)
    }

    /// What each thread that had not ended stood before when the run ended.
    pub fn pending_records(&self) -> Vec<PendingRecord> {
        self.worker.memory().pending().iter().filter(|pending| pending.kind != 0).copied().collect()
    }

    /// The whole schedule of the run, as turns.
    pub fn turns(&self) -> Vec<Turns> {
        self.worker.memory().turns()
    }

    /// All decisions in order, if the plan asked for them.
    pub fn decisions(&self) -> wire::Decisions<'_> {
        self.worker.memory().decisions()
    }

    /// Who was picked at each decision, and before which event, if the plan asked for decisions.
    pub fn picks(&self) -> Vec<(ThreadIndex, EventIndex)> {
        self.decisions().map(|decision| (decision.picked, self.event_after(decision.records))).collect()
    }

    /// Who passed each waypoint of a guided run, and before which event.
    pub fn passes(&self) -> Vec<(ThreadIndex, EventIndex)> {
        let pass = |pass: &Pass| (ThreadIndex::new(pass.thread as u32), self.event_after(pass.records));
        self.worker.memory().passes().iter().map(pass).collect()
    }

    /// The event that comes after so many records of the log.
    fn event_after(&self, records: u64) -> EventIndex {
        let prologue = self.worker.memory().control().prologue.load(Ordering::Relaxed);
        EventIndex::new(records.saturating_sub(prologue) as u32)
    }

    /// What the run printed, at most the last `max_bytes` bytes.
    pub fn output(&self, max_bytes: u64) -> String {
        String::from_utf8_lossy(&self.worker.output(max_bytes)).into_owned()
    }

    /// All that the run printed, byte for byte.
    pub fn output_bytes(&self) -> Vec<u8> {
        self.worker.output(u64::MAX)
    }

    /// The ids of the run's threads, by index.
    pub fn thread_ids(&self) -> Vec<ThreadId> {
        let mut children = vec![0u32];
        let mut ids = vec![ThreadId::main()];
        for record in self.records().iter().filter(|record| record.kind == EventKind::Fork as u8) {
            let parent = record.thread_index().index();
            if record.other_thread().index() != ids.len() || parent >= ids.len() {
                continue;
            }
            children[parent] += 1;
            ids.push(ids[parent].child(children[parent]));
            children.push(0);
        }
        ids
    }

    /// Events that a plan can stop before, as (thread, kind, address).
    fn points(&self) -> impl Iterator<Item = (ThreadIndex, EventKind, u64)> {
        self.records().iter().filter_map(|record| {
            let kind = record.event_kind()?;
            (!kind.is_silent()).then(|| (record.thread_index(), kind, record.pc()))
        })
    }

    /// The run's schedule as forced steps, one for each switch and one to the end.
    pub fn steps(&self) -> Vec<Step> {
        // A run that went on to its bound is forced as far as the plan decided; from half-way on it was fair.
        let forced = match &self.ended {
            End::EventBound => self.points().count() / 2,
            End::Failed(failure) if failure.kind == FailureKind::Livelock => self.points().count() / 2,
            _ => usize::MAX,
        };
        let mut steps = self.first_steps(forced);
        if let End::Failed(failure) = &self.ended
            && let Some(other) = failure.related(Role::OtherAccess)
        {
            steps.pop();
            steps.extend(self.steps_before(&[other.thread, failure.at.thread], usize::MAX));
        }
        steps
    }

    /// The steps of the switches among the first `forced` points.
    fn first_steps(&self, forced: usize) -> Vec<Step> {
        let ids = self.thread_ids();
        let pending = self
            .worker
            .memory()
            .pending()
            .iter()
            .filter_map(|pending| Some((pending.thread_index(), pending.event_kind()?, pending.pc)));
        steps_of(ids.len(), self.points(), pending, forced)
            .into_iter()
            .map(|(thread, until)| Step { thread: ids[thread.index()].clone(), until })
            .collect()
    }

    /// Steps that take each of `threads` to the operation it stood before after `done` points.
    fn steps_before(&self, threads: &[ThreadIndex], done: usize) -> Vec<Step> {
        let ids = self.thread_ids();
        let next = |thread: ThreadIndex| {
            let later = self.points().skip(done).find(|point| point.0 == thread);
            later.or_else(|| {
                let pending = self.worker.memory().pending().get(thread.index())?;
                Some((thread, pending.event_kind()?, pending.pc))
            })
        };
        let step = |&thread: &ThreadIndex| {
            let point = next(thread)?;
            let occurrence = 1 + self.points().take(done).filter(|before| *before == point).count() as u32;
            let until = Until::Before { kind: point.1, address: point.2, occurrence };
            Some(Step { thread: ids[thread.index()].clone(), until })
        };
        threads.iter().filter_map(step).collect()
    }

    /// The data races that were seen, as failures: what each is, and a plan under which it ends the run. `plan`
    /// is the run's own.
    pub fn races(&self, plan: &Plan) -> Vec<(FailureKey, Plan)> {
        self.worker.memory().races().iter().map(|race| (key_of(race), self.plan_of(race, plan))).collect()
    }

    fn plan_of(&self, race: &RaceRecord, plan: &Plan) -> Plan {
        let memory = self.worker.memory();
        let prologue = memory.control().prologue.load(Ordering::Relaxed);
        let is_point = |record: &&Record| record.event_kind().is_some_and(|kind| !kind.is_silent());
        let before = self.records().iter().take((race.at - prologue) as usize);
        let done = before.filter(is_point).count();
        let mut steps = self.first_steps(done);
        steps.extend(self.steps_before(&[race.other, race.thread], done));
        Plan { steps, race: Some(race.addresses), learn: false, ..plan.clone() }
    }

    /// The trace of the run, with all names.
    pub fn trace(&self) -> Trace {
        symbolise::trace(self)
    }
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    /// Protects one report for one assertion, whatever values it has compared.
    #[test]
    fn panics_that_differ_in_numbers_are_the_same() {
        let words = without_numbers("assertion failed\n  left: 1100\n right: 1200");
        assert_eq!(words, "assertion failed\n  left: #\n right: #");
        assert_eq!(words, without_numbers("assertion failed\n  left: 9\n right: 1200"));
        assert_ne!(words, without_numbers("assertion failed"));
    }
}
