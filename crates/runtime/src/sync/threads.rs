//! Creating threads, ending them, and waiting for their end.

use std::ffi::{c_int, c_void};

use threadbare_trace::{EventKind, Outcome};
use threadbare_wire::{Ending, MAX_THREADS, StackSpan};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::{_Unwind_GetCFA, UnwindContext, users_call};
use crate::entry::real::real;
use crate::entry::{log, server};
use crate::hooks::calls;
use crate::memory::{heap, layout};
use crate::os::processors;
use crate::schedule::carrier::Carrier;
use crate::schedule::context::{Context, POOL_STACK, Stack};
use crate::schedule::scheduler::{Operation, Thread, finish, point};
use crate::schedule::wait::Wait;
use crate::schedule::{context, scheduler};
use crate::signals::handlers;
use crate::sync::cancellation;
use crate::time::clock;
use crate::time::clock::Clock;

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

/// Contexts made ahead, by thread index; the main thread's entry stays empty.
static CONTEXTS: Carrier<Vec<Option<&'static mut Context>>> = Carrier::new(Vec::new());

/// Contexts that are made ahead, at most: each is a thread of the system and a part of what every fork copies. Runs
/// make more for themselves.
const MOST_AHEAD: usize = 1000;

/// Makes contexts for threads 1 to `count`, or as many as is good.
pub fn ensure_contexts(count: usize) {
    let contexts = CONTEXTS.get();
    while contexts.len() <= count.min(MOST_AHEAD) {
        let index = contexts.len() as u64;
        let slot = Stack::Slot { index, bytes: POOL_STACK };
        let context = if index == 0 { None } else { heap::for_runtime(|| context::create(slot)).ok() };
        contexts.push(context);
    }
}

intercept! {
    pthread_create/4 => create;
    pthread_join/2 => join;
    pthread_tryjoin_np/2 => try_join;
    pthread_timedjoin_np/3 => timed_join;
    pthread_clockjoin_np/4 => clock_join;
    pthread_detach/1 => detach;
    pthread_exit/1 => exit_thread;
}

pub extern "C" fn create(
    handle: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
    pc: u64,
) -> c_int {
    if !active() {
        return real!(pthread_create(
            handle => *mut libc::pthread_t, attributes => *const libc::pthread_attr_t,
            routine => Routine, argument => *mut c_void
        ) -> c_int);
    }
    if !scheduler::get().running {
        server::serve();
    }
    let pc = users_call(pc);
    point(Operation::new(EventKind::Fork, pc, scheduler::get().threads.len() as u64));
    let index = scheduler::get().threads.len();
    if index >= MAX_THREADS {
        return none_left(pc);
    }
    let (stack, detached) = wanted(attributes, index);
    if matches!(stack, Stack::Slot { bytes, .. } if bytes >= ADDRESS_SPACE) {
        return not_created(libc::EAGAIN, pc);
    }
    let (stack_low, stack_high) = match stack {
        Stack::Slot { index, bytes } => {
            let end = layout::STACKS + (index + 1) * layout::STACK_SLOT;
            (end - bytes.min(Stack::SLOT_MAX), end)
        }
        Stack::Given { start, bytes } => (start, start + bytes),
    };
    let is_own_slot = matches!(stack, Stack::Slot { .. });
    let made = CONTEXTS.get().get_mut(index).and_then(Option::take);
    let context = match (made, &stack) {
        (Some(context), Stack::Slot { bytes, .. }) if *bytes <= POOL_STACK => Ok(context),
        // A stack that was made ahead grows downwards.
        (Some(context), Stack::Slot { bytes, .. })
            if layout::reserve(stack_low, bytes.min(&Stack::SLOT_MAX) - POOL_STACK) =>
        {
            Ok(context)
        }
        _ => heap::for_runtime(|| context::create(stack)),
    };
    let (context, calls) = match (context, calls::create(index)) {
        (Ok(context), Some(calls)) => (context, calls),
        (Err(libc::EAGAIN), _) if is_own_slot => return none_left(pc),
        (Err(error), _) => return not_created(error, pc),
        (_, None) => return none_left(pc),
    };
    // SAFETY: the program's place for the handle.
    unsafe { handle.write(context.handle) };
    let sched = scheduler::get();
    let parent = &mut sched.threads[sched.current];
    parent.children += 1;
    let id = parent.id.child(parent.children);
    let thread = Thread {
        start: (Some(routine), argument),
        detached,
        handlers: handlers::inherited(),
        affinity: processors::inherited(),
        ..Thread::new(id, context, calls)
    };
    let routine = routine as *const () as u64;
    let span = StackSpan { low: stack_low, base: stack_high, high: stack_high, routine };
    // SAFETY: the slot of a thread that is about to exist.
    unsafe { log::stack_span(index).write(span) };
    sched.add_thread(thread, &Operation::new(EventKind::Begin, routine + 1, 0));
    Entry::new(EventKind::Fork, pc, index as u64).value(index as u64).write();
    0
}

/// Nobody has a stack of this size.
const ADDRESS_SPACE: u64 = 1 << 47;

/// There is no context for another thread. No context serves twice, so if threads have ended the program could have
/// gone on by itself: the run goes no further, as one that has had too many events.
fn none_left(pc: u64) -> c_int {
    let sched = scheduler::get();
    if sched.alive.len() < sched.threads.len() as u64 {
        finish(Ending::EventBound, 0, 0, "");
    }
    not_created(libc::EAGAIN, pc)
}

/// A creation that failed is an event all the same: its schedule point was passed.
fn not_created(error: c_int, pc: u64) -> c_int {
    Entry::new(EventKind::Fork, pc, u64::MAX).outcome(Outcome::Error).write();
    error
}

/// What the attributes ask for: the stack of thread `index`, and whether it is detached.
fn wanted(attributes: *const libc::pthread_attr_t, index: usize) -> (Stack, bool) {
    let pooled = Stack::Slot { index: index as u64, bytes: POOL_STACK };
    if attributes.is_null() {
        return (pooled, false);
    }
    let (mut start, mut bytes, mut state) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the program's initialised attributes.
    unsafe {
        libc::pthread_attr_getstack(attributes, &mut start, &mut bytes);
        pthread_attr_getdetachstate(attributes, &mut state);
    }
    // Without a stack of the program's own, glibc gives an address of minus the size.
    let given = !start.is_null() && (start as usize).wrapping_add(bytes) != 0;
    let stack = match bytes as u64 {
        bytes if given => Stack::Given { start: start as u64, bytes },
        bytes if bytes > POOL_STACK => Stack::Slot { index: index as u64, bytes },
        _ => pooled,
    };
    (stack, state == libc::PTHREAD_CREATE_DETACHED)
}

/// On the stack of a new thread, when it is first picked: runs it from its beginning to its end.
pub fn run_borrowed() -> ! {
    let thread = scheduler::begin_thread();
    let (routine, argument) = thread.start;
    let routine = routine.expect("a thread has a routine");
    let routine = routine as *const () as u64;
    Entry::new(EventKind::Begin, routine + 1, 0).write();
    let me = scheduler::get().current;
    // SAFETY: a thread's routine takes its argument and returns its result.
    let result = unsafe { call_outermost(routine, [argument as u64, 0, 0], me) };
    end(result as *mut c_void)
}

/// Calls the outermost function of thread `index` (`main`, or a thread's routine), and notes its canonical
/// frame address as the base of the thread's stack.
///
/// # Safety
/// `routine` is a C function that takes these arguments.
pub unsafe fn call_outermost(routine: u64, arguments: [u64; 3], index: usize) -> u64 {
    let [first, second, third] = arguments;
    // SAFETY: the caller's; the base is a field of the thread's own slot.
    unsafe { call(routine, first, second, third, index) }
}

/// Calls `routine`, after telling [`stack_begins`] its canonical frame address: the stack pointer at the call.
#[unsafe(naked)]
unsafe extern "C" fn call(routine: u64, first: u64, second: u64, third: u64, index: usize) -> u64 {
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
extern "C" fn stack_begins(index: usize, base: u64) {
    // SAFETY: the thread's own slot.
    unsafe { (*log::stack_span(index)).base = base };
    server::track_stack(index);
}

/// Ends the running thread.
fn end(result: *mut c_void) -> ! {
    run_thread_locals();
    run_keys();
    let sched = scheduler::get();
    sched.threads[sched.current].result = result;
    point(Operation::new(EventKind::End, 0, 0));
    Entry::new(EventKind::End, 0, 0).write();
    scheduler::end_thread()
}

/// The index of the thread with this handle.
pub fn find(handle: libc::pthread_t) -> Option<usize> {
    // SAFETY: contexts live for ever.
    let is = |thread: &Thread| unsafe { (*thread.context).handle == handle };
    // Most who are asked for are young.
    scheduler::get().threads.iter().rposition(is)
}

/// Joins `handle`, at the latest at `deadline`.
fn join_until(
    handle: libc::pthread_t,
    result: *mut *mut c_void,
    deadline: Option<u64>,
    try_only: bool,
    pc: u64,
) -> c_int {
    let Some(target) = find(handle) else { return libc::ESRCH };
    let sched = scheduler::get();
    if sched.threads[target].detached {
        return libc::EINVAL;
    }
    if target == sched.current {
        return libc::EDEADLK;
    }
    let pc = users_call(pc);
    let wait = if try_only { Wait::Nothing } else { Wait::Join(target) };
    let operation = Operation::new(EventKind::Join, pc, target as u64).waiting(wait).until(deadline);
    let timed_out = point(operation.cancellable());
    cancellation::act_at(EventKind::Join, pc, target as u64);
    let entry = Entry::new(EventKind::Join, pc, target as u64).value(target as u64);
    let thread = &mut scheduler::get().threads[target];
    if timed_out || !thread.done {
        entry.outcome(if timed_out { Outcome::TimedOut } else { Outcome::Failed }).write();
        return if timed_out { libc::ETIMEDOUT } else { libc::EBUSY };
    }
    entry.write();
    thread.detached = true;
    if !result.is_null() {
        // SAFETY: the program's place for the result.
        unsafe { result.write(thread.result) };
    }
    0
}

pub extern "C" fn join(handle: libc::pthread_t, result: *mut *mut c_void, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_join(handle => libc::pthread_t, result => *mut *mut c_void) -> c_int);
    }
    join_until(handle, result, None, false, pc)
}

extern "C" fn try_join(handle: libc::pthread_t, result: *mut *mut c_void, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_tryjoin_np(handle => libc::pthread_t, result => *mut *mut c_void) -> c_int);
    }
    join_until(handle, result, None, true, pc)
}

extern "C" fn timed_join(
    handle: libc::pthread_t,
    result: *mut *mut c_void,
    until: *const libc::timespec,
    pc: u64,
) -> c_int {
    if !active() {
        return real!(pthread_timedjoin_np(
            handle => libc::pthread_t, result => *mut *mut c_void, until => *const libc::timespec
        ) -> c_int);
    }
    join_until(handle, result, clock::deadline(until), false, pc)
}

extern "C" fn clock_join(
    handle: libc::pthread_t,
    result: *mut *mut c_void,
    clock: Clock,
    until: *const libc::timespec,
    pc: u64,
) -> c_int {
    if !active() {
        return real!(pthread_clockjoin_np(
            handle => libc::pthread_t, result => *mut *mut c_void,
            clock => Clock, until => *const libc::timespec
        ) -> c_int);
    }
    join_until(handle, result, clock::deadline(until), false, pc)
}

pub extern "C" fn detach(handle: libc::pthread_t, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_detach(handle => libc::pthread_t) -> c_int);
    }
    let Some(target) = find(handle) else { return libc::ESRCH };
    let pc = users_call(pc);
    point(Operation::new(EventKind::Detach, pc, target as u64));
    Entry::new(EventKind::Detach, pc, target as u64).value(target as u64).write();
    let thread = &mut scheduler::get().threads[target];
    if std::mem::replace(&mut thread.detached, true) { libc::EINVAL } else { 0 }
}

#[repr(C)]
struct Exception {
    class: u64,
    cleanup: *mut c_void,
    private: [u64; 4],
}

type Stop = extern "C" fn(c_int, c_int, u64, *mut Exception, *mut UnwindContext, *mut c_void) -> c_int;

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const libc::pthread_attr_t, state: *mut c_int) -> c_int;
    fn _Unwind_ForcedUnwind(exception: *mut Exception, stop: Stop, argument: *mut c_void) -> c_int;
    fn siglongjmp(buffer: *mut CleanupBuffer, value: c_int) -> !;
}

pub extern "C" fn exit_thread(result: *mut c_void, _: u64) -> ! {
    if !active() {
        real!(pthread_exit(result => *mut c_void));
        unreachable!("pthread_exit returned")
    }
    extern "C" fn stop(
        _: c_int,
        actions: c_int,
        _: u64,
        _: *mut Exception,
        context: *mut UnwindContext,
        result: *mut c_void,
    ) -> c_int {
        const END_OF_STACK: c_int = 16;
        const NO_REASON: c_int = 0;
        let sched = scheduler::get();
        let base = scheduler::stack_span(sched.current).base;
        // SAFETY: the unwinder's context.
        let stack_pointer = unsafe { _Unwind_GetCFA(context) } as u64;
        let cleanups = &mut sched.threads[sched.current].cleanups;
        if let Some(&buffer) = cleanups.last() {
            // SAFETY: a buffer on this thread's stack, in a frame that is still there.
            if actions & END_OF_STACK != 0 || unsafe { (*buffer).stack_pointer() } <= stack_pointer {
                cleanups.pop();
                sched.threads[sched.current].result = result;
                // SAFETY: as above. The code there calls the handler and then `__pthread_unwind_next`.
                unsafe { siglongjmp(buffer, 1) };
            }
        }
        // The frames of the runtime and of libc outside the thread's routine hold nothing to clean up.
        if actions & END_OF_STACK != 0 || stack_pointer >= base {
            end(result);
        }
        NO_REASON
    }
    let exception =
        Box::leak(Box::new(Exception { class: 0, cleanup: std::ptr::null_mut(), private: [0; 4] }));
    // SAFETY: unwinds the running thread; destructors and clean-up handlers run on the way.
    unsafe { _Unwind_ForcedUnwind(exception, stop, result) };
    end(result)
}

/// What `pthread_cleanup_push` in C (without `-fexceptions`) leaves on the stack: glibc's
/// `__pthread_unwind_buf_t`, which begins like a `sigjmp_buf`.
#[repr(C)]
pub struct CleanupBuffer {
    registers: [u64; 8],
    mask_was_saved: c_int,
    private: [*mut c_void; 4],
}

impl CleanupBuffer {
    /// A jump there restores the signal mask too.
    pub fn restores_mask(&self) -> bool {
        self.mask_was_saved != 0
    }

    /// The stack pointer to go back to. glibc hides it with a secret of the process.
    pub fn stack_pointer(&self) -> u64 {
        const RSP: usize = 6;
        let guard: u64;
        // SAFETY: glibc keeps the pointer guard there in every thread.
        unsafe { std::arch::asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, readonly, pure)) };
        self.registers[RSP].rotate_right(17) ^ guard
    }
}

#[unsafe(no_mangle)]
extern "C" fn __pthread_register_cancel(buffer: *mut CleanupBuffer) {
    if !active() {
        return real!(__pthread_register_cancel(buffer => *mut CleanupBuffer));
    }
    let sched = scheduler::get();
    sched.threads[sched.current].cleanups.push(buffer);
}

#[unsafe(no_mangle)]
extern "C" fn __pthread_unregister_cancel(buffer: *mut CleanupBuffer) {
    if !active() {
        return real!(__pthread_unregister_cancel(buffer => *mut CleanupBuffer));
    }
    let sched = scheduler::get();
    sched.threads[sched.current].cleanups.retain(|&other| other != buffer);
}

/// A clean-up handler has run: on with the unwinding.
#[unsafe(no_mangle)]
extern "C" fn __pthread_unwind_next(buffer: *mut CleanupBuffer) -> ! {
    if !active() {
        real!(__pthread_unwind_next(buffer => *mut CleanupBuffer));
        unreachable!("__pthread_unwind_next returned")
    }
    let sched = scheduler::get();
    exit_thread(sched.threads[sched.current].result, 0)
}

/// C++ and Rust register destructors of thread-local variables here.
#[unsafe(no_mangle)]
extern "C" fn __cxa_thread_atexit_impl(
    destructor: unsafe extern "C" fn(*mut c_void),
    object: *mut c_void,
    library: *mut c_void,
) -> c_int {
    if active() && scheduler::get().current != 0 {
        let sched = scheduler::get();
        sched.threads[sched.current].destructors.push((destructor, object));
        return 0;
    }
    real!(__cxa_thread_atexit_impl(
        destructor => unsafe extern "C" fn(*mut c_void), object => *mut c_void, library => *mut c_void
    ) -> c_int)
}

/// Destructors of thread-specific keys, by key.
static KEYS: Carrier<Vec<(libc::pthread_key_t, unsafe extern "C" fn(*mut c_void))>> =
    Carrier::new(Vec::new());

#[unsafe(no_mangle)]
pub extern "C" fn pthread_key_create(
    key: *mut libc::pthread_key_t,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
) -> c_int {
    let error = real!(pthread_key_create(
        key => *mut libc::pthread_key_t, destructor => Option<unsafe extern "C" fn(*mut c_void)>
    ) -> c_int);
    if let (true, 0, Some(destructor)) = (active(), error, destructor) {
        // SAFETY: libc just wrote it.
        KEYS.get().push((unsafe { *key }, destructor));
    }
    error
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_key_delete(key: libc::pthread_key_t) -> c_int {
    if active() {
        KEYS.get().retain(|&(other, _)| other != key);
    }
    real!(pthread_key_delete(key => libc::pthread_key_t) -> c_int)
}

/// Destroys the running thread's C++ and Rust thread-locals, as the end of a thread does and `exit` too. (The
/// main thread's are libc's.)
pub fn run_thread_locals() {
    let me = scheduler::get().current;
    while let Some((destructor, object)) = scheduler::get().threads[me].destructors.pop() {
        // SAFETY: registered for this.
        unsafe { destructor(object) };
    }
}

/// Runs the destructors of thread-specific keys, as the end of a thread does and `exit` does not.
fn run_keys() {
    const ROUNDS: usize = 4;
    for _ in 0..ROUNDS {
        let mut ran = false;
        for i in 0..KEYS.get().len() {
            let Some(&(key, destructor)) = KEYS.get().get(i) else { break };
            // SAFETY: a key that exists, on the running thread's own storage.
            unsafe {
                let value = libc::pthread_getspecific(key);
                if !value.is_null() {
                    libc::pthread_setspecific(key, std::ptr::null());
                    destructor(value);
                    ran = true;
                }
            }
        }
        if !ran {
            break;
        }
    }
}

/// Refuses what is not modelled, and says who asked for what.
pub fn unsupported(what: &str, pc: u64) -> ! {
    finish(Ending::Unsupported, 0, users_call(pc), what)
}
