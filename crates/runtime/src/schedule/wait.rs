//! What threads wait for: the one table of it.
//!
//! Each question that the scheduler has about a wait is a `match` here that names every variant, or is answered by the
//! [`Rules`] that such a `match` gives. A new primitive adds its variant, and the compiler lists the questions that are
//! still to be answered. The answers themselves are in the models of the primitives.

use std::cell::Cell;

use threadbare_trace::ThreadIndex;

use crate::os::io;
use crate::schedule::scheduler::Scheduler;
use crate::sync::message_queue::Queue;
use crate::sync::mutex::Mutex;
use crate::sync::once::Once;
use crate::sync::rwlock::RwLock;
use crate::sync::semaphore::Semaphore;
use crate::sync::spin_lock::SpinLock;
use crate::sync::wakeups::Token;

/// Why a thread may be unable to do its operation.
#[derive(Clone, Copy)]
pub enum Wait {
    Nothing,
    /// A change of what a loop has looked at.
    Loop,
    /// A mutex to be free, or held by the thread itself where that is an answer.
    Mutex(&'static Mutex),
    SpinLock(&'static SpinLock),
    ReadLock(&'static RwLock),
    WriteLock(&'static RwLock),
    Semaphore(&'static Semaphore),
    /// A message in a queue.
    Message(&'static Queue),
    /// Room for a message in a queue.
    Room(&'static Queue),
    /// Another thread to end.
    Join(ThreadIndex),
    /// The last thread to arrive at a barrier; `generation` passes.
    Barrier {
        address: u64,
        generation: u64,
    },
    /// A `once` routine that another thread is in.
    Once(&'static Once),
    /// A wake-up, and then for a condition wait the mutex.
    Wakeup {
        address: u64,
        ticket: u64,
        mask: u32,
        mutex: Option<&'static Mutex>,
    },
    /// Time.
    Sleep,
    /// One of these signals, a bit each.
    Signal(u64),
    /// One of these descriptors to be ready.
    Ready(&'static [Cell<libc::pollfd>]),
    /// Something to be done on any descriptor, after so many such changes. These descriptors tell whether that can come
    /// from outside.
    Change {
        since: u64,
        descriptors: &'static [Cell<libc::pollfd>],
    },
}

/// What a signal that the thread handles does to its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// The handler is called, and the thread waits again.
    WaitsAgain,
    /// The wait is for signals: it takes those it wants, and no handler is called.
    IsTaken,
    /// The wait ends with `EINTR`, or looks at what has changed. That is not modelled.
    Unsupported,
}

/// How a kind of wait behaves, apart from when it is over.
pub struct Rules {
    pub on_signal: OnSignal,
    /// It may end for no reason, where a plan allows that.
    pub may_be_spurious: bool,
    /// It is over when its time is over, and no thread can end it earlier.
    pub is_sleep: bool,
    /// The signals that it waits for, a bit each.
    pub signals: u64,
    /// The descriptors that it waits for.
    pub descriptors: &'static [Cell<libc::pollfd>],
    /// The tokens that it may take.
    tokens: Option<Tokens>,
}

/// Tells tokens that a wait may take from others.
#[derive(Clone, Copy)]
struct Tokens {
    address: u64,
    ticket: u64,
    mask: u32,
}

/// The pretended address of thread `index`, for waits on its end.
pub fn thread_address(index: ThreadIndex) -> u64 {
    u64::from(index.number())
}

impl Wait {
    /// Thread `me` can go on.
    pub fn is_over(&self, sched: &Scheduler, me: ThreadIndex) -> bool {
        match *self {
            Wait::Nothing => true,
            Wait::Loop => !sched.threads[me].spinning.waits(),
            Wait::Mutex(mutex) => mutex.can_lock(sched, me),
            Wait::SpinLock(lock) => lock.is_free(),
            Wait::ReadLock(lock) => lock.can_read(sched),
            Wait::WriteLock(lock) => lock.can_write(),
            Wait::Semaphore(semaphore) => semaphore.value() > 0,
            Wait::Message(queue) => queue.has_message(),
            Wait::Room(queue) => queue.has_room(),
            Wait::Join(index) => sched.threads[index].done,
            Wait::Barrier { address, generation } => sched.generations.of(address) > generation,
            Wait::Once(once) => !once.is_running(),
            Wait::Wakeup { address, ticket, mask, .. } => {
                sched.wakeups.has(address, ticket, mask) && self.may_be_given_up(sched, me)
            }
            Wait::Sleep => false,
            Wait::Signal(wanted) => sched.signals_for(me) & wanted != 0,
            Wait::Ready(entries) => io::is_ready(entries),
            Wait::Change { since, .. } => io::changes() > since,
        }
    }

    /// A wait that is given up may return now: nothing else stands in its way.
    pub fn may_be_given_up(&self, sched: &Scheduler, me: ThreadIndex) -> bool {
        match *self {
            Wait::Wakeup { mutex, .. } => mutex.is_none_or(|mutex| mutex.can_lock(sched, me)),
            Wait::Nothing
            | Wait::Loop
            | Wait::Mutex(_)
            | Wait::SpinLock(_)
            | Wait::ReadLock(_)
            | Wait::WriteLock(_)
            | Wait::Semaphore(_)
            | Wait::Message(_)
            | Wait::Room(_)
            | Wait::Join(_)
            | Wait::Barrier { .. }
            | Wait::Once(_)
            | Wait::Sleep
            | Wait::Signal(_)
            | Wait::Ready(_)
            | Wait::Change { .. } => true,
        }
    }

    /// A change at `address` may end it.
    pub fn concerns(&self, address: u64) -> bool {
        match *self {
            Wait::Nothing | Wait::Loop | Wait::Sleep | Wait::Signal(_) => false,
            Wait::Mutex(of) => of.address() == address,
            Wait::SpinLock(of) => of.address() == address,
            Wait::ReadLock(of) | Wait::WriteLock(of) => of.address() == address,
            Wait::Semaphore(of) => of.address() == address,
            Wait::Message(of) | Wait::Room(of) => of.address() == address,
            Wait::Join(index) => thread_address(index) == address,
            Wait::Barrier { address: of, .. } => of == address,
            Wait::Once(of) => of.address() == address,
            Wait::Wakeup { address: of, mutex, .. } => {
                of == address || mutex.is_some_and(|mutex| mutex.address() == address)
            }
            Wait::Ready(_) | Wait::Change { .. } => address == io::ANY,
        }
    }

    /// The end of a thread may end it, besides that of the thread it waits for.
    pub fn concerns_deaths(&self) -> bool {
        match *self {
            Wait::Mutex(mutex) => mutex.is_robust(),
            Wait::Nothing
            | Wait::Loop
            | Wait::SpinLock(_)
            | Wait::ReadLock(_)
            | Wait::WriteLock(_)
            | Wait::Semaphore(_)
            | Wait::Message(_)
            | Wait::Room(_)
            | Wait::Join(_)
            | Wait::Barrier { .. }
            | Wait::Once(_)
            | Wait::Wakeup { .. }
            | Wait::Sleep
            | Wait::Signal(_)
            | Wait::Ready(_)
            | Wait::Change { .. } => false,
        }
    }

    /// The thread that would have to act first, where that is known.
    pub fn holder(&self, sched: &Scheduler) -> Option<ThreadIndex> {
        match *self {
            Wait::Mutex(mutex) => mutex.owner(),
            Wait::ReadLock(lock) | Wait::WriteLock(lock) => {
                let reads = |index: ThreadIndex| sched.threads[index].read_locks.contains(&lock.address());
                lock.writer().or_else(|| sched.threads.indices().find(|&index| reads(index)))
            }
            Wait::Join(index) => Some(index),
            Wait::Nothing
            | Wait::Loop
            | Wait::SpinLock(_)
            | Wait::Semaphore(_)
            | Wait::Message(_)
            | Wait::Room(_)
            | Wait::Barrier { .. }
            | Wait::Once(_)
            | Wait::Wakeup { .. }
            | Wait::Sleep
            | Wait::Signal(_)
            | Wait::Ready(_)
            | Wait::Change { .. } => None,
        }
    }

    /// How it behaves.
    pub fn rules(&self) -> Rules {
        const PLAIN: Rules = Rules {
            on_signal: OnSignal::Unsupported,
            may_be_spurious: false,
            is_sleep: false,
            signals: 0,
            descriptors: &[],
            tokens: None,
        };
        match *self {
            Wait::Loop
            | Wait::Mutex(_)
            | Wait::SpinLock(_)
            | Wait::ReadLock(_)
            | Wait::WriteLock(_)
            | Wait::Semaphore(_)
            | Wait::Join(_) => Rules { on_signal: OnSignal::WaitsAgain, ..PLAIN },
            Wait::Signal(signals) => Rules { on_signal: OnSignal::IsTaken, signals, ..PLAIN },
            Wait::Wakeup { address, ticket, mask, mutex: _ } => {
                Rules { may_be_spurious: true, tokens: Some(Tokens { address, ticket, mask }), ..PLAIN }
            }
            Wait::Sleep => Rules { is_sleep: true, ..PLAIN },
            Wait::Nothing | Wait::Message(_) | Wait::Room(_) | Wait::Barrier { .. } | Wait::Once(_) => PLAIN,
            Wait::Ready(descriptors) | Wait::Change { descriptors, .. } => Rules { descriptors, ..PLAIN },
        }
    }

    /// It may take this token. The state of a program tells a token by the threads that may take it; the state of the
    /// other primitives follows from what the threads have done.
    pub fn may_take(&self, token: &Token) -> bool {
        let tokens = self.rules().tokens;
        tokens.is_some_and(|Tokens { address, ticket, mask }| token.is_for(address, ticket, mask))
    }
}
