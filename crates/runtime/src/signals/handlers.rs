//! Signals that end a program, and what the program does about them.
//!
//! The kernel delivers each of them to the runtime. If the program has a handler, the runtime calls it as the kernel
//! would: it may repair what was wrong, or jump out, and the program goes on. If there is no handler, or the handler
//! ends the process, the run has failed at the place where the signal came.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use threadbare_trace::{End, Failure, FailureKind};
use threadbare_wire::{CodePlace, STOP_SIGNAL};

use super::bit;
use super::masks::{self, UNBLOCKABLE, with_mine};
use crate::entry::panics::innermost_instrumented_call;
use crate::entry::real::real;
use crate::entry::{library_code, log, modules};
use crate::hooks::accesses::{IGNORE, WATCH};
use crate::hooks::calls;
use crate::memory::{guard, heap};
use crate::os::{dispatch, instructions, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::{finish, here};
use crate::schedule::{scheduler, state};
use crate::sync::thread_end::CleanupBuffer;
use crate::{ACTIVE, active};

/// All that the kernel delivers to the runtime.
const CAUGHT: [c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    STOP_SIGNAL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// What the program wants done about each of `CAUGHT`, once the runtime catches them.
static ACTIONS: Carrier<Option<[libc::sigaction; CAUGHT.len()]>> = Carrier::new(None);

/// Something that the program would have died of, had it no handler.
#[derive(Clone)]
pub struct Fault {
    signal: c_int,
    at: CodePlace,
    message: String,
    /// Where the stack was then.
    stack_pointer: u64,
}

/// The program's action for a signal, if it is one that is caught.
fn action(signal: c_int) -> Option<libc::sigaction> {
    let index = CAUGHT.iter().position(|&caught| caught == signal)?;
    ACTIONS.with(|actions| actions.map(|actions| actions[index]))
}

/// The program's action for a signal that is caught is to be another.
fn set_action(signal: c_int, new: libc::sigaction) {
    let index = CAUGHT.iter().position(|&caught| caught == signal);
    ACTIONS.with(|actions| {
        if let (Some(index), Some(actions)) = (index, actions) {
            actions[index] = new;
        }
    });
}

/// Begins to catch signals, on a stack of their own so that an overflow can be told.
pub fn catch() {
    ACTIONS.with(|actions| *actions = Some([default_action(); CAUGHT.len()]));
    // SAFETY: the stack is new and never freed.
    unsafe { masks::set_kernel_stack(&masks::new_stack()) };
    for signal in CAUGHT {
        // The program was started with some of them ignored, perhaps.
        // SAFETY: there is no new action.
        let current = unsafe { real_action(signal, None) }.1;
        set_action(signal, libc::sigaction { sa_sigaction: current.sa_sigaction, ..default_action() });
        install(signal);
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zeroes is the default action.
    unsafe { std::mem::zeroed() }
}

/// libc's `sigaction`: its result, and the action before.
///
/// # Safety
/// If the new action has a handler, that is a function which the kernel may call for this signal.
unsafe fn real_action(signal: c_int, new: Option<&libc::sigaction>) -> (c_int, libc::sigaction) {
    let mut before = default_action();
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    let old = &raw mut before;
    // SAFETY: libc reads the new action and writes to the old one; the caller promises the rest.
    let result = unsafe {
        real!(sigaction(signal => c_int, new => *const libc::sigaction, old => *mut libc::sigaction) -> c_int)
    };
    (result, before)
}

/// Tells the kernel of the program's action for `signal`: the runtime's own, under the program's conditions.
fn install(signal: c_int) {
    let Some(wanted) = action(signal) else { return };
    let mut actual = default_action();
    actual.sa_sigaction = caught as *const () as usize;
    actual.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    if is_handler(&wanted) {
        actual.sa_flags =
            libc::SA_SIGINFO | wanted.sa_flags & (libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER);
        actual.sa_mask = wanted.sa_mask;
        // SAFETY: the set's first word holds the signals there are.
        unsafe { *(&raw mut actual.sa_mask).cast::<u64>() &= !masks::unblockable() };
    }
    if UNBLOCKABLE.contains(&signal) {
        actual.sa_flags |= libc::SA_NODEFER;
    }
    // SAFETY: `caught` is a handler for any signal.
    unsafe { real_action(signal, Some(&actual)) };
}

fn is_handler(action: &libc::sigaction) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

/// `sigaction`: its result, and the action before.
///
/// # Safety
/// If the new action has a handler, that is a function which may be called for this signal.
pub unsafe fn exchange(signal: c_int, new: Option<&libc::sigaction>) -> (c_int, libc::sigaction) {
    if active() && new.is_some_and(is_handler) {
        masks::differ();
    }
    let Some(before) = action(signal) else {
        // SAFETY: the caller's promise.
        return unsafe { real_action(signal, new) };
    };
    match new {
        Some(&new) => {
            set_action(signal, new);
            install(signal);
            (0, before)
        }
        None => (0, as_told(signal, before)),
    }
}

/// What the program is told of its action for a signal. Rust's standard library handles faults unless somebody else
/// does, to tell an overflow of the stack; the runtime can tell that too, and threads need then not differ.
fn as_told(signal: c_int, action: libc::sigaction) -> libc::sigaction {
    let mut told = action;
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS)
        && action.sa_sigaction == libc::SIG_DFL
        && library_code::is_there()
    {
        told.sa_sigaction = caught as *const () as usize;
    }
    told
}

/// Installs a handler the old way; returns the one before.
///
/// # Safety
/// `handler` is a function which may be called for this signal, or one of the constants for none.
pub unsafe fn set_handler(signal: c_int, handler: usize, flags: c_int) -> usize {
    let mut new = default_action();
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    // SAFETY: the caller's promise.
    match unsafe { exchange(signal, Some(&new)) } {
        (0, before) => before.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// The program has a handler for this signal.
pub fn has_handler(signal: c_int) -> bool {
    // SAFETY: there is no new action.
    is_handler(&unsafe { exchange(signal, None) }.1)
}

/// Where the kernel delivers a signal to.
unsafe extern "C" fn caught(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let (caller, users_stack_pointer) = (calls::entry_caller(), calls::users_stack_pointer());
    calls::enter_unseen();
    // SAFETY: the kernel's description of the signal, and of what it interrupted.
    let is_answered = unsafe {
        dispatch::takes(signal, &*info, &mut *context) || instructions::takes(signal, &*info, &mut *context)
    };
    if is_answered {
        return;
    }
    // SAFETY: the kernel's description of the signal.
    if unsafe { takes_guard(signal, &*info, &*context, caller) } {
        return calls::go_on_in_call(users_stack_pointer);
    }
    // SAFETY: the kernel's description of the signal.
    let code = unsafe { (*info).si_code };
    let sent = code <= 0;
    if !active() {
        // SAFETY: the kernel has called this function, with these arguments.
        return unsafe { act_in_child(signal, sent, info, context) };
    }
    if signal == STOP_SIGNAL && code != libc::SI_TKILL {
        // SAFETY: the kernel's description of what the signal interrupted.
        stop(unsafe { &*context });
    }
    // SAFETY: any bits are an address; for a fault the kernel puts there what was accessed.
    if !sent && calls::is_overflow(unsafe { (*info).si_addr() } as u64) {
        // Its calls are too many to be numbered.
        let at = CodePlace { thread: scheduler::current(), ..CodePlace::default() };
        finish(&End::Unsupported {
            message: "more than 8 million nested calls are not supported".into(),
            at,
        });
    }
    // What the program was about to access may be what it would die of.
    log::forget_write();
    // SAFETY: the kernel's description of the signal, and of what it interrupted.
    let fault = unsafe { fault(signal, sent, caller, &*info, &*context) };
    // The scheduler looks at locks, which are the program's memory. If that is gone, no handler brings it back; and
    // none may be called that finds the scheduler in use.
    if scheduler::is_lent() {
        die_of(&fault);
    }
    state::forget_accesses();
    let Some(wanted) = action(signal) else { die_of(&fault) };
    if wanted.sa_sigaction == libc::SIG_IGN && sent {
        return;
    }
    let is_blocked = with_mine(|mine| (mine.handling | mine.hidden) & bit(signal) != 0);
    if is_blocked || !is_handler(&wanted) {
        // A handler that sends its own signal again wants to die of the fault that it was called for.
        let is_first = |before: &&Fault| sent && before.signal == signal;
        let first = with_mine(|mine| mine.faults.iter().find(is_first).cloned());
        die_of(&first.unwrap_or(fault));
    }
    if wanted.sa_flags & libc::SA_NODEFER == 0 && UNBLOCKABLE.contains(&signal) {
        with_mine(|mine| mine.handling |= bit(signal));
    }
    if wanted.sa_flags & libc::SA_RESETHAND != 0 {
        // SAFETY: the default action has no handler.
        unsafe { set_handler(signal, libc::SIG_DFL, 0) };
    }
    let depth = with_mine(|mine| {
        mine.faults.push(fault);
        mine.faults.len() - 1
    });
    // SAFETY: `is_handler` says that it is one, and the kernel has called this function with the rest.
    unsafe { call(&wanted, signal, info, context) };
    with_mine(|mine| {
        mine.faults.truncate(depth);
        mine.handling &= !bit(signal);
    });
}

/// Whether the signal is for memory that was freed in a guarded run, and the access can be made now. If the program makes
/// it, the run ends here.
///
/// The runtime may look at what is gone: at locks that threads still wait for, and at what it is about to tell of. A child
/// process is not under test.
fn takes_guard(
    signal: c_int,
    info: &libc::siginfo_t,
    context: &libc::ucontext_t,
    caller: Option<u64>,
) -> bool {
    /// The memory is mapped, but may not be accessed.
    const SEGV_ACCERR: c_int = 2;
    /// In the processor's description of a page fault: the access was a write.
    const WRITE: i64 = 2;
    if signal != libc::SIGSEGV || info.si_code != SEGV_ACCERR || !guard::is_on() {
        return false;
    }
    // SAFETY: the signal is a fault, which has an address.
    let address = unsafe { info.si_addr() } as u64;
    let Some(pages) = heap::closed_pages(address) else { return false };
    let (pc, _) = registers(context);
    if modules::is_ours(pc) || !active() {
        guard::open(&pages);
        return true;
    }
    let is_write = context.uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE != 0;
    heap::fail_at_closed(address, if is_write { "write" } else { "read" }, in_program(pc + 1, caller, true))
}

/// The tool ends the run. Its signal comes at any instruction, be it one of the runtime's that has borrowed a static:
/// so nothing is borrowed here and nothing allocated.
fn stop(context: &libc::ucontext_t) -> ! {
    // The tool sends its signal again and again until the run is over.
    masks::block_for_good(STOP_SIGNAL);
    // The unwinder calls functions of libc's. They are no longer the program's calls, and go straight to libc.
    ACTIVE.store(false, Ordering::Relaxed);
    WATCH.store(IGNORE, Ordering::Relaxed);
    let (pc, _) = registers(context);
    let pc = match modules::is_ours(pc) {
        true => 0,
        false if modules::is_system(pc) => modules::users_call(pc),
        false => pc + 1,
    };
    let at = CodePlace { thread: scheduler::current(), stack: calls::last(), pc };
    log::control().end.put(&End::TimeLimit { at: Some(at) });
    system::exit(0)
}

/// Calls the program's handler as the kernel would.
///
/// # Safety
/// `wanted` is a handler of the program's, and the rest is what the kernel tells of a signal.
unsafe fn call(
    wanted: &libc::sigaction,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: the caller's promise; a handler that takes the signal alone does not look at the rest.
    unsafe { std::mem::transmute::<usize, Handler>(wanted.sa_sigaction)(signal, info, context.cast()) };
}

/// In a child that the program forked, which is not under test: as if the runtime were not there.
///
/// # Safety
/// The kernel tells this of a signal.
unsafe fn act_in_child(
    signal: c_int,
    sent: bool,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    match action(signal) {
        // SAFETY: `is_handler` says that it is one; the rest is the caller's promise.
        Some(wanted) if is_handler(&wanted) => unsafe { call(&wanted, signal, info, context) },
        Some(wanted) if wanted.sa_sigaction == libc::SIG_IGN && sent => {}
        _ => {
            // What it would have died of, it dies of, when the fault happens again or the signal comes again.
            // SAFETY: the default action has no handler. A signal that is raised is dealt with as the program wants.
            unsafe {
                real_action(signal, Some(&default_action()));
                if sent {
                    libc::raise(signal);
                }
            }
        }
    }
}

/// The instruction that was interrupted, and the stack pointer.
fn registers(context: &libc::ucontext_t) -> (u64, u64) {
    let registers = &context.uc_mcontext.gregs;
    (registers[libc::REG_RIP as usize] as u64, registers[libc::REG_RSP as usize] as u64)
}

/// What happened, and where. `caller` is who last called the runtime.
fn fault(
    signal: c_int,
    sent: bool,
    caller: Option<u64>,
    info: &libc::siginfo_t,
    context: &libc::ucontext_t,
) -> Fault {
    let (pc, stack_pointer) = registers(context);
    // SAFETY: meaningful for faults; for others the union holds other numbers, which are not used.
    let address = unsafe { info.si_addr() } as u64;
    const NEAR: u64 = 1 << 16;
    let overflow = !sent && address.wrapping_sub(stack_pointer.wrapping_sub(NEAR)) < 2 * NEAR;
    // A call to what is no code: the processor has left the return address on the stack.
    let is_access = matches!(signal, libc::SIGSEGV | libc::SIGBUS) && !sent;
    let is_wild_call = is_access && !overflow && address == pc;
    let at = match is_wild_call {
        // SAFETY: a call has just pushed it, and the stack did not overflow.
        true => in_program(unsafe { (stack_pointer as *const u64).read() }, caller, false),
        // A location is looked up one byte before its address, which for a call is the call itself; a fault is at the
        // instruction.
        false => in_program(pc + 1, caller, !overflow),
    };
    let message = match signal {
        libc::SIGABRT => String::new(),
        _ if overflow => "stack overflow".to_owned(),
        _ if sent => String::new(),
        _ => format!("address {address:#x}"),
    };
    Fault { signal, at, message, stack_pointer }
}

/// The place in the program that a fault at `pc` belongs to. What the runtime or a system library does, it does for the
/// innermost call in the program. Other code that is not instrumented may have a line of its own: that call is the first
/// on its stack. It is found by unwinding, if the stack `can_unwind`.
fn in_program(pc: u64, caller: Option<u64>, can_unwind: bool) -> CodePlace {
    let called_from = || if can_unwind { innermost_instrumented_call() } else { 0 };
    if modules::is_ours(pc) {
        return here(caller.map_or_else(called_from, modules::users_call));
    }
    if modules::is_system(pc) && can_unwind {
        return here(modules::users_call(pc));
    }
    let at = here(pc);
    match called_from() {
        0 => at,
        call if call == pc || call + 1 == pc => at,
        call => CodePlace { stack: calls::child(at.stack, call), ..at },
    }
}

fn die_of(fault: &Fault) -> ! {
    let kind = FailureKind::Signal(fault.signal);
    finish(&End::Failed(Failure::new(kind, fault.message.as_str(), fault.at)))
}

/// The program ends with an error while it handles something that it would have died of: that is what happened.
pub fn end_in_handler(code: c_int) {
    if code != 0
        && let Some(fault) = with_mine(|mine| mine.faults.first().cloned())
    {
        die_of(&fault);
    }
}

/// `abort`: a program with a handler for it has a chance to get away.
pub fn before_abort() {
    if action(libc::SIGABRT).is_some_and(|action| is_handler(&action)) {
        // SAFETY: the kernel calls `caught`, which is made for it.
        unsafe { libc::raise(libc::SIGABRT) };
    }
}

/// A jump may leave handlers behind, and may restore the mask.
pub fn leave(target: &CleanupBuffer) {
    with_mine(|mine| {
        mine.faults.retain(|fault| target.stack_pointer() < fault.stack_pointer);
        if target.restores_mask() {
            mine.handling = 0;
        }
    });
}
