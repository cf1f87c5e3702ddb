//! Signals that end a program, and what the program does about them.
//!
//! The kernel delivers each of them to the runtime. Where the program has an action of its own, that is taken, as
//! the kernel would take it: a handler may repair what was wrong, or jump out, and the program goes on. Where it
//! has none, or its handler ends the process, the run has failed, at the place where the signal came.
//!
//! Signal masks and alternate stacks belong to OS threads, of which there is one; so each thread's own are put in
//! place when it [goes on](adopt).

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_wire::{Ending, STOP_SIGNAL};

use crate::active;
use crate::entry::real::real;
use crate::entry::{library_code, log, modules};
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{Scheduler, finish};
use crate::schedule::{scheduler, state};
use crate::sync::threads::CleanupBuffer;

/// Signals that a fault of the program's raises, and which the kernel does not let it survive while they are
/// blocked; and the one by which the tool ends a run. They are never really blocked.
const UNBLOCKABLE: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, STOP_SIGNAL];
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

/// Threads may differ in their masks and alternate stacks: the program has used functions for that.
static DIFFER: AtomicBool = AtomicBool::new(false);

/// A thread's part in it.
#[derive(Default)]
pub struct Signals {
    /// Its mask while others run.
    mask: u64,
    /// What it takes for blocked though it is not, see `UNBLOCKABLE`.
    hidden: u64,
    /// `UNBLOCKABLE` signals whose handlers it is in, or has left by a jump that did not restore the mask.
    handling: u64,
    /// What it is in handlers for, outermost first.
    faults: Vec<Fault>,
    /// The alternate stack that the program gave it.
    stack: Option<libc::stack_t>,
    /// The runtime's own in its place, while there is none.
    spare: Option<libc::stack_t>,
}

/// Something that the program would have died of, had it no handler.
#[derive(Clone)]
struct Fault {
    signal: c_int,
    pc: u64,
    message: String,
    /// Where the stack was then.
    stack_pointer: u64,
}

impl Signals {
    /// Where handlers run that are to run on an alternate stack.
    fn stack(&mut self) -> libc::stack_t {
        self.stack.unwrap_or_else(|| *self.spare.get_or_insert_with(new_stack))
    }
}

/// From now on threads may differ. Until now they did not.
fn differ() {
    if !DIFFER.swap(true, Ordering::Relaxed) {
        let mask = kernel_mask();
        for thread in &mut scheduler::get().threads {
            thread.handlers.mask = mask;
        }
    }
}

fn mine() -> &'static mut Signals {
    let sched = scheduler::get();
    &mut sched.threads[sched.current].handlers
}

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn unblockable() -> u64 {
    UNBLOCKABLE.iter().fold(0, |bits, &signal| bits | bit(signal))
}

/// The program's action for a signal, if it is one that is caught.
fn action(signal: c_int) -> Option<&'static mut libc::sigaction> {
    let index = CAUGHT.iter().position(|&caught| caught == signal)?;
    ACTIONS.get().as_mut().map(|actions| &mut actions[index])
}

/// Begins to catch signals, on a stack of their own so that an overflow can be told.
pub fn catch() {
    // SAFETY: all zeroes is an empty action. The alternate stack is never freed.
    unsafe {
        *ACTIONS.get() = Some(std::mem::zeroed());
        real_stack(&new_stack());
    }
    for (signal, action) in CAUGHT.iter().zip(ACTIONS.get().iter_mut().flatten()) {
        let mut current = default_action();
        // SAFETY: plain calls; the program was started with some of them ignored, perhaps.
        unsafe { real_action(*signal, std::ptr::null(), &mut current) };
        action.sa_sigaction = current.sa_sigaction;
        install(*signal);
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zeroes is the default action.
    unsafe { std::mem::zeroed() }
}

unsafe fn real_action(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    real!(sigaction(signal => c_int, new => *const libc::sigaction, old => *mut libc::sigaction) -> c_int)
}

/// Tells the kernel of the program's action for `signal`: the runtime's own, under the program's conditions.
fn install(signal: c_int) {
    let Some(&mut wanted) = action(signal) else { return };
    let mut actual = default_action();
    actual.sa_sigaction = caught as *const () as usize;
    actual.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    if is_handler(&wanted) {
        actual.sa_flags =
            libc::SA_SIGINFO | wanted.sa_flags & (libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER);
        actual.sa_mask = wanted.sa_mask;
        // SAFETY: the set's first word holds the signals there are.
        unsafe { *(&raw mut actual.sa_mask).cast::<u64>() &= !unblockable() };
    }
    if UNBLOCKABLE.contains(&signal) {
        actual.sa_flags |= libc::SA_NODEFER;
    }
    // SAFETY: a handler of the signature that SA_SIGINFO asks for.
    unsafe { real_action(signal, &actual, std::ptr::null_mut()) };
}

fn is_handler(action: &libc::sigaction) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

/// An alternate stack of the runtime's.
fn new_stack() -> libc::stack_t {
    const BYTES: usize = 64 << 10;
    let bytes = Vec::leak(vec![0u8; BYTES]);
    libc::stack_t { ss_sp: bytes.as_mut_ptr().cast(), ss_flags: 0, ss_size: BYTES }
}

fn real_stack(stack: &libc::stack_t) {
    system::call(libc::SYS_sigaltstack, [std::ptr::from_ref(stack) as u64, 0, 0, 0, 0, 0]);
}

#[unsafe(no_mangle)]
extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: the program's actions, or null.
    unsafe {
        if active() && new.as_ref().is_some_and(is_handler) {
            differ();
        }
        let Some(wanted) = action(signal) else { return real_action(signal, new, old) };
        let before = *wanted;
        if let Some(new) = new.as_ref() {
            *wanted = *new;
            install(signal);
        }
        if !old.is_null() {
            old.write(if new.is_null() { as_told(signal, before) } else { before });
        }
    }
    0
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
fn set_handler(signal: c_int, handler: usize, flags: c_int) -> usize {
    let (mut new, mut old) = (default_action(), default_action());
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    match sigaction(signal, &new, &mut old) {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

#[unsafe(no_mangle)]
extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    set_handler(signal, handler, libc::SA_RESTART)
}

#[unsafe(no_mangle)]
extern "C" fn bsd_signal(signal: c_int, handler: usize) -> usize {
    set_handler(signal, handler, libc::SA_RESTART)
}

/// What `signal` is to programs that ask for System V's.
#[unsafe(no_mangle)]
extern "C" fn __sysv_signal(signal: c_int, handler: usize) -> usize {
    set_handler(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

#[unsafe(no_mangle)]
extern "C" fn sysv_signal(signal: c_int, handler: usize) -> usize {
    __sysv_signal(signal, handler)
}

/// A thread's alternate stack. The kernel knows of the running thread's only, and has one of the runtime's where the
/// thread has none.
#[unsafe(no_mangle)]
extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    if !active() {
        return real!(sigaltstack(new => *const libc::stack_t, old => *mut libc::stack_t) -> c_int);
    }
    let before = mine().stack;
    // SAFETY: the program's stacks, or null.
    unsafe {
        if let Some(new) = new.as_ref() {
            differ();
            let disabled = new.ss_flags & libc::SS_DISABLE != 0;
            mine().stack = (!disabled).then_some(*new);
            let (stack, nothing) = (mine().stack(), std::ptr::null_mut::<libc::stack_t>());
            let error = real!(sigaltstack(&raw const stack => *const libc::stack_t, nothing => *mut libc::stack_t) -> c_int);
            if error != 0 {
                mine().stack = before;
                return error;
            }
        }
        if !old.is_null() {
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            old.write(before.unwrap_or(none));
        }
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_sigmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    if !active() {
        return real_mask(how, set, old);
    }
    let hidden = mine().hidden;
    // SAFETY: the program's sets, or null; their first word holds the signals there are.
    unsafe {
        let mut actual: libc::sigset_t = std::mem::zeroed();
        let mut new = std::ptr::null();
        if let Some(&wanted) = set.cast::<u64>().as_ref() {
            differ();
            *(&raw mut actual).cast::<u64>() = wanted & !unblockable();
            new = &actual;
            mine().hidden = match how {
                libc::SIG_BLOCK => hidden | wanted & unblockable(),
                libc::SIG_UNBLOCK => hidden & !wanted,
                _ => wanted & unblockable(),
            };
        }
        let error = real_mask(how, new, old);
        if let (0, Some(old)) = (error, old.cast::<u64>().as_mut()) {
            *old |= hidden;
        }
        error
    }
}

pub fn real_mask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    real!(pthread_sigmask(how => c_int, set => *const libc::sigset_t, old => *mut libc::sigset_t) -> c_int)
}

#[unsafe(no_mangle)]
extern "C" fn sigprocmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    match pthread_sigmask(how, set, old) {
        0 => 0,
        error => system::fail(error),
    }
}

/// The signals that the running thread has blocked.
pub fn blocked() -> u64 {
    kernel_mask() | mine().hidden
}

/// The signals that thread `index` has blocked.
pub fn blocked_by(sched: &Scheduler, index: usize) -> u64 {
    let Signals { mask, hidden, .. } = sched.threads[index].handlers;
    let is_suspended = are_different() && index != sched.current;
    hidden | if is_suspended { mask } else { kernel_mask() }
}

/// The program has a handler for this signal.
pub fn has_handler(signal: c_int) -> bool {
    let mut current = default_action();
    sigaction(signal, std::ptr::null(), &mut current);
    is_handler(&current)
}

fn kernel_mask() -> u64 {
    let mut mask = 0u64;
    let place = (&raw mut mask) as u64;
    system::call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, 0, place, 8, 0, 0]);
    mask
}

/// What a thread that the running one creates begins with.
pub fn inherited() -> Signals {
    if !DIFFER.load(Ordering::Relaxed) {
        return Signals::default();
    }
    Signals { mask: kernel_mask(), hidden: mine().hidden, ..Signals::default() }
}

/// Threads have masks and stacks for handlers that differ, so that switching between them is more than that.
#[inline]
pub fn are_different() -> bool {
    DIFFER.load(Ordering::Relaxed)
}

/// The running thread is about to be suspended.
#[cold]
pub fn suspend() {
    mine().mask = kernel_mask();
}

/// A thread goes on, on its own stack again: what the kernel has for the one before it becomes its own.
#[cold]
pub fn adopt() {
    // Each has a stack of its own: a thread may be suspended in a handler on it.
    real_stack(&mine().stack());
    let mask = &raw const mine().mask;
    system::call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, mask as u64, 0, 8, 0, 0]);
}

/// Where the kernel delivers a signal to.
extern "C" fn caught(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel's description of the signal.
    let sent = unsafe { (*info).si_code } <= 0;
    if !active() {
        return act_in_child(signal, sent, info, context);
    }
    // What the program was about to access may be what it would die of.
    log::forget_write();
    state::forget_accesses();
    // SAFETY: as above.
    let fault = unsafe { fault(signal, sent, &*info, &*context) };
    // SAFETY: as above.
    if signal == STOP_SIGNAL && unsafe { (*info).si_code } != libc::SI_TKILL {
        finish(Ending::TimeLimit, 0, fault.pc, "");
    }
    let Some(&mut wanted) = action(signal) else { die_of(&fault) };
    let me = mine();
    let blocked = (me.handling | me.hidden) & bit(signal) != 0;
    if wanted.sa_sigaction == libc::SIG_IGN && sent {
        return;
    }
    if blocked || !is_handler(&wanted) {
        // A handler that sends its own signal again wants to die of the fault that it was called for.
        let first = me.faults.iter().find(|before| sent && before.signal == signal).cloned();
        die_of(&first.unwrap_or(fault));
    }
    if wanted.sa_flags & libc::SA_NODEFER == 0 && UNBLOCKABLE.contains(&signal) {
        me.handling |= bit(signal);
    }
    if wanted.sa_flags & libc::SA_RESETHAND != 0 {
        set_handler(signal, libc::SIG_DFL, 0);
    }
    let depth = me.faults.len();
    me.faults.push(fault);
    call(&wanted, signal, info, context);
    let me = mine();
    me.faults.truncate(depth);
    me.handling &= !bit(signal);
}

/// Calls the program's handler as the kernel would.
fn call(wanted: &libc::sigaction, signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: the program's handler; one that takes the signal alone does not look at the rest.
    unsafe { std::mem::transmute::<usize, Handler>(wanted.sa_sigaction)(signal, info, context.cast()) };
}

/// In a child that the program forked, which is not under test: as if the runtime were not there.
fn act_in_child(signal: c_int, sent: bool, info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    match action(signal) {
        Some(&mut wanted) if is_handler(&wanted) => call(&wanted, signal, info, context),
        Some(wanted) if wanted.sa_sigaction == libc::SIG_IGN && sent => {}
        _ => {
            // What it would have died of, it dies of, when the fault happens again or the signal comes again.
            // SAFETY: plain calls.
            unsafe {
                real_action(signal, &default_action(), std::ptr::null_mut());
                if sent {
                    libc::raise(signal);
                }
            }
        }
    }
}

/// What happened, and where.
fn fault(signal: c_int, sent: bool, info: &libc::siginfo_t, context: &libc::ucontext_t) -> Fault {
    let registers = &context.uc_mcontext.gregs;
    let (pc, stack_pointer) =
        (registers[libc::REG_RIP as usize] as u64, registers[libc::REG_RSP as usize] as u64);
    // SAFETY: meaningful for faults; for others the union holds other numbers, which are not used.
    let address = unsafe { info.si_addr() } as u64;
    const NEAR: u64 = 1 << 16;
    let overflow = !sent && address.wrapping_sub(stack_pointer.wrapping_sub(NEAR)) < 2 * NEAR;
    // A location is looked up one byte before its address, which for a call is the call itself; a fault is at
    // the instruction. In a hook that was passed a wild pointer, the top of the stack is its return address.
    // In a library, what matters is who called it.
    let pc = match modules::is_ours(pc) {
        false if modules::is_system(pc) && !overflow => modules::users_call(pc),
        false => pc + 1,
        true if overflow || signal == STOP_SIGNAL => 0,
        true => {
            // SAFETY: the stack pointer of code that was running.
            let top = unsafe { (stack_pointer as *const u64).read() };
            if modules::is_ours(top) { 0 } else { top }
        }
    };
    let message = match signal {
        libc::SIGABRT => String::new(),
        _ if overflow => "stack overflow".to_owned(),
        _ if sent => String::new(),
        _ => format!("address {address:#x}"),
    };
    Fault { signal, pc, message, stack_pointer }
}

fn die_of(fault: &Fault) -> ! {
    finish(Ending::Signal, fault.signal as u32, fault.pc, &fault.message)
}

/// The program ends with an error while it handles something that it would have died of: that is what happened.
pub fn end_in_handler(code: c_int) {
    if code != 0
        && let Some(fault) = mine().faults.first().cloned()
    {
        die_of(&fault);
    }
}

/// `abort`: a program with a handler for it has a chance to get away.
pub fn before_abort() {
    if action(libc::SIGABRT).is_some_and(|action| is_handler(action)) {
        // SAFETY: a plain call; comes to `caught`.
        unsafe { libc::raise(libc::SIGABRT) };
    }
}

macro_rules! jumps {
    ($($name:ident)+) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(buffer: *mut CleanupBuffer, value: c_int) -> ! {
            // SAFETY: the program's buffer.
            unsafe { leave_handlers(&*buffer) };
            real!($name(buffer => *mut CleanupBuffer, value => c_int));
            unreachable!("a jump returned")
        }
    )+ };
}

jumps! { longjmp _longjmp siglongjmp __longjmp_chk }

/// A jump may leave handlers behind, and may restore the mask.
fn leave_handlers(target: &CleanupBuffer) {
    if !active() {
        return;
    }
    let me = mine();
    me.faults.retain(|fault| target.stack_pointer() < fault.stack_pointer);
    if target.restores_mask() {
        me.handling = 0;
    }
}
