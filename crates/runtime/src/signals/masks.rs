//! Signal masks and alternate stacks of threads.
//!
//! Both belong to OS threads, of which there is one. So each thread's own are put in place when it
//! [goes on](adopt). Until the program uses functions for that, threads do not differ, and switching costs nothing.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_trace::ThreadIndex;

use threadbare_wire::STOP_SIGNAL;

use super::bit;
use super::handlers::Fault;
use crate::entry::real::real;
use crate::os::system;
use crate::schedule::scheduler::{self, Scheduler};

/// Signals that a fault of the program's raises, and which the kernel does not let it survive while they are
/// blocked; and the one by which the tool ends a run. They are never really blocked.
pub const UNBLOCKABLE: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, STOP_SIGNAL];

/// Threads may differ in their masks and alternate stacks: the program has used functions for that.
static DIFFER: AtomicBool = AtomicBool::new(false);

/// What a thread has of its own.
#[derive(Default)]
pub struct Signals {
    /// Its mask while others run.
    mask: u64,
    /// What it takes for blocked though it is not, see `UNBLOCKABLE`.
    pub hidden: u64,
    /// `UNBLOCKABLE` signals whose handlers it is in, or has left by a jump that did not restore the mask.
    pub handling: u64,
    /// What it is in handlers for, outermost first.
    pub faults: Vec<Fault>,
    /// The alternate stack that the program gave it.
    pub stack: Option<libc::stack_t>,
    /// The runtime's own in its place, while there is none.
    spare: Option<libc::stack_t>,
}

impl Signals {
    /// Where handlers run that are to run on an alternate stack.
    pub fn stack(&mut self) -> libc::stack_t {
        self.stack.unwrap_or_else(|| *self.spare.get_or_insert_with(new_stack))
    }
}

/// Lends the running thread's to `work`.
pub fn with_mine<R>(work: impl FnOnce(&mut Signals) -> R) -> R {
    scheduler::with_me(|me| work(&mut me.handlers))
}

/// From now on threads may differ. Until now they did not.
pub fn differ() {
    if !DIFFER.swap(true, Ordering::Relaxed) {
        let mask = kernel_mask();
        scheduler::with(|sched| sched.threads.iter_mut().for_each(|thread| thread.handlers.mask = mask));
    }
}

/// Threads have masks and stacks for handlers that differ, so that switching between them is more than that.
#[inline]
pub fn are_different() -> bool {
    DIFFER.load(Ordering::Relaxed)
}

/// The bits of `UNBLOCKABLE`.
pub fn unblockable() -> u64 {
    UNBLOCKABLE.iter().fold(0, |bits, &signal| bits | bit(signal))
}

/// An alternate stack of the runtime's.
pub fn new_stack() -> libc::stack_t {
    const BYTES: usize = 64 << 10;
    let bytes = Vec::leak(vec![0u8; BYTES]);
    libc::stack_t { ss_sp: bytes.as_mut_ptr().cast(), ss_flags: 0, ss_size: BYTES }
}

/// Makes this the alternate stack that the kernel knows of.
///
/// # Safety
/// Nobody uses the memory for anything else, for as long as handlers may run on it.
pub unsafe fn set_kernel_stack(stack: &libc::stack_t) {
    // SAFETY: the kernel reads the description; the caller promises the rest.
    unsafe { system::call(libc::SYS_sigaltstack, [std::ptr::from_ref(stack) as u64, 0, 0, 0, 0, 0]) };
}

/// libc's `pthread_sigmask`.
pub fn real_mask(how: c_int, set: Option<&libc::sigset_t>, old: Option<&mut libc::sigset_t>) -> c_int {
    let set = set.map_or(std::ptr::null(), std::ptr::from_ref);
    let old = old.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: libc reads the one set and writes to the other, both of which are references or null.
    unsafe {
        real!(pthread_sigmask(how => c_int, set => *const libc::sigset_t, old => *mut libc::sigset_t) -> c_int)
    }
}

/// `pthread_sigmask` for the running thread, with signals as bits: the error, and what was blocked before.
pub fn change(how: c_int, wanted: Option<u64>) -> Result<u64, c_int> {
    let hidden = with_mine(|mine| mine.hidden);
    // SAFETY: all zeroes is a set.
    let [mut new, mut old]: [libc::sigset_t; 2] = unsafe { std::mem::zeroed() };
    if let Some(wanted) = wanted {
        differ();
        // SAFETY: a set's first word holds the signals there are.
        unsafe { *(&raw mut new).cast::<u64>() = wanted & !unblockable() };
        with_mine(|mine| {
            mine.hidden = match how {
                libc::SIG_BLOCK => hidden | wanted & unblockable(),
                libc::SIG_UNBLOCK => hidden & !wanted,
                _ => wanted & unblockable(),
            };
        });
    }
    match real_mask(how, wanted.map(|_| &new), Some(&mut old)) {
        // SAFETY: a set's first word holds the signals there are.
        0 => Ok(unsafe { *(&raw const old).cast::<u64>() } | hidden),
        error => Err(error),
    }
}

/// The signals that the running thread has blocked.
pub fn blocked() -> u64 {
    kernel_mask() | with_mine(|mine| mine.hidden)
}

/// The signals that thread `index` has blocked.
pub fn blocked_by(sched: &Scheduler, index: ThreadIndex) -> u64 {
    let Signals { mask, hidden, .. } = sched.threads[index].handlers;
    let is_suspended = are_different() && index != scheduler::current();
    hidden | if is_suspended { mask } else { kernel_mask() }
}

fn kernel_mask() -> u64 {
    let mut mask = 0u64;
    let place = (&raw mut mask) as u64;
    // SAFETY: the mask is written to a place of our own, which has its eight bytes.
    unsafe { system::call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, 0, place, 8, 0, 0]) };
    mask
}

/// Really blocks a signal, though it may be one of `UNBLOCKABLE`.
pub fn block_for_good(signal: c_int) {
    let mask = bit(signal);
    let place = (&raw const mask) as u64;
    // SAFETY: the kernel reads the mask from a place of our own, which has its eight bytes.
    unsafe { system::call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as u64, place, 0, 8, 0, 0]) };
}

/// What a thread that the running one creates begins with.
pub fn inherited() -> Signals {
    if !are_different() {
        return Signals::default();
    }
    Signals { mask: kernel_mask(), hidden: with_mine(|mine| mine.hidden), ..Signals::default() }
}

/// The running thread is about to be suspended.
#[cold]
pub fn suspend() {
    let mask = kernel_mask();
    with_mine(|mine| mine.mask = mask);
}

/// A thread goes on, on its own stack again: what the kernel has for the one before it becomes its own.
#[cold]
pub fn adopt() {
    let (stack, mask) = with_mine(|mine| (mine.stack(), mine.mask));
    // SAFETY: each thread has a stack of its own, the program's or one that is never freed: a thread may be suspended
    // in a handler on it. The mask is read from a place of our own.
    unsafe {
        set_kernel_stack(&stack);
        let place = &raw const mask as u64;
        system::call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, place, 0, 8, 0, 0]);
    }
}
