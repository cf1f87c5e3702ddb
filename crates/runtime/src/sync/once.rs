//! `pthread_once`.

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::c_int;

use threadbare_trace::{EventKind, Outcome};

use crate::entry::intercept::export;
use crate::entry::log::Entry;
use crate::entry::modules::{is_left_alone, users_call};
use crate::entry::real::real;
use crate::hooks::calls;
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::wait::Wait;

/// glibc's `pthread_once_t`.
#[repr(transparent)]
pub struct Once(Cell<c_int>);

impl Once {
    const STATE: c_int = 3;
    const NEW: c_int = 0;
    const RUNNING: c_int = 1;
    const DONE: c_int = 2;

    /// The control of a program.
    ///
    /// # Safety
    /// `control` points to an initialised `pthread_once_t` that stays one for as long as a thread uses it. A program
    /// that calls `pthread_once` promises libc the same.
    unsafe fn at(control: *mut c_int) -> &'static Once {
        // SAFETY: the caller's promise. All access is through the `Cell`, on the carrier.
        unsafe { &*control.cast::<Once>() }
    }

    pub fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    fn state(&self) -> c_int {
        self.0.get() & Once::STATE
    }

    /// Some thread is in the routine.
    pub fn is_running(&self) -> bool {
        self.state() == Once::RUNNING
    }

    /// The routine has ended, and the control becomes `state`.
    fn leave(&self, state: c_int, outcome: Outcome, pc: u64) {
        let (address, pc) = (self.address(), users_call(pc));
        point(Operation::new(EventKind::OnceLeave, pc, address));
        self.0.set(state);
        Entry::new(EventKind::OnceLeave, pc, address).outcome(outcome).write();
        scheduler::released(address);
    }
}

/// 1 when the caller is to run the routine. `intercept!` cannot make this function: what calls the routine must be
/// `pthread_once` itself, below. So it also passes a call on by hand.
unsafe extern "C" fn enter(control: *mut c_int, routine: extern "C" fn(), pc: u64) -> c_int {
    calls::enter_unseen();
    if is_left_alone(pc) {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { real!(pthread_once(control => *mut c_int, routine => extern "C" fn()) -> c_int) };
        return 0;
    }
    // SAFETY: the program promises libc a control that stays one while threads use it.
    let once = unsafe { Once::at(control) };
    let (address, pc) = (once.address(), users_call(pc));
    point(Operation::new(EventKind::OnceEnter, pc, address).waiting(Wait::Once(once)));
    let is_first = once.state() == Once::NEW;
    if is_first {
        once.0.set(Once::RUNNING);
    }
    Entry::new(EventKind::OnceEnter, pc, address).value(u64::from(is_first)).write();
    c_int::from(is_first)
}

unsafe extern "C" fn leave(control: *mut c_int, pc: u64) {
    calls::enter_unseen();
    // SAFETY: the program promises libc a control that stays one while threads use it.
    unsafe { Once::at(control) }.leave(Once::DONE, Outcome::Done, pc);
}

/// The routine threw: it has not been run.
unsafe extern "C" fn abandon(control: *mut c_int, pc: u64) {
    calls::enter_unseen();
    // SAFETY: the program promises libc a control that stays one while threads use it.
    unsafe { Once::at(control) }.leave(Once::NEW, Outcome::Error, pc);
}

export! {
    /// `pthread_once(control, routine)`. The routine may throw, and Rust code must not be unwound through, so the
    /// call of it is made from here.
    #[unsafe(naked)]
    // Up to Rust 1.88 the lint did not know that a naked function is emitted once, so that a label may have a name.
    #[allow(named_asm_labels)]
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
            enter = sym enter,
            leave = sym leave,
            abandon = sym abandon,
            resume = sym _Unwind_Resume,
            personality = sym PERSONALITY,
        )
    }
}

unsafe extern "C" {
    fn _Unwind_Resume(exception: *mut u8) -> !;
    fn __gcc_personality_v0();
}

/// The unwinder wants the personality's address in a place of its own.
static PERSONALITY: unsafe extern "C" fn() = __gcc_personality_v0;
