//! System calls that code makes by itself, with an instruction of its own: seen where the kernel helps.
//!
//! Linux 5.11 and later deliver `SIGSYS` instead of making a system call, unless the call comes from a given range of
//! addresses (syscall user dispatch). That range is libc's code. The handler does not make the call: it sends the thread
//! to [`enter`], as if the program had called a function instead. So the call is modelled like those of libc's
//! `syscall`, and threads may be switched in it. The kernel forgets the setting in a copy of the process, so each run
//! sets it, and the program's own children are left alone.
//!
//! The runtime's own calls are let through by a byte that the kernel reads ([`system::call`] sets it). Those of the
//! loader are made for it in the handler.

use std::arch::naked_asm;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{instructions, raw_calls, system};
use crate::entry::{imports, modules};

/// Of `siginfo_t`: the signal comes from this setting.
const SYS_USER_DISPATCH: c_int = 2;

/// Where libc's code is, and how long it is; 0 while calls are not watched.
static LIBC_START: AtomicU64 = AtomicU64::new(0);
static LIBC_BYTES: AtomicU64 = AtomicU64::new(0);

/// Where libc has the call by which handlers return.
static RESTORER: AtomicU64 = AtomicU64::new(0);

/// The parts of the processor's state that [`enter`] keeps, besides the general registers: all that a call of a
/// function may change.
static KEPT: AtomicU32 = AtomicU32::new(0);
const X87_TO_AVX512: u32 = 0xe7;

/// Begins to watch the calls of this program, if the kernel can do that.
pub fn watch() {
    // Before glibc 2.34, calls that must not be made in a handler come from another library.
    let (Some((start, end)), true) = (imports::code_of_libc(), imports::is_one_libc()) else { return };
    let Some(kept) = kept_by_xsave() else { return };
    KEPT.store(kept, Ordering::Relaxed);
    RESTORER.store(restorer(), Ordering::Relaxed);
    LIBC_START.store(start, Ordering::Relaxed);
    LIBC_BYTES.store(end - start, Ordering::Relaxed);
    watch_copy();
}

/// In a copy of this process: goes on watching.
pub fn watch_copy() {
    const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
    const ON: u64 = 1;
    let (start, bytes) = (LIBC_START.load(Ordering::Relaxed), LIBC_BYTES.load(Ordering::Relaxed));
    if bytes == 0 {
        return;
    }
    let arguments = [PR_SET_SYSCALL_USER_DISPATCH, ON, start, bytes, system::gate(), 0];
    // SAFETY: the kernel reads the byte at the gate, which is a static.
    unsafe { system::call(libc::SYS_prctl, arguments) };
}

/// The parts of `X87_TO_AVX512` that this processor has, if it can save them by their numbers.
fn kept_by_xsave() -> Option<u32> {
    const OSXSAVE: u32 = 1 << 27;
    if instructions::ask_processor(1, 0).ecx & OSXSAVE == 0 {
        return None;
    }
    let enabled: u32;
    // SAFETY: the processor has this instruction, which reads a register of its own.
    unsafe {
        std::arch::asm!("xgetbv", in("ecx") 0, out("eax") enabled, out("edx") _, options(nomem, nostack))
    };
    Some(enabled & X87_TO_AVX512)
}

/// The address that libc gives the kernel for handlers to return to. The runtime has handlers by now.
fn restorer() -> u64 {
    /// The kernel's `struct sigaction`: handler, flags, restorer, mask.
    type Action = [u64; 4];
    let mut action: Action = [0; 4];
    let arguments = [libc::SIGSYS as u64, 0, action.as_mut_ptr() as u64, size_of::<u64>() as u64, 0, 0];
    // SAFETY: the kernel writes to the action alone.
    unsafe { system::call(libc::SYS_rt_sigaction, arguments) };
    action[2]
}

/// A signal has come. If it stands for a system call, sees to that and returns `true`.
///
/// # Safety
/// This is what the kernel tells of a signal.
pub unsafe fn takes(signal: c_int, info: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    if signal != libc::SIGSYS || info.si_code != SYS_USER_DISPATCH {
        return false;
    }
    let registers = &mut context.uc_mcontext.gregs;
    let register = |index: c_int| registers[index as usize] as u64;
    let (number, pc, stack) =
        (register(libc::REG_RAX) as i64, register(libc::REG_RIP), register(libc::REG_RSP));
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9];
    if number == libc::SYS_rt_sigreturn {
        // A handler of the program's has ended. The call is made from libc, on the same stack.
        registers[libc::REG_RIP as usize] = RESTORER.load(Ordering::Relaxed) as i64;
        return true;
    }
    let is_loaders = modules::is_system(pc) && number != libc::SYS_futex;
    if is_loaders || modules::is_ours(pc) {
        // SAFETY: the caller of the system call promises the kernel that its arguments are valid.
        let answer = unsafe { system::call(number, arguments.map(register)) };
        registers[libc::REG_RAX as usize] = answer;
        return true;
    }
    // SAFETY: what is below the stack pointer and the red zone belongs to nobody.
    let below = unsafe {
        let below = ((stack - RED_ZONE) as *mut u64).sub(1);
        below.write(pc);
        below
    };
    registers[libc::REG_RSP as usize] = below as i64;
    registers[libc::REG_RIP as usize] = enter as *const () as i64;
    true
}

/// What a function may use below its stack pointer.
const RED_ZONE: u64 = 128;

/// Where the handler sends a thread instead of its system call. It is a function that changes no register but those
/// that a system call does. Above its return address lies the red zone of the caller.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_def_cfa rsp, 136",
        ".cfi_offset rip, -136",
        "pushfq",
        ".cfi_adjust_cfa_offset 8",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_offset rbp, -152",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "cld",
        "push r9",
        "push r8",
        "push r10",
        "push rdx",
        "push rsi",
        "push rdi",
        "push rax",
        "mov rdi, rsp",
        "mov rsi, [rbp + 16]",
        "sub rsp, 4096",
        "and rsp, -64",
        // The header of what is saved has to be zero.
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "xor edx, edx",
        "mov eax, [rip + {kept}]",
        "xsave64 [rsp]",
        "call {answer}",
        "mov [rbp - 56], rax",
        "xor edx, edx",
        "mov eax, [rip + {kept}]",
        "xrstor64 [rsp]",
        "lea rsp, [rbp - 56]",
        "pop rax",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop r10",
        "pop r8",
        "pop r9",
        "pop rbp",
        ".cfi_def_cfa rsp, 144",
        ".cfi_restore rbp",
        "popfq",
        ".cfi_adjust_cfa_offset -8",
        "ret 128",
        ".cfi_endproc",
        kept = sym KEPT,
        answer = sym answer,
    )
}

/// Makes the program's call: its number and its arguments, and where it returns to.
unsafe extern "C" fn answer(&[number, a, b, c, d, e, f]: &[u64; 7], pc: u64) -> i64 {
    // SAFETY: the program promises the kernel that its arguments are valid.
    system::keeping_errno(|| unsafe { raw_calls::perform(number as i64, [a, b, c, d, e, f], pc) })
}
