//! Signals that threads send each other and wait for.
//!
//! A signal sent with `pthread_kill` is kept for its thread until that waits for it, one sent with `kill` until
//! any thread does. A thread that does not wait has it delivered at its next operation, as a call of the handler
//! that the program installed; one that waits for a lock, a semaphore or a thread, when nobody can run.

use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;
use threadbare_wire::PROCESS;

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::os::{identity, system};
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, Scheduler, point};
use crate::schedule::wait::Wait;
use crate::signals::handlers::{blocked, blocked_by};
use crate::sync::{cancellation, threads};
use crate::time::{alarms, clock};

type Set = *const libc::sigset_t;

intercept! {
    pthread_kill/2 => kill_thread;
    kill/2 => kill_process;
    sigwait/2 => wait;
    sigwaitinfo/2 => wait_info;
    sigtimedwait/3 => timed_wait;
    sigsuspend/1 => suspend;
    pause/0 => pause_;
}

/// The signals of a set, one bit each.
fn bits(set: Set) -> u64 {
    // SAFETY: the program's set; signals 1 to 64 are its first word.
    unsafe { set.cast::<u64>().read() }
}

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

impl Scheduler {
    /// Signals that thread `index` has been sent, or the process.
    pub fn signals_for(&self, index: usize) -> u64 {
        self.threads[index].signals | self.signals
    }

    /// The process was sent this signal, and nobody has had it yet.
    pub fn is_sent(&self, signal: c_int) -> bool {
        signal != 0 && self.signals & bit(signal) != 0
    }

    /// Some thread does nothing but wait for this signal.
    pub fn is_waited_for(&self, signal: c_int) -> bool {
        let waits = |index: usize| matches!(self.threads[index].wait, Wait::Signal(wanted) if wanted & bit(signal) != 0);
        self.alive.iter().any(waits)
    }

    /// Sends the process a signal that some thread will have.
    pub fn send_to_process(&mut self, signal: c_int) {
        self.signals |= bit(signal);
        for index in self.alive.iter() {
            if matches!(self.threads[index].wait, Wait::Signal(_)) {
                self.ready.insert(index);
            }
        }
    }

    /// Nobody can run: has somebody who waits for something else handle a signal that was sent.
    pub fn interrupt(&mut self) -> Option<usize> {
        // Where handlers are called again and again and nothing else happens, they do not help.
        const IN_VAIN: u32 = 100;
        let index = self.alive.iter().find(|&index| self.is_due(index) && self.may_try_again(index))?;
        self.interruptions += 1;
        if self.interruptions > IN_VAIN {
            return None;
        }
        self.threads[index].interrupted = true;
        self.ready.insert(index);
        Some(index)
    }

    /// There is a signal that thread `index` would handle if it were not waiting for something else.
    pub fn is_due(&self, index: usize) -> bool {
        let sent = self.signals_for(index);
        sent != 0
            && !matches!(self.threads[index].wait, Wait::Signal(_))
            && sent & !blocked_by(self, index) != 0
    }

    /// What thread `index` waits to do is tried again after a handler was called. Other waits end then, or look at
    /// what has changed, which is not modelled.
    pub fn may_try_again(&self, index: usize) -> bool {
        // SAFETY: the slot of a thread that exists.
        let kind = EventKind::from_byte(unsafe { (*log::pending(index)).kind });
        matches!(kind, Some(EventKind::Lock | EventKind::ReadLock | EventKind::SemWait | EventKind::Join))
    }

    /// The running thread has had these; what was sent to it alone counts first.
    fn take_signals(&mut self, taken: u64) {
        let own = &mut self.threads[self.current].signals;
        self.signals &= !(taken & !*own);
        *own &= !taken;
    }
}

extern "C" fn kill_thread(handle: libc::pthread_t, signal: c_int, pc: u64) -> c_int {
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

extern "C" fn kill_process(process: libc::pid_t, signal: c_int, pc: u64) -> c_int {
    if !active() || process != identity::process_id() {
        return real!(kill(process => libc::pid_t, signal => c_int) -> c_int);
    }
    // What nothing blocks, the running thread can have at once, from the kernel.
    if !(1..=64).contains(&signal) || blocked() & bit(signal) == 0 {
        let process = real!(getpid() -> libc::pid_t);
        return real!(kill(process => libc::pid_t, signal => c_int) -> c_int);
    }
    let pc = users_call(pc);
    point(Operation::new(EventKind::Signal, pc, PROCESS));
    Entry::new(EventKind::Signal, pc, PROCESS).value(signal as u64).write();
    scheduler::get().send_to_process(signal);
    0
}

/// Waits for one of the signals in `wanted`; `None` when the time was up.
fn receive(wanted: u64, deadline: Option<u64>, pc: u64) -> Option<c_int> {
    let pc = users_call(pc);
    let operation = Operation::new(EventKind::Sleep, pc, 0).waiting(Wait::Signal(wanted)).until(deadline);
    let timed_out = point(operation.cancellable());
    cancellation::act_at(EventKind::Sleep, pc, 0);
    let sched = scheduler::get();
    let found = sched.signals_for(sched.current) & wanted;
    let signal = (!timed_out && found != 0).then(|| found.trailing_zeros() as c_int + 1);
    sched.take_signals(signal.map_or(0, bit));
    Entry::new(EventKind::Sleep, pc, 0).value(signal.unwrap_or(0) as u64).write();
    signal
}

extern "C" fn wait(set: Set, result: *mut c_int, pc: u64) -> c_int {
    if !active() {
        return real!(sigwait(set => Set, result => *mut c_int) -> c_int);
    }
    let Some(signal) = receive(bits(set), None, pc) else { return libc::EINTR };
    // SAFETY: the program's place for the signal.
    unsafe { result.write(signal) };
    0
}

extern "C" fn wait_info(set: Set, info: *mut libc::siginfo_t, pc: u64) -> c_int {
    if !active() {
        return real!(sigwaitinfo(set => Set, info => *mut libc::siginfo_t) -> c_int);
    }
    answer(receive(bits(set), None, pc), info)
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
    answer(receive(bits(set), clock::after(limit), pc), info)
}

/// Waits until a handler was called for one of the signals in `wanted`.
fn wait_for_handler(wanted: u64, pc: u64) -> c_int {
    // A signal that was not blocked before the wait does not end it.
    deliver();
    while !receive(wanted, None, pc).is_some_and(call_handler) {}
    system::fail(libc::EINTR)
}

extern "C" fn suspend(mask: Set, pc: u64) -> c_int {
    if !active() {
        return real!(sigsuspend(mask => Set) -> c_int);
    }
    wait_for_handler(!bits(mask), pc)
}

extern "C" fn pause_(pc: u64) -> c_int {
    if !active() {
        return real!(pause() -> c_int);
    }
    wait_for_handler(!blocked(), pc)
}

fn answer(signal: Option<c_int>, info: *mut libc::siginfo_t) -> c_int {
    let Some(signal) = signal else { return system::fail(libc::EAGAIN) };
    if !info.is_null() {
        // SAFETY: the program's place.
        unsafe {
            info.write(describe(signal));
        }
    }
    signal
}

/// What a handler is told of a signal.
fn describe(signal: c_int) -> libc::siginfo_t {
    /// Where the value that a timer comes with is, in words.
    const VALUE: usize = 3;
    // SAFETY: all zeroes is a description that says little.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    info.si_signo = signal;
    info.si_code = libc::SI_TKILL;
    if let Some(value) = alarms::value_of(signal) {
        info.si_code = libc::SI_TIMER;
        // SAFETY: inside the description, which is as the kernel lays it out.
        unsafe { (&raw mut info).cast::<u64>().add(VALUE).write(value) };
    }
    info
}

/// Comes before every operation: calls handlers of signals that were sent to the running thread.
pub fn deliver() {
    let sched = scheduler::get();
    let pending = sched.signals_for(sched.current);
    let due = pending & !blocked();
    sched.take_signals(due);
    for signal in (1..=64).filter(|&signal| due & bit(signal) != 0) {
        call_handler(signal);
    }
}

/// Does what the program wants done about the signal. `true` when that was a call of a handler.
fn call_handler(signal: c_int) -> bool {
    // SAFETY: the program's own action for the signal, called as the kernel would call it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        match action.sa_sigaction {
            libc::SIG_IGN => return false,
            libc::SIG_DFL => {
                libc::raise(signal);
                return false;
            }
            handler if action.sa_flags & libc::SA_SIGINFO != 0 => {
                let mut info = describe(signal);
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
    true
}
