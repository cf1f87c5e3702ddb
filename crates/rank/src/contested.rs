//! Memory that threads could come to in either order.
//!
//! An access that another thread's can only come before or after, because one thread was created or waited for in
//! between, is not worth a preemption. What a run shows of this holds for that run; another may have accesses that it
//! had not. So this says what to try first, never what to leave out.

use rustc_hash::{FxHashMap, FxHashSet};
use threadbare_trace::{EventKind, ThreadIndex};

use threadbare_search::{Decision, Operation};

/// Accesses that are not ordered with a conflicting one of another thread, as thread and memory.
pub struct Contested(FxHashSet<(ThreadIndex, u64)>);

/// By thread, how much of what it did has happened before: epochs end when a thread is created or ends.
#[derive(Clone, Default)]
struct Clock(Vec<u32>);

/// The epochs of a thread's latest accesses to some memory.
#[derive(Clone, Copy)]
struct Latest {
    thread: ThreadIndex,
    read: Option<u32>,
    write: Option<u32>,
}

#[derive(Default)]
struct Run {
    /// Of threads that nobody has waited for yet: a program may create a great many, one after the other.
    clocks: FxHashMap<ThreadIndex, Clock>,
    /// By memory, one for each thread.
    latest: FxHashMap<u64, Vec<Latest>>,
    ended: FxHashSet<ThreadIndex>,
    contested: FxHashSet<(ThreadIndex, u64)>,
}

impl Clock {
    fn of(&self, thread: ThreadIndex) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    /// The epoch of `thread` is over.
    fn advance(&mut self, thread: ThreadIndex) {
        let len = self.0.len().max(thread.index() + 1);
        self.0.resize(len, 0);
        self.0[thread.index()] += 1;
    }

    fn join(&mut self, other: &Clock) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(epoch, &known)| *epoch = known.max(*epoch));
    }
}

impl Contested {
    pub fn of(decisions: &[Decision]) -> Contested {
        let mut run = Run::default();
        for decision in decisions {
            if let Some(operation) = decision.operation {
                run.step(decision.picked, operation);
            }
        }
        Contested(run.contested)
    }

    /// Thread and memory of an access.
    pub fn contains(&self, thread: ThreadIndex, memory: u64) -> bool {
        self.0.contains(&(thread, memory))
    }
}

impl Run {
    fn step(&mut self, thread: ThreadIndex, operation: Operation) {
        match operation.kind {
            EventKind::Fork => {
                let clock = self.clocks.entry(thread).or_default();
                clock.advance(thread);
                let inherited = clock.clone();
                self.clocks.insert(operation.other_thread(), inherited);
            }
            EventKind::End => _ = self.ended.insert(thread),
            // One that gave up waiting learns nothing.
            EventKind::Join if self.ended.contains(&operation.other_thread()) => {
                let ended = operation.other_thread();
                let mut known = self.clocks.remove(&ended).unwrap_or_default();
                known.advance(ended);
                self.clocks.entry(thread).or_default().join(&known);
            }
            EventKind::Read => self.access(thread, operation.object, false),
            EventKind::Write => self.access(thread, operation.object, true),
            // Only plain accesses can be contested. Synchronisation is worth a preemption in any case.
            EventKind::AtomicLoad
            | EventKind::AtomicStore
            | EventKind::AtomicRmw
            | EventKind::Fence
            | EventKind::Lock
            | EventKind::Unlock
            | EventKind::ReadLock
            | EventKind::ReadUnlock
            | EventKind::Wait
            | EventKind::Wake
            | EventKind::NotifyOne
            | EventKind::NotifyAll
            | EventKind::Begin
            | EventKind::Join
            | EventKind::Detach
            | EventKind::SemWait
            | EventKind::SemPost
            | EventKind::BarrierArrive
            | EventKind::BarrierLeave
            | EventKind::OnceEnter
            | EventKind::OnceLeave
            | EventKind::FutexWait
            | EventKind::FutexResume
            | EventKind::FutexWake
            | EventKind::Allocate
            | EventKind::Free
            | EventKind::Enter
            | EventKind::Leave
            | EventKind::Reach
            | EventKind::Yield
            | EventKind::Sleep
            | EventKind::Exit
            | EventKind::Failure
            | EventKind::Cancel
            | EventKind::Io
            | EventKind::Signal => {}
        }
    }

    fn access(&mut self, thread: ThreadIndex, memory: u64, write: bool) {
        let clock = self.clocks.entry(thread).or_default();
        let threads = self.latest.entry(memory).or_default();
        let mut own = None;
        for (place, latest) in threads.iter().enumerate() {
            if latest.thread == thread {
                own = Some(place);
                continue;
            }
            let conflicting = if write { latest.read.max(latest.write) } else { latest.write };
            if conflicting.is_some_and(|epoch| epoch >= clock.of(latest.thread)) {
                self.contested.extend([(thread, memory), (latest.thread, memory)]);
            }
        }
        let own = own.unwrap_or_else(|| {
            threads.push(Latest { thread, read: None, write: None });
            threads.len() - 1
        });
        let latest = &mut threads[own];
        *(if write { &mut latest.write } else { &mut latest.read }) = Some(clock.of(thread));
    }
}

#[cfg(test)]
mod tests {
    use threadbare_search::{CodePoint, OperationPatience, Round};
    use threadbare_trace::StackIndex;

    use super::*;

    const MAIN: u32 = 0;

    fn contested(steps: &[(u32, EventKind, u64)]) -> Vec<(u32, u64)> {
        let point = CodePoint { pc: 0, stack: StackIndex::EMPTY };
        let decision = |&(picked, kind, object): &(u32, EventKind, u64)| Decision {
            state: 0,
            picked: ThreadIndex::new(picked),
            alternatives: [ThreadIndex::new(picked)].into(),
            patience: OperationPatience::None,
            round: Round::None,
            update: None,
            operation: Some(Operation { kind, object, size: 4, point }),
            first_record: 0,
            guided: None,
        };
        let decisions: Vec<Decision> = steps.iter().map(decision).collect();
        let contested = Contested::of(&decisions).0.into_iter();
        let mut contested: Vec<_> = contested.map(|(thread, memory)| (thread.number(), memory)).collect();
        contested.sort_unstable();
        contested
    }

    #[test]
    fn what_a_thread_does_before_it_creates_another_or_after_it_has_waited_is_ordered() {
        use EventKind::{End, Fork, Join, Read, Write};
        let ordered = [
            (MAIN, Write, 100),
            (MAIN, Fork, 1),
            (1, Write, 100),
            (1, End, 0),
            (MAIN, Join, 1),
            (MAIN, Read, 100),
            (MAIN, Fork, 2),
            (2, Write, 100),
        ];
        assert_eq!(contested(&ordered), []);
    }

    #[test]
    fn two_threads_at_the_same_time_are_not() {
        use EventKind::{Fork, Join, Read, Write};
        let both = |kind| [(MAIN, Fork, 1), (MAIN, Fork, 2), (1, kind, 100), (2, Read, 100), (2, Write, 200)];
        assert_eq!(contested(&both(Write)), [(1, 100), (2, 100)]);
        assert_eq!(contested(&both(Read)), [], "reads do not conflict");
        let parent =
            [(MAIN, Fork, 1), (MAIN, Read, 100), (1, Write, 100), (MAIN, Join, 1), (MAIN, Read, 100)];
        assert_eq!(contested(&parent), [(0, 100), (1, 100)]);
    }

    #[test]
    fn a_wait_that_was_given_up_orders_nothing() {
        use EventKind::{End, Fork, Join, Write};
        let early = [(MAIN, Fork, 1), (MAIN, Join, 1), (1, Write, 100), (MAIN, Write, 100), (1, End, 0)];
        assert_eq!(contested(&early), [(0, 100), (1, 100)]);
    }

    #[test]
    fn order_is_passed_on() {
        use EventKind::{End, Fork, Join, Write};
        let chain = [
            (MAIN, Fork, 1),
            (1, Fork, 2),
            (2, Write, 100),
            (2, End, 0),
            (1, Join, 2),
            (1, End, 0),
            (MAIN, Join, 1),
            (MAIN, Write, 100),
        ];
        assert_eq!(contested(&chain), []);
    }
}
