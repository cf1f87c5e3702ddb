//! Memory that the program uses though it is gone: freed blocks, and frames of other threads that have returned.
//!
//! A thread that does not run stands inside a function of the runtime, and it is known where its own frames end and the
//! runtime's begin. So what another thread does below that, it does to a frame that is gone. The stack of a thread that
//! has ended is gone as a whole.

use std::fmt;

use threadbare_trace::{FailureKind, ThreadIndex};

use crate::active;
use crate::entry::log;
use crate::entry::modules::users_call;
use crate::memory::{heap, learn, shadow};
use crate::schedule::context;
use crate::schedule::ending::fail;
use crate::schedule::scheduler;

/// The program reads or writes these bytes.
pub fn check_access(address: u64, size: u64, verb: &str, pc: u64) {
    check(address, size, format_args!("{verb} of {size} bytes"), pc);
}

/// The program does `what` to these bytes. Ends the run if they are gone.
pub fn check(address: u64, size: u64, what: fmt::Arguments<'_>, pc: u64) {
    if shadow::is_tracked(address, size) {
        heap::check(address, size, what, pc);
    }
    check_stack(address, size, what, pc);
}

/// The kernel is about to read these bytes for the program. It would read freed memory as well, or say that there is
/// none if the run is guarded.
pub fn check_source(address: u64, size: u64, pc: u64) {
    check_for_kernel(address, size, "read", pc);
}

/// The kernel is about to write up to so many bytes for the program. It may write fewer, so only the first one is sure.
pub fn check_target(address: u64, size: u64, pc: u64) {
    check_for_kernel(address, size.min(1), "write", pc);
}

fn check_for_kernel(address: u64, size: u64, verb: &str, pc: u64) {
    if active() && shadow::is_tracked(address, size) {
        heap::check(address, size, format_args!("{verb} by the kernel"), users_call(pc));
    }
}

/// What a function may use below its stack pointer.
const RED_ZONE: u64 = 128;

/// The same for the stacks of other threads alone.
fn check_stack(address: u64, size: u64, what: fmt::Arguments<'_>, pc: u64) {
    let Some(owner) = owner(address).filter(|&owner| owner != scheduler::current()) else { return };
    let gone = scheduler::with(|sched| {
        let thread = sched.threads.get(owner)?;
        let stack_pointer = thread.context.stack_pointer();
        // The main thread may leave by `pthread_exit`. Its stack stays, and programs rely on that.
        if thread.done && owner != ThreadIndex::MAIN {
            return Some(format!("on the stack of thread {}, which has ended", thread.id));
        }
        // A thread may be on another stack, as in a signal handler or a coroutine. Nothing is known of its frames then.
        let own = thread.users_stack_pointer.unwrap_or(stack_pointer - RED_ZONE);
        let is_below = span(owner).contains(&stack_pointer) && address < own;
        (is_below && !thread.done).then(|| format!("in a function of thread {} that has returned", thread.id))
    });
    if let Some(gone) = gone {
        // So that a run which does not look at all accesses sees it too.
        learn::report(address, size);
        fail(FailureKind::UseAfterReturn, pc, &format!("{what}, {gone}"));
    }
}

fn span(thread: ThreadIndex) -> std::ops::Range<u64> {
    let span = log::stack_span(thread);
    span.low..span.high
}

/// The thread whose stack holds the address. A stack that the program brought may be used for something else once its
/// thread has ended, so nobody owns it here.
fn owner(address: u64) -> Option<ThreadIndex> {
    match context::slot_of(address) {
        Some(index) => Some(index).filter(|_| scheduler::is_running()),
        None => Some(ThreadIndex::MAIN).filter(|&main| span(main).contains(&address)),
    }
}
