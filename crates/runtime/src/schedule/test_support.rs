//! A scheduler with threads that run nothing, for unit tests.

use std::sync::{Mutex, Once, PoisonError};

use threadbare_trace::{EventKind, Plan, ThreadId, ThreadIndex};
use threadbare_wire::FILE_BYTES;

use super::context;
use super::follower::Follower;
use super::scheduler::{Operation, Scheduler};
use super::thread::Thread;
use crate::hooks::calls;
use crate::memory::layout;

/// The main thread's first two children.
pub const FIRST: ThreadIndex = ThreadIndex::new(1);
pub const SECOND: ThreadIndex = ThreadIndex::new(2);

/// What the scheduler keeps in statics and in the shared file, there is once; so tests come one at a time.
static ALONE: Mutex<()> = Mutex::new(());
static MAPPED: Once = Once::new();

/// Lends `work` a scheduler with `count` threads, the main one and its children, that follows `plan`.
pub fn with_threads(count: u32, plan: Plan, work: impl FnOnce(&mut Scheduler)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Zeroes stand in for the file that the tool would share.
    MAPPED.call_once(|| assert!(layout::reserve(layout::WIRE, FILE_BYTES), "the address space is there"));
    let context = Box::leak(Box::new(context::of_main()));
    let new_thread = |id| Thread::new(id, context, calls::Saved::none());
    let mut sched = Scheduler::new(new_thread(ThreadId::main()));
    for number in 1..count {
        let thread = new_thread(ThreadId::main().child(number));
        sched.add_thread(thread, &Operation::new(EventKind::Begin, u64::from(number), 0));
    }
    sched.follower = Follower::new(plan);
    work(&mut sched);
}
