//! Creating threads, and waiting for their end.

use std::ffi::{c_int, c_void};

use threadbare_trace::{End, EventKind, Outcome, ThreadIndex};
use threadbare_wire::{MAX_THREADS, StackSpan};

use super::{Patience, cancellation, thread_end};
use crate::entry::log::{self, Entry};
use crate::entry::modules::users_call;
use crate::entry::server;
use crate::hooks::calls;
use crate::memory::{heap, layout};
use crate::os::processors;
use crate::schedule::carrier::Carrier;
use crate::schedule::context::{self, Context, POOL_STACK, Stack};
use crate::schedule::ending::finish;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::thread::{Routine, Thread};
use crate::schedule::wait::{self, Wait};
use crate::signals::masks;
use crate::time::work;

/// Contexts made ahead, by thread index; the main thread's entry stays empty.
static CONTEXTS: Carrier<Vec<Option<&'static Context>>> = Carrier::new(Vec::new());

/// Contexts that are made ahead, at most: each is a thread of the system and a part of what every fork copies. Runs
/// make more for themselves.
const MAX_AHEAD: usize = 1000;

/// Makes contexts for threads 1 to `count`, or as many as is good.
pub fn ensure_contexts(count: usize) {
    let made = CONTEXTS.with(|contexts| contexts.len());
    for index in (made..=count.min(MAX_AHEAD)).map(ThreadIndex::at) {
        let slot = Stack::Slot { index, bytes: POOL_STACK };
        // SAFETY: a slot's memory is kept for its thread by `layout`.
        let new = || unsafe { context::create(slot) };
        let context = if index == ThreadIndex::MAIN { None } else { heap::for_runtime(new).ok() };
        CONTEXTS.with(|contexts| contexts.push(context));
    }
}

/// `pthread_create`.
///
/// # Safety
/// `handle` can be written to, and `attributes` is null or initialised.
pub unsafe fn create(
    handle: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
    pc: u64,
) -> c_int {
    if !scheduler::is_running() {
        server::serve();
    }
    let pc = users_call(pc);
    point(Operation::new(EventKind::Fork, pc, scheduler::count() as u64));
    if scheduler::count() >= MAX_THREADS {
        return none_left(pc);
    }
    let index = ThreadIndex::at(scheduler::count());
    // SAFETY: the caller's promise.
    let (stack, detached) = unsafe { wanted(attributes, index) };
    if matches!(stack, Stack::Slot { bytes, .. } if bytes >= ADDRESS_SPACE) {
        return not_created(libc::EAGAIN, pc);
    }
    let is_own_slot = matches!(stack, Stack::Slot { .. });
    let (low, high) = stack.range();
    // SAFETY: a stack that the program gives a thread is the thread's alone.
    let context = unsafe { context_for(index, stack) };
    let (context, calls) = match (context, calls::create(index)) {
        (Ok(context), Some(calls)) => (context, calls),
        (Err(libc::EAGAIN), _) if is_own_slot => return none_left(pc),
        (Err(error), _) => return not_created(error, pc),
        (_, None) => return none_left(pc),
    };
    // SAFETY: the caller's promise.
    unsafe { handle.write(context.handle()) };
    let (handlers, affinity) = (masks::inherited(), processors::inherited());
    let address = routine as *const () as u64;
    let span = StackSpan { low, base: high, high, routine: address };
    log::set_stack_span(index, span);
    scheduler::with(|sched| {
        let parent = &mut sched.threads[scheduler::current()];
        parent.children += 1;
        let id = parent.id.child(parent.children);
        let start = Some((routine, argument));
        let (work, looks) = (work::current(), parent.looks.inherited());
        let new = Thread::new(id, context, calls);
        let thread = Thread { start, detached, handlers, affinity, work, looks, ..new };
        sched.add_thread(thread, &Operation::new(EventKind::Begin, address + 1, 0));
    });
    let object = wait::thread_address(index);
    Entry::new(EventKind::Fork, pc, object).value(object).write();
    0
}

/// Nobody has a stack of this size.
const ADDRESS_SPACE: u64 = 1 << 47;

/// A context with this stack for thread `index`: the one that was made ahead, if it will do.
///
/// # Safety
/// Nobody else uses the memory of a stack that is given.
unsafe fn context_for(index: ThreadIndex, stack: Stack) -> Result<&'static Context, c_int> {
    let made = CONTEXTS.with(|contexts| contexts.get_mut(index.index()).and_then(Option::take));
    match (made, stack) {
        (Some(context), Stack::Slot { bytes, .. }) if bytes <= POOL_STACK => Ok(context),
        // A stack that was made ahead grows downwards.
        (Some(context), Stack::Slot { bytes, .. })
            if layout::reserve(stack.range().0, bytes.min(Stack::SLOT_MAX) - POOL_STACK) =>
        {
            Ok(context)
        }
        // SAFETY: the caller's promise.
        _ => heap::for_runtime(|| unsafe { context::create(stack) }),
    }
}

/// There is no context for another thread. No context serves twice, so if threads have ended the program could have
/// gone on by itself: the run goes no further, as one that has had too many events.
fn none_left(pc: u64) -> c_int {
    if scheduler::with(|sched| sched.alive.len() < sched.threads.len() as u64) {
        finish(&End::EventBound);
    }
    not_created(libc::EAGAIN, pc)
}

/// A creation that failed is an event all the same: its schedule point was passed.
fn not_created(error: c_int, pc: u64) -> c_int {
    Entry::new(EventKind::Fork, pc, u64::MAX).outcome(Outcome::Error).write();
    error
}

/// What the attributes ask for: the stack of thread `index`, and whether it is detached.
///
/// # Safety
/// `attributes` is null or initialised.
unsafe fn wanted(attributes: *const libc::pthread_attr_t, index: ThreadIndex) -> (Stack, bool) {
    let pooled = Stack::Slot { index, bytes: POOL_STACK };
    if attributes.is_null() {
        return (pooled, false);
    }
    let (mut start, mut bytes, mut state) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the caller's promise.
    unsafe {
        libc::pthread_attr_getstack(attributes, &mut start, &mut bytes);
        pthread_attr_getdetachstate(attributes, &mut state);
    }
    // Without a stack of the program's own, glibc gives an address of minus the size.
    let given = !start.is_null() && (start as usize).wrapping_add(bytes) != 0;
    let stack = match bytes as u64 {
        bytes if given => Stack::Given { start: start as u64, bytes },
        bytes if bytes > POOL_STACK => Stack::Slot { index, bytes },
        _ => pooled,
    };
    (stack, state == libc::PTHREAD_CREATE_DETACHED)
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const libc::pthread_attr_t, state: *mut c_int) -> c_int;
}

/// On the stack of a new thread, when it is first picked: runs it from its beginning to its end.
pub fn run_borrowed() -> ! {
    let (routine, argument) = scheduler::begin_thread();
    let routine = routine as *const () as u64;
    Entry::new(EventKind::Begin, routine + 1, 0).write();
    // SAFETY: a thread's routine takes its argument and returns its result.
    let result = unsafe { call_outermost(routine, [argument as u64, 0, 0], scheduler::current()) };
    thread_end::end(result as *mut c_void)
}

/// Calls the outermost function of thread `index` (`main`, or a thread's routine), and notes its canonical
/// frame address as the base of the thread's stack.
///
/// # Safety
/// `routine` is a C function that takes these arguments.
pub unsafe fn call_outermost(routine: u64, arguments: [u64; 3], index: ThreadIndex) -> u64 {
    let [first, second, third] = arguments;
    // SAFETY: the caller's promise.
    unsafe { call(routine, first, second, third, index) }
}

/// Calls `routine`, after telling [`stack_begins`] its canonical frame address: the stack pointer at the call.
#[unsafe(naked)]
unsafe extern "C" fn call(routine: u64, first: u64, second: u64, third: u64, index: ThreadIndex) -> u64 {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r13, 0",
        "push r14",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r14, 0",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov rbx, rdi",
        "mov r12, rsi",
        "mov r13, rdx",
        "mov r14, rcx",
        "mov rdi, r8",
        "mov rsi, rsp",
        "call {begins}",
        "mov rdi, r12",
        "mov rsi, r13",
        "mov rdx, r14",
        "call rbx",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop r14",
        ".cfi_adjust_cfa_offset -8",
        "pop r13",
        ".cfi_adjust_cfa_offset -8",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
        begins = sym stack_begins,
    )
}

/// From here on it is known where the thread's stack variables lie.
extern "C" fn stack_begins(index: ThreadIndex, base: u64) {
    log::set_stack_span(index, StackSpan { base, ..log::stack_span(index) });
    server::track_stack(index);
}

/// The index of the thread with this handle.
pub fn find(handle: libc::pthread_t) -> Option<ThreadIndex> {
    // Most who are asked for are young.
    scheduler::with(|sched| {
        let mut youngest_first = sched.threads.iter().rev();
        youngest_first.find(|(_, thread)| thread.context.handle() == handle).map(|(index, _)| index)
    })
}

/// Joins a thread.
///
/// # Safety
/// `result` is null or can be written to.
pub unsafe fn join(handle: libc::pthread_t, result: *mut *mut c_void, patience: Patience, pc: u64) -> c_int {
    let Some(target) = find(handle) else { return libc::ESRCH };
    if scheduler::with(|sched| sched.threads[target].detached) {
        return libc::EINVAL;
    }
    if target == scheduler::current() {
        return libc::EDEADLK;
    }
    let (object, pc) = (wait::thread_address(target), users_call(pc));
    let operation = Operation::new(EventKind::Join, pc, object).cancellable();
    let timed_out = patience.point(operation, Wait::Join(target));
    cancellation::act_at(EventKind::Join, pc, object);
    let entry = Entry::new(EventKind::Join, pc, object).value(object);
    if timed_out || !scheduler::with(|sched| sched.threads[target].done) {
        entry.outcome(if timed_out { Outcome::TimedOut } else { Outcome::Failed }).write();
        return if timed_out { libc::ETIMEDOUT } else { libc::EBUSY };
    }
    entry.write();
    let value = scheduler::with(|sched| {
        sched.threads[target].detached = true;
        sched.threads[target].result
    });
    if !result.is_null() {
        // SAFETY: the caller's promise.
        unsafe { result.write(value) };
    }
    0
}

pub fn detach(handle: libc::pthread_t, pc: u64) -> c_int {
    let Some(target) = find(handle) else { return libc::ESRCH };
    let (object, pc) = (wait::thread_address(target), users_call(pc));
    point(Operation::new(EventKind::Detach, pc, object));
    Entry::new(EventKind::Detach, pc, object).value(object).write();
    let was_detached = scheduler::with(|sched| std::mem::replace(&mut sched.threads[target].detached, true));
    if was_detached { libc::EINVAL } else { 0 }
}
