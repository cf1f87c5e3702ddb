//! Signals that threads send each other and wait for.
//!
//! A signal that is sent with `pthread_kill` is kept for its thread, one that is sent with `kill` for any thread. A
//! thread takes it when it waits for signals. Otherwise the program's handler is called, at the thread's next
//! operation. In a thread that waits for a lock, a semaphore or a thread, the handler is called when no thread can run.

use std::ffi::{c_int, c_void};

use threadbare_trace::{EventKind, ThreadIndex};
use threadbare_wire::PROCESS;

use super::bit;
use super::masks::{blocked, blocked_by};
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::scheduler::{self, Operation, Scheduler, point};
use crate::schedule::wait::{self, OnSignal, Wait};
use crate::sync::cancellation;
use crate::time::{alarms, work};

impl Scheduler {
    /// Signals that thread `index` has been sent, or the process.
    pub fn signals_for(&self, index: ThreadIndex) -> u64 {
        self.threads[index].signals | self.signals
    }

    /// The process was sent this signal, and nobody has had it yet.
    pub fn is_sent(&self, signal: c_int) -> bool {
        signal != 0 && self.signals & bit(signal) != 0
    }

    /// Some thread does nothing but wait for this signal.
    pub fn is_waited_for(&self, signal: c_int) -> bool {
        self.alive.iter().any(|index| self.threads[index].wait.rules().signals & bit(signal) != 0)
    }

    /// Sends the process a signal that some thread will have.
    pub fn send_to_process(&mut self, signal: c_int) {
        self.signals |= bit(signal);
        for index in self.alive.iter() {
            if self.threads[index].wait.rules().on_signal == OnSignal::IsTaken {
                self.ready.insert(index);
            }
        }
    }

    /// No thread can run. Interrupts a thread's wait, so that it handles a signal that was sent. Returns the thread.
    pub fn interrupt(&mut self) -> Option<ThreadIndex> {
        // Where handlers are called again and again and nothing else happens, they do not help.
        const MAX_INTERRUPTIONS: u32 = 100;
        let index = self.alive.iter().find(|&index| self.is_due(index) && self.waits_again(index))?;
        self.interruptions += 1;
        if self.interruptions > MAX_INTERRUPTIONS {
            return None;
        }
        self.threads[index].interrupted = true;
        self.ready.insert(index);
        Some(index)
    }

    /// There is a signal that thread `index` would handle if it were not waiting for something else.
    pub fn is_due(&self, index: ThreadIndex) -> bool {
        let sent = self.signals_for(index);
        sent != 0
            && self.threads[index].wait.rules().on_signal != OnSignal::IsTaken
            && sent & !blocked_by(self, index) != 0
    }

    /// Thread `index` waits again after a handler was called.
    pub fn waits_again(&self, index: ThreadIndex) -> bool {
        self.threads[index].wait.rules().on_signal == OnSignal::WaitsAgain
    }

    /// The running thread has had these; what was sent to it alone counts first.
    fn take_signals(&mut self, taken: u64) {
        let own = &mut self.threads[scheduler::current()].signals;
        self.signals &= !(taken & !*own);
        *own &= !taken;
    }
}

/// Sends thread `target` a signal.
pub fn send_to_thread(target: ThreadIndex, signal: c_int, pc: u64) {
    let (object, pc) = (wait::thread_address(target), users_call(pc));
    point(Operation::new(EventKind::Signal, pc, object));
    Entry::new(EventKind::Signal, pc, object).value(signal as u64).write();
    scheduler::with(|sched| {
        sched.threads[target].signals |= bit(signal);
        sched.ready.insert(target);
    });
}

/// Sends the process a signal that the running thread has blocked.
pub fn send_to_process(signal: c_int, pc: u64) {
    let pc = users_call(pc);
    point(Operation::new(EventKind::Signal, pc, PROCESS));
    Entry::new(EventKind::Signal, pc, PROCESS).value(signal as u64).write();
    scheduler::with(|sched| sched.send_to_process(signal));
}

/// Waits for one of the signals in `wanted`; `None` when the time was up.
pub fn receive(wanted: u64, deadline: Option<u64>, pc: u64) -> Option<c_int> {
    let pc = users_call(pc);
    let operation = Operation::new(EventKind::Sleep, pc, 0).waiting(Wait::Signal(wanted)).until(deadline);
    let timed_out = point(operation.cancellable());
    cancellation::act_at(EventKind::Sleep, pc, 0);
    let signal = scheduler::with(|sched| {
        let found = sched.signals_for(scheduler::current()) & wanted;
        let signal = (!timed_out && found != 0).then(|| found.trailing_zeros() as c_int + 1);
        sched.take_signals(signal.map_or(0, bit));
        signal
    });
    Entry::new(EventKind::Sleep, pc, 0).value(signal.unwrap_or(0) as u64).write();
    if signal.is_some() {
        hears_of_senders();
    }
    signal
}

/// The running thread has had a signal: its clock is not behind that of the thread that sent it.
fn hears_of_senders() {
    work::is_signalled(wait::thread_address(scheduler::current()));
    work::is_signalled(PROCESS);
}

/// Waits until a handler was called for one of the signals in `wanted`.
pub fn wait_for_handler(wanted: u64, pc: u64) {
    // A signal that was not blocked before the wait does not end it.
    deliver();
    while !receive(wanted, None, pc).is_some_and(call_handler) {}
}

/// What a handler is told of a signal.
pub fn describe(signal: c_int) -> libc::siginfo_t {
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
    let blocked = blocked();
    let due = scheduler::with(|sched| {
        let due = sched.signals_for(scheduler::current()) & !blocked;
        sched.take_signals(due);
        due
    });
    if due != 0 {
        hears_of_senders();
    }
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
