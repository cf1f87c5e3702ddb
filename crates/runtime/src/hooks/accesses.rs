//! Plain memory accesses.
//!
//! These are the hottest functions of the runtime. Most accesses are to memory that no other thread uses. So each hook
//! counts as work, reads the shadow bits of its address and returns. Only if a byte is tracked, or if the run learns,
//! does it go on to [`accessed`]. Before the first thread there are no events, but what is accessed is checked.

use std::sync::atomic::{AtomicU8, Ordering};

use threadbare_trace::EventKind;

use crate::entry::intercept::{ENTRY, export, hook};
use crate::entry::{library_code, log};
use crate::hooks::calls;
use crate::memory::layout::SHADOW;
use crate::memory::{gone, learn, shadow};
use crate::schedule::scheduler::{self, Operation, point};
use crate::schedule::spinning;
use crate::time::work::{self, WORK};

/// What plain accesses do: 0, return at once; 1, look at the shadow; 2, also learn what is shared.
pub static WATCH: AtomicU8 = AtomicU8::new(0);
pub const IGNORE: u8 = 0;
pub const LOOK: u8 = 1;
pub const LEARN: u8 = 2;
/// Added for one access: it is an event because of where it is in the code (see [`watched`](super::watched)).
pub const WATCHED: u8 = 4;

const READ: u32 = 1;
const WRITE: u32 = 2;

/// Exports a hook for an access of `$size` bytes. Four shadow bytes are loaded together: they stand for 32
/// bytes of memory, which covers the largest access wherever it begins.
macro_rules! access {
    ($($name:ident: $size:literal, $access:expr;)+) => { export! { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name(address: u64) {
            std::arch::naked_asm!(
                "inc qword ptr [rip + {work}]",
                "cmp byte ptr [rip + {watch}], {look}",
                "jne 4f",
                "mov rax, rdi",
                "shr rax, 3",
                "movabs rdx, {shadow}",
                "mov eax, dword ptr [rax + rdx]",
                "mov ecx, edi",
                "and ecx, 7",
                "shr eax, cl",
                "test eax, {mask}",
                "jne 5f",
                "2: ret",
                "4: jb 2b",
                "5: mov [rip + {entry}], rsp",
                "mov rsi, [rsp]",
                "mov edx, {size}",
                "mov ecx, {access}",
                "jmp {accessed}",
                work = sym WORK,
                watch = sym WATCH,
                entry = sym ENTRY,
                look = const LOOK,
                shadow = const SHADOW,
                mask = const (1u32 << $size) - 1,
                size = const $size,
                access = const $access,
                accessed = sym accessed,
            )
        }
    )+ } };
}

access! {
    __tsan_read1: 1, READ;
    __tsan_read2: 2, READ;
    __tsan_read4: 4, READ;
    __tsan_read8: 8, READ;
    __tsan_read16: 16, READ;
    __tsan_write1: 1, WRITE;
    __tsan_write2: 2, WRITE;
    __tsan_write4: 4, WRITE;
    __tsan_write8: 8, WRITE;
    __tsan_write16: 16, WRITE;
    __tsan_unaligned_read2: 2, READ;
    __tsan_unaligned_read4: 4, READ;
    __tsan_unaligned_read8: 8, READ;
    __tsan_unaligned_read16: 16, READ;
    __tsan_unaligned_write2: 2, WRITE;
    __tsan_unaligned_write4: 4, WRITE;
    __tsan_unaligned_write8: 8, WRITE;
    __tsan_unaligned_write16: 16, WRITE;
    __tsan_volatile_read1: 1, READ;
    __tsan_volatile_read2: 2, READ;
    __tsan_volatile_read4: 4, READ;
    __tsan_volatile_read8: 8, READ;
    __tsan_volatile_read16: 16, READ;
    __tsan_volatile_write1: 1, WRITE;
    __tsan_volatile_write2: 2, WRITE;
    __tsan_volatile_write4: 4, WRITE;
    __tsan_volatile_write8: 8, WRITE;
    __tsan_volatile_write16: 16, WRITE;
    __tsan_unaligned_volatile_read2: 2, READ;
    __tsan_unaligned_volatile_read4: 4, READ;
    __tsan_unaligned_volatile_read8: 8, READ;
    __tsan_unaligned_volatile_read16: 16, READ;
    __tsan_unaligned_volatile_write2: 2, WRITE;
    __tsan_unaligned_volatile_write4: 4, WRITE;
    __tsan_unaligned_volatile_write8: 8, WRITE;
    __tsan_unaligned_volatile_write16: 16, WRITE;
    __tsan_read_write1: 1, READ | WRITE;
    __tsan_read_write2: 2, READ | WRITE;
    __tsan_read_write4: 4, READ | WRITE;
    __tsan_read_write8: 8, READ | WRITE;
    __tsan_read_write16: 16, READ | WRITE;
    __tsan_unaligned_read_write2: 2, READ | WRITE;
    __tsan_unaligned_read_write4: 4, READ | WRITE;
    __tsan_unaligned_read_write8: 8, READ | WRITE;
    __tsan_unaligned_read_write16: 16, READ | WRITE;
    __tsan_vptr_read: 8, READ;
}

export! {
    /// A virtual-table pointer that is written again with the value it has, as every constructor and destructor
    /// does, is no write.
    #[unsafe(naked)]
    unsafe extern "C" fn __tsan_vptr_update(pointer: *const u64, value: u64) {
        std::arch::naked_asm!("cmp [rdi], rsi", "jne {}", "ret", sym __tsan_write8)
    }
}

hook! {
    __tsan_read_range/2 => read_range;
    __tsan_write_range/2 => write_range;
}

unsafe extern "C" fn read_range(address: u64, len: u64, pc: u64) {
    work::passes_over(len);
    // SAFETY: the compiler calls this before the program's access.
    unsafe { range(address, pc, len, READ) };
}

unsafe extern "C" fn write_range(address: u64, len: u64, pc: u64) {
    work::passes_over(len);
    // SAFETY: the compiler calls this before the program's access.
    unsafe { range(address, pc, len, WRITE) };
}

export! {
    /// The `_pc` forms carry a return address of their own.
    unsafe extern "C" fn __tsan_read_range_pc(address: u64, len: u64, pc: u64) {
        calls::enter_unseen();
        work::passes_over(len);
        // SAFETY: the compiler calls this before the program's access.
        unsafe { range(address, pc, len, READ) };
    }

    unsafe extern "C" fn __tsan_write_range_pc(address: u64, len: u64, pc: u64) {
        calls::enter_unseen();
        work::passes_over(len);
        // SAFETY: the compiler calls this before the program's access.
        unsafe { range(address, pc, len, WRITE) };
    }
}

macro_rules! access_with_pc {
    ($($name:ident: $size:literal, $access:expr;)+) => { export! { $(
        unsafe extern "C" fn $name(address: u64, pc: u64) {
            calls::enter_unseen();
            work::does(1);
            // SAFETY: the compiler calls this before the program's access.
            unsafe { range(address, pc, $size, $access) };
        }
    )+ } };
}

access_with_pc! {
    __tsan_read1_pc: 1, READ;
    __tsan_read2_pc: 2, READ;
    __tsan_read4_pc: 4, READ;
    __tsan_read8_pc: 8, READ;
    __tsan_read16_pc: 16, READ;
    __tsan_write1_pc: 1, WRITE;
    __tsan_write2_pc: 2, WRITE;
    __tsan_write4_pc: 4, WRITE;
    __tsan_write8_pc: 8, WRITE;
    __tsan_write16_pc: 16, WRITE;
}

fn watch() -> u8 {
    WATCH.load(Ordering::Relaxed)
}

/// The access at `pc` is no event: the library makes it for itself, or there is no other thread yet.
fn is_only_checked(pc: u64) -> bool {
    !scheduler::is_running() || library_code::is_quiet(pc)
}

/// # Safety
/// The program does this access next.
unsafe fn range(address: u64, pc: u64, len: u64, access: u32) {
    if watch() == LEARN || watch() == LOOK && shadow::is_tracked(address, len) {
        // SAFETY: the caller's promise.
        unsafe { accessed(address, pc, len, access) };
    }
}

/// A function of libc's copies `len` bytes. The copy happens at once, so there is one schedule point before it. With a
/// second one between read and write, the read would be recorded before it happens.
///
/// # Safety
/// The program makes this copy next.
pub unsafe fn copies(from: u64, to: u64, len: u64, pc: u64) {
    let (reads, writes) = (shadow::is_tracked(from, len), shadow::is_tracked(to, len));
    let learns = watch() == LEARN;
    if !(reads || writes || learns) {
        return;
    }
    if is_only_checked(pc) {
        gone::check_access(from, len, "read", pc);
        return gone::check_access(to, len, "write", pc);
    }
    if !writes {
        spinning::writes(to);
    }
    if learns {
        learn::access(from, len, false);
        learn::access(to, len, true);
    }
    // SAFETY: the caller's promise.
    unsafe {
        if reads {
            point(Operation::access(EventKind::Read, pc, from, len));
            log_read(pc, from, len);
        }
        if writes {
            let write = Operation::access(EventKind::Write, pc, to, len);
            if reads {
                scheduler::go_on(&write);
            } else {
                point(write);
            }
            log_write(pc, to, len);
        }
    }
}

/// A function of libc's that the program called reads `len` bytes.
///
/// # Safety
/// It does so next.
pub unsafe fn reads(address: u64, len: u64, pc: u64) {
    // SAFETY: the caller's promise.
    unsafe { range(address, pc, len, READ) };
}

/// A function of libc's that the program called writes `len` bytes.
///
/// # Safety
/// It does so next.
pub unsafe fn writes(address: u64, len: u64, pc: u64) {
    // SAFETY: the caller's promise.
    unsafe { range(address, pc, len, WRITE) };
}

/// The slow path: the access is tracked, or the run learns.
///
/// # Safety
/// The program does this access next.
unsafe extern "C" fn accessed(address: u64, pc: u64, size: u64, access: u32) {
    let verb = if access & WRITE == 0 { "read" } else { "write" };
    let is_watched = WATCH.fetch_and(!WATCHED, Ordering::Relaxed) & WATCHED != 0;
    if is_only_checked(pc) {
        return gone::check_access(address, size, verb, pc);
    }
    if watch() == LEARN {
        learn::access(address, size, access & WRITE != 0);
    }
    if !is_watched && !shadow::is_tracked(address, size) {
        gone::check_access(address, size, verb, pc);
        match access & WRITE {
            // SAFETY: the caller's promise.
            0 => unsafe { learn::read(pc, address, size) },
            _ => {
                spinning::writes(address);
                learn::moves_on();
            }
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if access & READ != 0 {
            point(Operation::access(EventKind::Read, pc, address, size));
            log_read(pc, address, size);
        }
        if access & WRITE != 0 {
            point(Operation::access(EventKind::Write, pc, address, size));
            log_write(pc, address, size);
        }
    }
}

/// Records a read, and ends the run if the memory is not the program's to read.
///
/// # Safety
/// The program does this read next.
unsafe fn log_read(pc: u64, address: u64, size: u64) {
    // SAFETY: the caller's promise.
    let value = if size > 8 { size } else { unsafe { log::read_memory(address, size) } };
    log::Entry::new(EventKind::Read, pc, address).size(size).value(value).write();
    gone::check_access(address, size, "read", pc);
}

/// Records a write, and ends the run if the memory is not the program's to write.
///
/// # Safety
/// The program does this write next.
unsafe fn log_write(pc: u64, address: u64, size: u64) {
    // SAFETY: the caller's promise.
    unsafe { log::plain_write(pc, address, size) };
    gone::check_access(address, size, "write", pc);
}
