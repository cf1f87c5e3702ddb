//! Signals that threads send each other and wait for.
//!
//! A signal sent with `pthread_kill` is kept for its thread until that waits for it. A thread that does not
//! wait has it delivered at its next operation, as a call of the handler that the program installed.

use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;

use crate::active;
use crate::cancellation;
use crate::entry::intercept;
use crate::handlers;
use crate::log::Entry;
use crate::modules::users_call;
use crate::real::real;
use crate::scheduler::{self, Operation, point};
use crate::threads;
use crate::time;
use crate::wait::Wait;

type Set = *const libc::sigset_t;

intercept! {
    pthread_kill/2 => kill;
    sigwait/2 => wait;
    sigwaitinfo/2 => wait_info;
    sigtimedwait/3 => timed_wait;
}

/// The signals of a set, one bit each.
fn bits(set: Set) -> u64 {
    // SAFETY: the program's set; signals 1 to 64 are its first word.
    unsafe { set.cast::<u64>().read() }
}

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

extern "C" fn kill(handle: libc::pthread_t, signal: c_int, pc: u64) -> c_int {
    // SAFETY: asks who is running.
    if !active() || signal != 0 && handle == unsafe { libc::pthread_self() } {
        return real!(pthread_kill(handle => libc::pthread_t, signal => c_int) -> c_int);
    }
    let Some(target) = threads::find(handle) else { return libc::ESRCH };
    match signal {
        0 => return 0,
        1..=64 => {}
        _ => return libc::EINVAL,
    }
    let pc = users_call(pc);
    point(Operation::new(EventKind::Signal, pc, target as u64));
    Entry::new(EventKind::Signal, pc, target as u64).value(signal as u64).write();
    let sched = scheduler::get();
    sched.threads[target].signals |= bit(signal);
    sched.ready.insert(target);
    0
}

/// Waits for one of the signals in `set`; `None` when the time was up.
fn receive(set: Set, deadline: Option<u64>, pc: u64) -> Option<c_int> {
    let (wanted, pc) = (bits(set), users_call(pc));
    let operation = Operation::new(EventKind::Sleep, pc, 0).waiting(Wait::Signal(wanted)).until(deadline);
    let timed_out = point(operation.cancellable());
    cancellation::act_at(EventKind::Sleep, pc, 0);
    let sched = scheduler::get();
    let pending = &mut sched.threads[sched.current].signals;
    let found = *pending & wanted;
    let signal = (!timed_out && found != 0).then(|| found.trailing_zeros() as c_int + 1);
    *pending &= !signal.map_or(0, bit);
    Entry::new(EventKind::Sleep, pc, 0).value(signal.unwrap_or(0) as u64).write();
    signal
}

extern "C" fn wait(set: Set, result: *mut c_int, pc: u64) -> c_int {
    if !active() {
        return real!(sigwait(set => Set, result => *mut c_int) -> c_int);
    }
    let Some(signal) = receive(set, None, pc) else { return libc::EINTR };
    // SAFETY: the program's place for the signal.
    unsafe { result.write(signal) };
    0
}

extern "C" fn wait_info(set: Set, info: *mut libc::siginfo_t, pc: u64) -> c_int {
    if !active() {
        return real!(sigwaitinfo(set => Set, info => *mut libc::siginfo_t) -> c_int);
    }
    answer(receive(set, None, pc), info)
}

extern "C" fn timed_wait(
    set: Set,
    info: *mut libc::siginfo_t,
    limit: *const libc::timespec,
    pc: u64,
) -> c_int {
    if !active() {
        return real!(sigtimedwait(
            set => Set, info => *mut libc::siginfo_t, limit => *const libc::timespec
        ) -> c_int);
    }
    answer(receive(set, time::after(limit), pc), info)
}

fn answer(signal: Option<c_int>, info: *mut libc::siginfo_t) -> c_int {
    let Some(signal) = signal else {
        // SAFETY: errno of the running thread.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        return -1;
    };
    if !info.is_null() {
        // SAFETY: the program's place; all zeroes is a description that says little.
        unsafe {
            info.write(std::mem::zeroed());
            (*info).si_signo = signal;
            (*info).si_code = libc::SI_TKILL;
        }
    }
    signal
}

/// Comes before every operation: calls handlers of signals that were sent to the running thread.
pub fn deliver() {
    let sched = scheduler::get();
    let pending = sched.threads[sched.current].signals;
    if pending == 0 {
        return;
    }
    let due = pending & !handlers::blocked();
    sched.threads[sched.current].signals &= !due;
    for signal in (1..=64).filter(|&signal| due & bit(signal) != 0) {
        call_handler(signal);
    }
}

fn call_handler(signal: c_int) {
    // SAFETY: the program's own action for the signal, called as the kernel would call it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        match action.sa_sigaction {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                libc::raise(signal);
            }
            handler if action.sa_flags & libc::SA_SIGINFO != 0 => {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                info.si_signo = signal;
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                handler(signal, &mut info, std::ptr::null_mut());
            }
            handler => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}
