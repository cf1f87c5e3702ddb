//! A logical thread.

use std::ffi::c_void;
use std::ops::{Index, IndexMut};

use threadbare_trace::{Span, ThreadId, ThreadIndex};

use super::context::Context;
use super::spinning::Spinning;
use super::wait::Wait;
use crate::hooks::calls;
use crate::os::processors::Affinity;
use crate::signals::masks;
use crate::sync::cancellation::Cancellation;
use crate::sync::thread_end::Duties;
use crate::time::work::Looks;

/// What a thread runs.
pub type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

pub struct Thread {
    pub id: ThreadId,
    /// How many threads it has created.
    pub children: u32,
    pub context: &'static Context,
    pub calls: calls::Saved,
    /// Where its own part of the stack ended when it last came to a schedule point, if that is known.
    pub users_stack_pointer: Option<u64>,
    /// Its work, as of when it last ran.
    pub work: u64,
    pub looks: Looks,
    /// What it waits for, if anything.
    pub wait: Wait,
    /// When a timed wait or a sleep is over, in virtual time.
    pub deadline: Option<u64>,
    /// How long such a wait was to last, in nanoseconds.
    pub patience: u64,
    pub timed_out: bool,
    /// Its time was up while others could run; how long the wait was to last.
    pub ended_early: Option<Span>,
    /// Its wait is over for no reason.
    pub woken: bool,
    /// It is to handle a signal, and to wait again.
    pub interrupted: bool,
    pub done: bool,
    /// Its routine and what that is called with; the main thread has none.
    pub start: Option<(Routine, *mut c_void)>,
    pub result: *mut c_void,
    pub detached: bool,
    pub duties: Duties,
    pub cancellation: Cancellation,
    pub handlers: masks::Signals,
    /// Signals sent to it that it has not had, one bit each.
    pub signals: u64,
    /// It waits at a cancellation point.
    pub cancellable: bool,
    pub spinning: Spinning,
    /// What its last event brought: a value read or written.
    pub last_value: u64,
    /// Read-write locks it holds for reading; other locks name their owner themselves.
    pub read_locks: Vec<u64>,
    /// The processors it may run on, as the program sees it.
    pub affinity: Affinity,
}

/// All threads that there have been, by index.
pub struct Threads(Vec<Thread>);

impl Threads {
    pub fn new(main: Thread) -> Threads {
        Threads(vec![main])
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn indices(&self) -> impl DoubleEndedIterator<Item = ThreadIndex> + ExactSizeIterator + use<> {
        ThreadIndex::first(self.0.len())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ThreadIndex, &Thread)> {
        self.indices().zip(&self.0)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.0.iter_mut()
    }

    pub fn get(&self, index: ThreadIndex) -> Option<&Thread> {
        self.0.get(index.index())
    }

    /// Adds a thread that was created.
    pub fn push(&mut self, thread: Thread) -> ThreadIndex {
        self.0.push(thread);
        ThreadIndex::at(self.0.len() - 1)
    }
}

impl Index<ThreadIndex> for Threads {
    type Output = Thread;

    #[inline]
    fn index(&self, index: ThreadIndex) -> &Thread {
        &self.0[index.index()]
    }
}

impl IndexMut<ThreadIndex> for Threads {
    #[inline]
    fn index_mut(&mut self, index: ThreadIndex) -> &mut Thread {
        &mut self.0[index.index()]
    }
}

impl Thread {
    pub fn new(id: ThreadId, context: &'static Context, calls: calls::Saved) -> Thread {
        Thread {
            id,
            children: 0,
            context,
            calls,
            users_stack_pointer: None,
            work: 0,
            looks: Looks::default(),
            wait: Wait::Nothing,
            deadline: None,
            patience: 0,
            timed_out: false,
            ended_early: None,
            woken: false,
            interrupted: false,
            done: false,
            start: None,
            result: std::ptr::null_mut(),
            detached: false,
            duties: Duties::default(),
            cancellation: Cancellation::default(),
            handlers: masks::Signals::default(),
            signals: 0,
            cancellable: false,
            spinning: Spinning::default(),
            last_value: 0,
            read_locks: Vec::new(),
            affinity: Affinity::ALL,
        }
    }
}
