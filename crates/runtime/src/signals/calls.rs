//! The functions that a program calls about signals.

use std::ffi::c_int;

use super::masks::{self, blocked, with_mine};
use super::{bit, handlers, sending};
use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::real::real;
use crate::os::{identity, system};
use crate::sync::thread_end::CleanupBuffer;
use crate::sync::threads;
use crate::time::clock;

type Set = *const libc::sigset_t;
type Info = *mut libc::siginfo_t;

/// The signals of a set, one bit each.
///
/// # Safety
/// `set` points to a set.
unsafe fn bits(set: Set) -> u64 {
    // SAFETY: the caller's promise; signals 1 to 64 are a set's first word.
    unsafe { set.cast::<u64>().read() }
}

/// The thread sends itself a signal, which it has at once, from the kernel.
fn is_to_self(handle: libc::pthread_t, signal: c_int) -> bool {
    // SAFETY: libc knows the thread by its FS base, which `context` keeps right.
    signal != 0 && handle == unsafe { libc::pthread_self() }
}

intercept! {
    fn pthread_kill(
        handle: libc::pthread_t, signal: c_int; pc
    ) -> c_int, when (active() && !is_to_self(handle, signal)) {
        let Some(target) = threads::find(handle) else { return libc::ESRCH };
        match signal {
            0 => {}
            1..=64 => sending::send_to_thread(target, signal, pc),
            _ => return libc::EINVAL,
        }
        0
    }

    fn kill(
        process: libc::pid_t, signal: c_int; pc
    ) -> c_int, when (active() && process == identity::process_id()), calling kill {
        // What nothing blocks, the running thread can have at once, from the kernel.
        if !(1..=64).contains(&signal) || blocked() & bit(signal) == 0 {
            // SAFETY: both take numbers alone.
            return unsafe { kill(real!(getpid() -> libc::pid_t), signal) };
        }
        sending::send_to_process(signal, pc);
        0
    }

    fn sigwait(set: Set, result: *mut c_int; pc) -> c_int {
        // SAFETY: the program promises libc a set.
        let wanted = unsafe { bits(set) };
        let Some(signal) = sending::receive(wanted, None, pc) else { return libc::EINTR };
        // SAFETY: the program promises libc a place for the signal.
        unsafe { result.write(signal) };
        0
    }

    fn sigwaitinfo(set: Set, info: Info; pc) -> c_int {
        // SAFETY: the program's set, and its place for the description or null.
        unsafe { answer(sending::receive(bits(set), None, pc), info) }
    }

    fn sigtimedwait(set: Set, info: Info, limit: *const libc::timespec; pc) -> c_int {
        // SAFETY: the program's set and time, and its place for the description or null.
        unsafe { answer(sending::receive(bits(set), clock::after(limit), pc), info) }
    }

    fn sigsuspend(mask: Set; pc) -> c_int {
        // SAFETY: the program promises libc a set.
        sending::wait_for_handler(!unsafe { bits(mask) }, pc);
        system::fail(libc::EINTR)
    }

    fn pause(; pc) -> c_int {
        sending::wait_for_handler(!blocked(), pc);
        system::fail(libc::EINTR)
    }
}

/// The result of a wait for a signal.
///
/// # Safety
/// `info` is null or can be written to.
unsafe fn answer(signal: Option<c_int>, info: Info) -> c_int {
    let Some(signal) = signal else { return system::fail(libc::EAGAIN) };
    if !info.is_null() {
        // SAFETY: the caller's promise.
        unsafe { info.write(sending::describe(signal)) };
    }
    signal
}

intercept! {
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int, when (true) {
        // SAFETY: the program's action, or null. Its handler is a function for this signal: so much it promises libc.
        let (result, before) = unsafe { handlers::exchange(signal, new.as_ref()) };
        if result == 0 && !old.is_null() {
            // SAFETY: the program promises libc a place for the action.
            unsafe { old.write(before) };
        }
        result
    }

    fn signal | bsd_signal(signal: c_int, handler: usize) -> usize, when (true) {
        // SAFETY: the program promises libc a function for this signal, or one of the constants.
        unsafe { handlers::set_handler(signal, handler, libc::SA_RESTART) }
    }

    /// What `signal` is to programs that ask for System V's.
    fn __sysv_signal | sysv_signal(signal: c_int, handler: usize) -> usize, when (true) {
        // SAFETY: the program promises libc a function for this signal, or one of the constants.
        unsafe { handlers::set_handler(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
    }

    /// A thread's alternate stack. The kernel knows of the running thread's only, and has one of the runtime's where
    /// the thread has none.
    fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int, calling set {
        let before = with_mine(|mine| mine.stack);
        // SAFETY: the program promises libc a description of a stack, or null.
        if let Some(new) = unsafe { new.as_ref() } {
            masks::differ();
            let is_disabled = new.ss_flags & libc::SS_DISABLE != 0;
            let stack = with_mine(|mine| {
                mine.stack = (!is_disabled).then_some(*new);
                mine.stack()
            });
            // SAFETY: a stack of the program's or of the runtime's, for this thread alone.
            let error = unsafe { set(&raw const stack, std::ptr::null_mut()) };
            if error != 0 {
                with_mine(|mine| mine.stack = before);
                return error;
            }
        }
        if !old.is_null() {
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: the program promises libc a place for the stack.
            unsafe { old.write(before.unwrap_or(none)) };
        }
        0
    }

    fn pthread_sigmask(how: c_int, set: Set, old: *mut libc::sigset_t) -> c_int {
        // SAFETY: the program promises libc sets, or null.
        unsafe { change_mask(how, set, old) }
    }

    fn sigprocmask(how: c_int, set: Set, old: *mut libc::sigset_t) -> c_int {
        // SAFETY: the program promises libc sets, or null.
        match unsafe { change_mask(how, set, old) } {
            0 => 0,
            error => system::fail(error),
        }
    }
}

/// Changes the running thread's mask.
///
/// # Safety
/// `set` is null or points to a set; `old` is null or points to a set that can be written to.
unsafe fn change_mask(how: c_int, set: Set, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the caller's promise; a set's first word holds the signals there are.
    let wanted = unsafe { set.cast::<u64>().as_ref() }.copied();
    match masks::change(how, wanted) {
        Ok(before) => {
            // SAFETY: the caller's promise. What follows the first word means nothing, and the kernel leaves it alone
            // too.
            if let Some(old) = unsafe { old.cast::<u64>().as_mut() } {
                *old = before;
            }
            0
        }
        Err(error) => error,
    }
}

macro_rules! jumps {
    ($($name:ident)+) => { intercept! { $(
        fn $name(buffer: *mut CleanupBuffer, value: c_int) -> !, calling jump {
            // SAFETY: the program's buffer, which `setjmp` has filled. The function that called `setjmp` has not
            // returned: the program promises libc so much.
            unsafe {
                handlers::leave(&*buffer);
                jump(buffer, value)
            }
        }
    )+ } };
}

jumps! { longjmp _longjmp siglongjmp __longjmp_chk }
