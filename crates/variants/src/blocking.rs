//! Whether an operation that may have to wait could be done after some of a run's steps.
//!
//! This is the runtime's model of each primitive, as far as it decides who can go on. What is not modelled is taken to be
//! possible: a schedule is then tried, cannot be followed, and is counted as blocked.

use threadbare_search::OperationPatience;
use threadbare_trace::{Deed, EventKind, LockEffect, Outcome, ThreadIndex};

use crate::step::Step;

pub struct Blocking;

impl Blocking {
    /// The operation of `step` would not have to wait after the steps that `before` gives. They are some of `run`, in
    /// order, and all that `step`'s own thread did before are among them. `was_done` says that the run has the step.
    pub fn lets_go<'a, I: Iterator<Item = &'a Step>>(
        step: &Step,
        was_done: bool,
        before: impl Fn() -> I,
        run: &'a [Step],
    ) -> bool {
        let deeds = || before().flat_map(|step| step.deeds.iter());
        let all = || run.iter().flat_map(|step| step.deeds.iter());
        // What is waited for comes first, and a wait with a limit can always be given up.
        let is_limited = step.patience == OperationPatience::Limited;
        step.deeds.iter().skip(usize::from(is_limited)).all(|deed| match deed.kind {
            EventKind::Lock | EventKind::ReadLock => Lock::after(deed, deeds(), all()).lets(deed, was_done),
            EventKind::SemWait => semaphore(deed.object, deeds(), all()) > 0,
            EventKind::Wake | EventKind::FutexResume => has_token(deed, deeds()),
            EventKind::OnceEnter => !is_once_running(deed.object, deeds()),
            EventKind::Join => deeds()
                .any(|other| other.kind == EventKind::End && u64::from(other.thread.number()) == deed.object),
            EventKind::BarrierLeave => false,
            _ => true,
        })
    }
}

/// Who holds a lock.
#[derive(Default)]
struct Lock {
    writers: Vec<ThreadIndex>,
    readers: Vec<ThreadIndex>,
}

impl Lock {
    fn after<'a>(
        lock: &Deed,
        before: impl Iterator<Item = &'a Deed>,
        mut all: impl Iterator<Item = &'a Deed>,
    ) -> Lock {
        let mut state = Lock::default();
        // Who gives up a lock that the run has not seen anybody take has held it from before the first thread on.
        let is_of_lock = |deed: &&Deed| deed.object == lock.object && deed.outcome == Outcome::Done;
        let first = all.find(|deed| is_of_lock(deed) && deed.kind.lock_effect().is_some());
        match first.map(|deed| (deed.kind.lock_effect(), deed.thread)) {
            Some((Some(LockEffect::Releases { shared: false }), thread)) => state.writers.push(thread),
            Some((Some(LockEffect::Releases { shared: true }), thread)) => state.readers.push(thread),
            _ => {}
        }
        for deed in before.filter(is_of_lock) {
            match deed.kind.lock_effect() {
                Some(LockEffect::Acquires { shared: false }) => state.writers.push(deed.thread),
                Some(LockEffect::Acquires { shared: true }) => state.readers.push(deed.thread),
                Some(LockEffect::Releases { shared }) => state.release(deed.thread, shared),
                None => {}
            }
        }
        state
    }

    /// `pthread_rwlock_unlock` is one function for both sides, so either may be given up by the other's event.
    fn release(&mut self, thread: ThreadIndex, shared: bool) {
        let (first, second) = match shared {
            true => (&mut self.readers, &mut self.writers),
            false => (&mut self.writers, &mut self.readers),
        };
        for holders in [first, second] {
            if let Some(place) = holders.iter().position(|&holder| holder == thread) {
                holders.remove(place);
                return;
            }
        }
        // Anybody may unlock an ordinary mutex.
        self.writers.pop();
    }

    /// A thread that has locked what it held already was allowed to.
    fn lets(&self, deed: &Deed, was_done: bool) -> bool {
        let is_own = self.writers.iter().all(|&writer| was_done && writer == deed.thread);
        is_own && (deed.kind == EventKind::ReadLock || self.readers.is_empty())
    }
}

/// The value of a semaphore. Each event says what it left behind, so the first one of the run tells what there was.
fn semaphore<'a>(
    address: u64,
    before: impl Iterator<Item = &'a Deed>,
    all: impl Iterator<Item = &'a Deed>,
) -> i64 {
    let change = |deed: &Deed| match deed.kind {
        EventKind::SemPost if deed.outcome == Outcome::Done => Some(1),
        EventKind::SemWait if deed.outcome == Outcome::Done => Some(-1),
        _ => None,
    };
    let of_this = |deed: &&Deed| deed.object == address;
    let mut all = all.filter(of_this).filter_map(|deed| Some((deed, change(deed)?)));
    let first = all.next().map_or(0, |(deed, change)| deed.value as i64 - change);
    first + before.filter(of_this).filter_map(change).sum::<i64>()
}

/// A notification is there for the thread that waits.
fn has_token<'a>(deed: &Deed, before: impl Iterator<Item = &'a Deed>) -> bool {
    let mut waiting: Vec<(ThreadIndex, u64)> = Vec::new();
    let mut tokens: Vec<u64> = Vec::new();
    let of_this = before.filter(|other| other.object == deed.object);
    for (other, time) in of_this.zip(1..) {
        match other.kind {
            EventKind::Wait | EventKind::FutexWait if other.outcome == Outcome::Done => {
                waiting.push((other.thread, time));
            }
            // How many a wake-up was to wake is not in the log: those that it did.
            EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake => {
                let free = waiting.len().saturating_sub(tokens.len());
                let wanted = match other.kind {
                    EventKind::NotifyOne => 1,
                    EventKind::NotifyAll => usize::MAX,
                    _ => other.value.max(1) as usize,
                };
                tokens.extend(std::iter::repeat_n(time, free.min(wanted)));
            }
            EventKind::Wake | EventKind::FutexResume => {
                let since = waiting.iter().position(|&(thread, _)| thread == other.thread);
                let since = since.map_or(0, |place| waiting.remove(place).1);
                let token = tokens.iter().position(|&token| token > since);
                if let Some(token) = token.filter(|_| other.outcome == Outcome::Done) {
                    tokens.remove(token);
                }
            }
            _ => {}
        }
    }
    let since = waiting.iter().find(|&&(thread, _)| thread == deed.thread).map(|&(_, time)| time);
    since.is_some_and(|since| tokens.iter().any(|&token| token > since))
}

fn is_once_running<'a>(address: u64, before: impl Iterator<Item = &'a Deed>) -> bool {
    before.filter(|deed| deed.object == address).fold(false, |running, deed| match deed.kind {
        EventKind::OnceEnter if deed.value != 0 => true,
        EventKind::OnceLeave => false,
        _ => running,
    })
}
