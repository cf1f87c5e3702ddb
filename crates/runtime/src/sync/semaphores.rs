//! Semaphores, barriers and `pthread_once`.

use std::arch::naked_asm;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::{is_left_alone, users_call};
use crate::entry::real::real;
use crate::os::system::fail;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, point};
use crate::schedule::wait::{ONCE_DONE, ONCE_RUNNING, ONCE_STATE, Wait, barrier_count, once, semaphore};
use crate::sync::cancellation;
use crate::time::clock;
use crate::time::clock::Clock;

type Semaphore = *mut libc::sem_t;
type Until = *const libc::timespec;
type Barrier = *mut libc::pthread_barrier_t;

intercept! {
    sem_wait/1 => sem_wait_;
    sem_trywait/1 => sem_try_wait;
    sem_timedwait/2 => sem_timed_wait;
    sem_clockwait/3 => sem_clock_wait;
    sem_post/1 => sem_post_;
    pthread_barrier_wait/1 => barrier_wait;
}

fn decrement(address: u64, wait: Wait, deadline: Option<u64>, pc: u64) -> c_int {
    let pc = users_call(pc);
    let operation = Operation::new(EventKind::SemWait, pc, address).waiting(wait).until(deadline);
    let timed_out = point(operation.cancellable());
    cancellation::act_at(EventKind::SemWait, pc, address);
    let value = semaphore(address);
    let entry = Entry::new(EventKind::SemWait, pc, address);
    if timed_out {
        entry.outcome(Outcome::TimedOut).write();
        return fail(libc::ETIMEDOUT);
    }
    if *value == 0 {
        entry.outcome(Outcome::Failed).write();
        return fail(libc::EAGAIN);
    }
    *value -= 1;
    entry.value(u64::from(*value)).write();
    0
}

extern "C" fn sem_wait_(semaphore: Semaphore, pc: u64) -> c_int {
    if !active() {
        return real!(sem_wait(semaphore => Semaphore) -> c_int);
    }
    decrement(semaphore as u64, Wait::Semaphore(semaphore as u64), None, pc)
}

extern "C" fn sem_try_wait(semaphore: Semaphore, pc: u64) -> c_int {
    if !active() {
        return real!(sem_trywait(semaphore => Semaphore) -> c_int);
    }
    decrement(semaphore as u64, Wait::Nothing, None, pc)
}

extern "C" fn sem_timed_wait(semaphore: Semaphore, until: Until, pc: u64) -> c_int {
    if !active() {
        return real!(sem_timedwait(semaphore => Semaphore, until => Until) -> c_int);
    }
    decrement(semaphore as u64, Wait::Semaphore(semaphore as u64), clock::deadline(until), pc)
}

extern "C" fn sem_clock_wait(semaphore: Semaphore, clock: Clock, until: Until, pc: u64) -> c_int {
    if !active() {
        return real!(sem_clockwait(semaphore => Semaphore, clock => Clock, until => Until) -> c_int);
    }
    decrement(semaphore as u64, Wait::Semaphore(semaphore as u64), clock::deadline(until), pc)
}

extern "C" fn sem_post_(sem: Semaphore, pc: u64) -> c_int {
    if !active() {
        return real!(sem_post(sem => Semaphore) -> c_int);
    }
    let (address, pc) = (sem as u64, users_call(pc));
    point(Operation::new(EventKind::SemPost, pc, address));
    let value = semaphore(address);
    if *value == c_int::MAX as u32 {
        Entry::new(EventKind::SemPost, pc, address).outcome(Outcome::Error).write();
        return fail(libc::EOVERFLOW);
    }
    *value += 1;
    Entry::new(EventKind::SemPost, pc, address).value(u64::from(*value)).write();
    scheduler::get().released(address);
    0
}

extern "C" fn barrier_wait(barrier: Barrier, pc: u64) -> c_int {
    if !active() {
        return real!(pthread_barrier_wait(barrier => Barrier) -> c_int);
    }
    let (address, pc) = (barrier as u64, users_call(pc));
    point(Operation::new(EventKind::BarrierArrive, pc, address));
    Entry::new(EventKind::BarrierArrive, pc, address).write();
    let sched = scheduler::get();
    let generation = sched.wakeups.generation(address);
    let last = sched.at_barrier(address) + 1 >= barrier_count(address);
    if last {
        sched.wakeups.next_generation(address);
        sched.released(address);
    }
    let leave = Operation::new(EventKind::BarrierLeave, pc, address);
    point(leave.waiting(Wait::Barrier { address, generation }));
    Entry::new(EventKind::BarrierLeave, pc, address).write();
    if last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}

/// `pthread_once(control, routine)`. The routine may throw, and Rust code must not be unwound through, so the
/// call of it is made from here.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn pthread_once(control: *mut c_int, routine: extern "C" fn()) -> c_int {
    naked_asm!(
        ".cfi_startproc",
        // Cleanups only: where the routine throws, the control is reset on the way.
        ".cfi_personality 0x9b, {personality}",
        ".cfi_lsda 0x1b, .Lonce_table",
        "8:",
        "mov rdx, [rsp]",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r13, 0",
        "mov rbx, rdi",
        "mov r12, rsi",
        "mov r13, rdx",
        "call {enter}",
        "test eax, eax",
        "je 2f",
        "3:",
        "call r12",
        "4:",
        "mov rdi, rbx",
        "mov rsi, r13",
        "call {leave}",
        "2:",
        "xor eax, eax",
        ".cfi_remember_state",
        "pop r13",
        ".cfi_adjust_cfa_offset -8",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_restore_state",
        // The landing pad: the exception is in rax.
        "5:",
        "mov r12, rax",
        "mov rdi, rbx",
        "mov rsi, r13",
        "call {abandon}",
        "mov rdi, r12",
        "call {resume}",
        "6:",
        ".cfi_endproc",
        // Which call leads to which landing pad: all of the function is listed, or the unwinder gives up.
        ".pushsection .gcc_except_table, \"a\", @progbits",
        ".Lonce_table:",
        ".byte 0xff, 0xff, 0x03",
        ".uleb128 39",
        ".long 0, 3b - 8b, 0",
        ".byte 0",
        ".long 3b - 8b, 4b - 3b, 5b - 8b",
        ".byte 0",
        ".long 4b - 8b, 6b - 4b, 0",
        ".byte 0",
        ".popsection",
        enter = sym once_enter,
        leave = sym once_leave,
        abandon = sym once_abandon,
        resume = sym _Unwind_Resume,
        personality = sym PERSONALITY,
    )
}

unsafe extern "C" {
    fn _Unwind_Resume(exception: *mut u8) -> !;
    fn __gcc_personality_v0();
}

/// The unwinder wants the personality's address in a place of its own.
static PERSONALITY: unsafe extern "C" fn() = __gcc_personality_v0;

/// The routine threw: it has not been run.
extern "C" fn once_abandon(control: *mut c_int, pc: u64) {
    let (address, pc) = (control as u64, users_call(pc));
    point(Operation::new(EventKind::OnceLeave, pc, address));
    *once(address) = 0;
    Entry::new(EventKind::OnceLeave, pc, address).outcome(Outcome::Error).write();
    scheduler::get().released(address);
}

/// 1 when the caller is to run the routine.
extern "C" fn once_enter(control: *mut c_int, routine: extern "C" fn(), pc: u64) -> c_int {
    if is_left_alone(pc) {
        real!(pthread_once(control => *mut c_int, routine => extern "C" fn()) -> c_int);
        return 0;
    }
    let (address, pc) = (control as u64, users_call(pc));
    point(Operation::new(EventKind::OnceEnter, pc, address).waiting(Wait::Once(address)));
    let first = *once(address) & ONCE_STATE == 0;
    if first {
        *once(address) = ONCE_RUNNING;
    }
    Entry::new(EventKind::OnceEnter, pc, address).value(u64::from(first)).write();
    c_int::from(first)
}

extern "C" fn once_leave(control: *mut c_int, pc: u64) {
    let (address, pc) = (control as u64, users_call(pc));
    point(Operation::new(EventKind::OnceLeave, pc, address));
    *once(address) = ONCE_DONE;
    Entry::new(EventKind::OnceLeave, pc, address).write();
    scheduler::get().released(address);
}
