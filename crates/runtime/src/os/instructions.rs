//! Instructions whose result is not the same in every run or on every machine: `rdtsc`, `rdtscp` and `cpuid`.
//!
//! The kernel can make each of them a fault (`PR_SET_TSC`, `ARCH_SET_CPUID`, the latter where the processor can do it).
//! The handler does the instruction's work. The time-stamp counter is the virtual clock, with a tick for each
//! nanosecond. `cpuid` tells what the processor has, except for its random numbers (`rdrand`, `rdseed`): nothing makes
//! those a fault, and a program that does not find them asks the kernel instead.
//!
//! A program that is executed would have the counter's fault too, and no handler. So nothing is watched meanwhile.

use std::arch::x86_64::{__cpuid_count, CpuidResult};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::system;
use crate::active;
use crate::entry::intercept::intercept;
use crate::schedule::scheduler;
use crate::time::clock;

const PR_SET_TSC: u64 = 26;
const PR_TSC_ENABLE: u64 = 1;
const PR_TSC_SIGSEGV: u64 = 2;
const ARCH_SET_CPUID: u64 = 0x1012;

/// These instructions are faults.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Makes the instructions faults.
pub fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
    set_counter(PR_TSC_SIGSEGV);
    set_cpuid(false);
}

/// Makes them what they are. The kernel does that itself for `cpuid` in a program that is executed.
pub fn leave_alone() {
    if WATCHED.swap(false, Ordering::Relaxed) {
        set_counter(PR_TSC_ENABLE);
        set_cpuid(true);
    }
}

/// Does `work`, which may execute another program.
pub fn left_alone<R>(work: impl FnOnce() -> R) -> R {
    let watched = WATCHED.load(Ordering::Relaxed);
    leave_alone();
    let result = work();
    if watched {
        watch();
    }
    result
}

fn set_counter(mode: u64) {
    // SAFETY: the setting takes a number, and changes no memory.
    unsafe { system::call(libc::SYS_prctl, [PR_SET_TSC, mode, 0, 0, 0, 0]) };
}

fn set_cpuid(allowed: bool) {
    // SAFETY: the setting takes a number, and changes no memory.
    unsafe { system::call(libc::SYS_arch_prctl, [ARCH_SET_CPUID, u64::from(allowed), 0, 0, 0, 0]) };
}

#[derive(Clone, Copy)]
enum Instruction {
    Rdtsc,
    Rdtscp,
    Cpuid,
}

impl Instruction {
    /// The one at an address, and how many bytes it has.
    ///
    /// # Safety
    /// The processor has read the instruction that is there.
    unsafe fn at(address: u64) -> Option<(Instruction, i64)> {
        let code = address as *const u8;
        // SAFETY: the caller's promise: no more is read than what the bytes before it call for.
        unsafe {
            match (*code == 0x0f).then(|| *code.add(1))? {
                0x31 => Some((Instruction::Rdtsc, 2)),
                0xa2 => Some((Instruction::Cpuid, 2)),
                0x01 if *code.add(2) == 0xf9 => Some((Instruction::Rdtscp, 3)),
                _ => None,
            }
        }
    }
}

/// A signal has come. If it is for one of these instructions, does its work and returns `true`.
///
/// # Safety
/// This is what the kernel tells of a signal.
pub unsafe fn takes(signal: c_int, info: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    /// The fault has no address.
    const SI_KERNEL: c_int = 128;
    if signal != libc::SIGSEGV || info.si_code != SI_KERNEL || !WATCHED.load(Ordering::Relaxed) {
        return false;
    }
    let registers = &mut context.uc_mcontext.gregs;
    // SAFETY: the fault is the instruction's own, which the processor has therefore read.
    let Some((instruction, bytes)) = (unsafe { Instruction::at(registers[libc::REG_RIP as usize] as u64) })
    else {
        return false;
    };
    if !active() {
        // A child process, which is not under test. The instruction is tried again.
        leave_alone();
        return true;
    }
    let mut set = |register: c_int, value: u32| registers[register as usize] = i64::from(value);
    match instruction {
        Instruction::Rdtsc | Instruction::Rdtscp => {
            let ticks = counter();
            set(libc::REG_RAX, ticks as u32);
            set(libc::REG_RDX, (ticks >> 32) as u32);
            if matches!(instruction, Instruction::Rdtscp) {
                // The processor's number.
                set(libc::REG_RCX, 0);
            }
        }
        Instruction::Cpuid => {
            let of = |register: c_int| context.uc_mcontext.gregs[register as usize] as u32;
            let CpuidResult { eax, ebx, ecx, edx } = cpuid(of(libc::REG_RAX), of(libc::REG_RCX));
            let registers = &mut context.uc_mcontext.gregs;
            let values =
                [(libc::REG_RAX, eax), (libc::REG_RBX, ebx), (libc::REG_RCX, ecx), (libc::REG_RDX, edx)];
            for (register, value) in values {
                registers[register as usize] = i64::from(value);
            }
        }
    }
    context.uc_mcontext.gregs[libc::REG_RIP as usize] += bytes;
    true
}

/// The time-stamp counter.
fn counter() -> u64 {
    // Code of the runtime's may be interrupted that has the scheduler; no code of the program's.
    if scheduler::is_lent() { 0 } else { clock::read(0) }
}

/// What the processor tells.
#[allow(unused_unsafe, reason = "the oldest supported compiler asks for it, newer ones do not")]
pub fn ask_processor(leaf: u32, part: u32) -> CpuidResult {
    // SAFETY: every processor with 64 bits has this instruction.
    unsafe { __cpuid_count(leaf, part) }
}

/// What the processor tells, without its random numbers.
fn cpuid(leaf: u32, part: u32) -> CpuidResult {
    const FEATURES: u32 = 1;
    const RDRAND: u32 = 1 << 30;
    const MORE_FEATURES: u32 = 7;
    const RDSEED: u32 = 1 << 18;
    set_cpuid(true);
    let mut told = ask_processor(leaf, part);
    set_cpuid(false);
    match (leaf, part) {
        (FEATURES, _) => told.ecx &= !RDRAND,
        (MORE_FEATURES, 0) => told.ebx &= !RDSEED,
        _ => {}
    }
    told
}

intercept! {
    /// The kernel's own functions, which tell real time: a program that does not find them calls libc's.
    fn getauxval(kind: u64) -> u64, calling ask {
        match kind {
            libc::AT_SYSINFO_EHDR => {
                system::set_errno(libc::ENOENT);
                0
            }
            // SAFETY: it takes any number.
            _ => unsafe { ask(kind) },
        }
    }
}
