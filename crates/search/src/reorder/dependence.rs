//! What an event depends on if the run is to go the same way: program order, the write that each read saw, and
//! thread communication; no order of locks. (Not in the paper; see `closure`.)
//!
//! A set of events closed under this is a prefix of every thread, given by how many events of each it has.

use threadbare_trace::{EventIndex, ThreadIndex};

use super::history::{History, LocalIndex};
use super::variable::Variable;

/// A set of events that has a prefix of every thread. By thread: the first event that is not in it.
pub type Prefix = Vec<LocalIndex>;

/// For every event the smallest prefix that it is the last event of.
///
/// A thread's clock changes only where it learns something from another thread, so that is where it is written
/// down.
#[derive(Debug)]
pub struct Dependence {
    threads: usize,
    /// By thread: the positions among its events where its clock changes.
    changes: Vec<Vec<LocalIndex>>,
    /// By thread: the clock from each of these on. A thread's own entry is not kept up.
    clocks: Vec<Vec<LocalIndex>>,
}

/// The last write to a variable.
#[derive(Clone, Copy)]
struct Writer {
    thread: ThreadIndex,
    local: LocalIndex,
    /// Which clock the thread had then.
    clock: u32,
}

impl Dependence {
    pub fn of(history: &History) -> Dependence {
        let threads = history.threads();
        let mut dependence = Dependence {
            threads,
            changes: vec![vec![LocalIndex::default()]; threads],
            clocks: vec![vec![LocalIndex::default(); threads]; threads],
        };
        let mut writers: Vec<Option<Writer>> = vec![None; history.variables().count()];
        let mut edges = history.edges().iter().peekable();
        for (index, event) in history.trace().indexed_events() {
            let (thread, local) = (event.thread, history.local(index));
            while let Some(edge) = edges.next_if(|edge| edge.to == index) {
                let from = (history.thread(edge.from), history.local(edge.from));
                let clock = dependence.clock_index(from.0, from.1);
                dependence.learn(thread, local, Writer { thread: from.0, local: from.1, clock });
            }
            if event.kind.is_access() {
                let variable = history.variables().variable(event);
                let writer = &mut writers[variable.index()];
                if let Some(writer) = writer.filter(|_| sees_last_write(history, index, variable)) {
                    dependence.learn(thread, local, writer);
                }
                if history.writes(index) {
                    let clock = dependence.changes[thread.index()].len() as u32 - 1;
                    *writer = Some(Writer { thread, local, clock });
                }
            }
        }
        dependence
    }

    /// Thread `thread` knows from its event `local` on what `other` knew.
    fn learn(&mut self, thread: ThreadIndex, local: LocalIndex, other: Writer) {
        if other.thread == thread {
            return;
        }
        let (thread, source) = (thread.index(), other.thread.index());
        let threads = self.threads;
        let mut start = self.clocks[thread].len() - threads;
        if self.clocks[thread][start + source] > other.local {
            return;
        }
        if self.changes[thread].last() != Some(&local) {
            self.clocks[thread].extend_from_within(start..);
            self.changes[thread].push(local);
            start += threads;
        }
        for of in (0..threads).filter(|&of| of != thread) {
            let theirs = self.clocks[source][other.clock as usize * threads + of];
            let mine = &mut self.clocks[thread][start + of];
            *mine = (*mine).max(theirs);
        }
        let mine = &mut self.clocks[thread][start + source];
        *mine = (*mine).max(other.local.next());
    }

    fn clock_index(&self, thread: ThreadIndex, local: LocalIndex) -> u32 {
        self.changes[thread.index()].partition_point(|&change| change <= local) as u32 - 1
    }

    /// Adds to `prefix` the events of `thread` before `end`, and all that they depend on. Says whether anything was
    /// new.
    pub fn include(&self, prefix: &mut [LocalIndex], thread: ThreadIndex, end: LocalIndex) -> bool {
        if end <= prefix[thread.index()] {
            return false;
        }
        // A clock changes at an event, so the last one before `end` is the one that counts.
        let changes = &self.changes[thread.index()];
        let clock = (changes.partition_point(|&change| change < end) - 1) * self.threads;
        let clock = &self.clocks[thread.index()][clock..clock + self.threads];
        for (of, &known) in clock.iter().enumerate().filter(|(of, _)| *of != thread.index()) {
            prefix[of] = prefix[of].max(known);
        }
        prefix[thread.index()] = end;
        true
    }

    pub fn threads(&self) -> usize {
        self.threads
    }
}

/// A read sees the last write. Where a variable consists of parts, every access counts as one, so that no write to
/// a part is overlooked.
pub(crate) fn sees_last_write(history: &History, event: EventIndex, variable: Variable) -> bool {
    history.event(event).kind.is_read() || history.variables().is_mixed(variable)
}
