//! The primitives that threads synchronise with: locks, condition variables, semaphores, futexes, threads themselves.
//!
//! One file models one primitive: its state, its rules, and the events that its operations leave. The functions that
//! a program calls are apart from that, in [`pthread`], [`c11`] and [`message_queue_calls`]. Two files hold both. In
//! [`once`], `pthread_once` itself has to call the routine, which may throw. In [`stream_lock`], the functions of stdio
//! only wait for a lock and go on to libc. What a thread can wait for is listed once, in `schedule::wait`. Pipes,
//! sockets and polling are in `os`, sleeping is in `time`.
//!
//! The state of a pthread object lives where glibc keeps it: in the object itself, in glibc's layout. So static
//! initialisers, `*_init`, `sem_getvalue`, copies and re-use of memory all work as they would, and there is nothing to
//! look up. (The ABI of the static initialisers fixes the fields that are used.) The models are references to such
//! objects. Their fields are `Cell`s, so that any number of references may exist at a time.

pub mod barrier;
mod c11;
pub mod cancellation;
pub mod condition;
pub mod futex;
pub mod message_queue;
mod message_queue_calls;
pub mod mutex;
pub mod once;
pub mod primitives;
mod pthread;
pub mod rwlock;
pub mod semaphore;
pub mod spin_lock;
mod stream_lock;
pub mod thread_end;
pub mod threads;
pub mod wakeups;

use crate::schedule::scheduler::{self, Operation};
use crate::schedule::wait::Wait;

/// How long an operation is ready to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    Endless,
    None,
    /// Until this virtual time; without one, for ever.
    Until(Option<u64>),
}

impl Patience {
    /// Comes before an operation that may have to wait for `wait`. `true` if it timed out.
    pub fn point(self, operation: Operation, wait: Wait) -> bool {
        scheduler::point(match self {
            Patience::Endless => operation.waiting(wait),
            Patience::None => operation,
            Patience::Until(deadline) => operation.waiting(wait).until(deadline),
        })
    }
}
