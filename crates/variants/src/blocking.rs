//! Whether an operation could be done after some of a run's steps, or would have to wait, or would find nothing to do.
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
            EventKind::Wake | EventKind::FutexResume => {
                Waiting::after(deed.object, deeds()).has_token(deed.thread)
            }
            EventKind::OnceEnter => !is_once_running(deed.object, deeds()),
            EventKind::Join => deeds()
                .any(|other| other.kind == EventKind::End && u64::from(other.thread.number()) == deed.object),
            EventKind::BarrierLeave => false,
            _ => true,
        })
    }

    /// What found nothing to do in the run may have something to do after the steps that `before` gives.
    pub fn may_do<'a>(deed: &Deed, before: impl Iterator<Item = &'a Step>, run: &'a [Step]) -> bool {
        let mut before = before.flat_map(|step| step.deeds.iter());
        let all = run.iter().flat_map(|step| step.deeds.iter());
        match deed.kind {
            EventKind::Lock | EventKind::ReadLock => Lock::after(deed, before, all).lets(deed, false),
            EventKind::SemWait => semaphore(deed.object, before, all) > 0,
            EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake => {
                Waiting::after(deed.object, before).can_be_woken() > 0
            }
            EventKind::OnceEnter => {
                !before.any(|other| other.kind == EventKind::OnceEnter && other.object == deed.object)
            }
            kind => kind.may_turn_out_otherwise(),
        }
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

/// Who waits for a condition or at a futex, and the notifications that nobody has taken yet.
#[derive(Default)]
struct Waiting {
    /// Each thread, and since when.
    threads: Vec<(ThreadIndex, u64)>,
    /// When each notification was made. It is for any thread that waited then.
    tokens: Vec<u64>,
}

impl Waiting {
    fn after<'a>(address: u64, before: impl Iterator<Item = &'a Deed>) -> Waiting {
        let mut state = Waiting::default();
        for (deed, time) in before.filter(|deed| deed.object == address).zip(1..) {
            state.add(deed, time);
        }
        state
    }

    fn add(&mut self, deed: &Deed, time: u64) {
        match deed.kind {
            EventKind::Wait | EventKind::FutexWait if deed.outcome == Outcome::Done => {
                self.threads.push((deed.thread, time));
            }
            // How many a wake-up was to wake is not in the log: those that it did.
            EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake => {
                let wanted = match deed.kind {
                    EventKind::NotifyOne => 1,
                    EventKind::NotifyAll => usize::MAX,
                    _ => deed.value.max(1) as usize,
                };
                self.tokens.extend(std::iter::repeat_n(time, self.can_be_woken().min(wanted)));
            }
            EventKind::Wake | EventKind::FutexResume => {
                let since = self.threads.iter().position(|&(thread, _)| thread == deed.thread);
                let since = since.map_or(0, |place| self.threads.remove(place).1);
                let token = self.tokens.iter().position(|&token| token > since);
                if let Some(token) = token.filter(|_| deed.outcome == Outcome::Done) {
                    self.tokens.remove(token);
                }
            }
            _ => {}
        }
    }

    fn has_token(&self, thread: ThreadIndex) -> bool {
        let waiting = self.threads.iter().find(|&&(other, _)| other == thread);
        waiting.is_some_and(|&(_, since)| self.tokens.iter().any(|&token| token > since))
    }

    /// How many wait without a notification.
    fn can_be_woken(&self) -> usize {
        self.threads.len().saturating_sub(self.tokens.len())
    }
}

fn is_once_running<'a>(address: u64, before: impl Iterator<Item = &'a Deed>) -> bool {
    before.filter(|deed| deed.object == address).fold(false, |running, deed| match deed.kind {
        EventKind::OnceEnter if deed.value != 0 => true,
        EventKind::OnceLeave => false,
        _ => running,
    })
}
