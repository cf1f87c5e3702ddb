//! What a run left behind.

use threadbare_trace::trace::steps_of;
use threadbare_trace::wire::{self, Record};
use threadbare_trace::{EventKind, Extent, FailureKind, Step, ThreadId, Trace};

use crate::ending::Ended;
use crate::symbolise;
use crate::worker::Worker;

/// What makes two failures the same: kind, places in the code, words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailureKey {
    pub kind: FailureKind,
    places: Vec<u64>,
    message: String,
}

/// The last run of a worker. It borrows the worker, because the next run overwrites it.
pub struct Run<'w> {
    pub(crate) worker: &'w Worker,
    pub(crate) ended: Ended,
}

impl Run<'_> {
    pub fn ended(&self) -> &Ended {
        &self.ended
    }

    /// Names the failure, if it was one, so that two runs that failed alike compare equal.
    pub fn failure(&self) -> Option<FailureKey> {
        let Ended::Failed { kind, message, pc, .. } = &self.ended else { return None };
        let memory = self.worker.memory();
        let pending = || memory.pending().iter().filter(|pending| pending.kind != 0);
        let mut places: Vec<u64> = match kind {
            // A deadlock is where threads wait; who came last does not matter.
            FailureKind::Deadlock => pending().map(|pending| pending.pc).collect(),
            // A livelock is in the functions that threads go round in, wherever in them they were stopped.
            FailureKind::Livelock => pending()
                .filter_map(|pending| Some(memory.stacks().get(pending.stack as usize)?.pc))
                .collect(),
            _ => vec![*pc],
        };
        places.sort_unstable();
        places.dedup();
        // The address that a crash mentions may be any: it is the same accident.
        let message = if matches!(kind, FailureKind::Signal(_)) { String::new() } else { message.clone() };
        Some(FailureKey { kind: *kind, places, message })
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

    /// Events, counted.
    pub fn events(&self) -> u64 {
        self.records().len() as u64
    }

    /// Threads that there were, the main thread included.
    pub fn threads(&self) -> u32 {
        self.worker.memory().pending().len() as u32
    }

    /// The shared memory that the run learnt of, if its plan asked it to.
    pub fn learnt(&self) -> Vec<Extent> {
        wire::decode_extents(self.worker.memory().learnt()).unwrap_or_default()
    }

    /// What the run printed, at most the last `most` bytes.
    pub fn output(&self, most: u64) -> String {
        self.worker.output(most)
    }

    /// The ids of the run's threads, by index.
    pub fn thread_ids(&self) -> Vec<ThreadId> {
        let mut children = vec![0u32];
        let mut ids = vec![ThreadId::main()];
        for record in self.records().iter().filter(|record| record.kind == EventKind::Fork as u8) {
            let parent = usize::from(record.thread);
            if record.object as usize != ids.len() || parent >= ids.len() {
                continue;
            }
            children[parent] += 1;
            ids.push(ids[parent].child(children[parent]));
            children.push(0);
        }
        ids
    }

    /// Events that a plan can stop before, as (thread, kind, address).
    fn points(&self) -> impl Iterator<Item = (u32, EventKind, u64)> {
        self.records().iter().filter_map(|record| {
            let kind = record.event_kind()?;
            (!kind.is_silent()).then(|| (u32::from(record.thread), kind, record.pc()))
        })
    }

    /// The run's schedule as forced steps, one for each switch and one to the end.
    pub fn steps(&self) -> Vec<Step> {
        let ids = self.thread_ids();
        let pending =
            self.worker.memory().pending().iter().filter_map(|pending| {
                Some((pending.thread, EventKind::from_byte(pending.kind)?, pending.pc))
            });
        // A run that went on to its bound is forced as far as the plan decided; from half-way on it was fair.
        let forced = match self.ended {
            Ended::EventBound | Ended::Failed { kind: FailureKind::Livelock, .. } => {
                self.points().count() / 2
            }
            _ => usize::MAX,
        };
        steps_of(ids.len(), self.points(), pending, forced)
            .into_iter()
            .map(|(thread, until)| Step { thread: ids[thread as usize].clone(), until })
            .collect()
    }

    /// The run with everything looked up.
    pub fn trace(&self) -> Trace {
        symbolise::trace(self)
    }
}
