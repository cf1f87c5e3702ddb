//! Functions of libc's that read and write memory for the program: `memcpy` and its like are accesses too.
//!
//! This very library is compiled into calls of these functions too, so they are written with string
//! instructions, and go on to the hooks only when it is the program that calls.

use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use crate::entry::intercept::intercept;
use crate::entry::real::real;
use crate::entry::{log, modules};
use crate::hooks::accesses;
use crate::hooks::accesses::{IGNORE, WATCH};
use crate::schedule::state;

intercept! {
    memcpy/3 => copy;
    memmove/3 => copy;
    memset/3 => set;
    __tsan_memcpy/3 => copy;
    __tsan_memmove/3 => copy;
    __tsan_memset/3 => set;
    munmap/2 => unmap;
    mprotect/3 => protect;
    mremap/5 => remap;
    shmdt/1 => detach;
    dlclose/1 => unload;
}

/// The call comes from the program, and accesses count.
pub fn watched(pc: u64) -> bool {
    WATCH.load(Ordering::Relaxed) != IGNORE && !modules::is_ours(pc)
}

extern "C" fn copy(to: *mut u8, from: *const u8, len: usize, pc: u64) -> *mut u8 {
    if watched(pc) && len > 0 {
        accesses::copies(from as u64, to as u64, len as u64, pc);
    }
    // SAFETY: the program's arguments, to be copied as if through a buffer: small copies are read as a whole
    // before they are written, others go upwards, unless the source lies just below the target.
    unsafe {
        if len <= 16 {
            small_copy(to, from, len);
        } else if (to as usize).wrapping_sub(from as usize) >= len {
            asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        } else {
            asm!("std", "rep movsb", "cld", inout("rcx") len => _,
                inout("rdi") to.wrapping_add(len).wrapping_sub(1) => _,
                inout("rsi") from.wrapping_add(len).wrapping_sub(1) => _, options(nostack));
        }
    }
    to
}

/// Copies up to 16 bytes as two pieces that may overlap.
///
/// # Safety
/// As for `memmove`.
unsafe fn small_copy(to: *mut u8, from: *const u8, len: usize) {
    macro_rules! as_two {
        ($word:ty) => {{
            let last = len - size_of::<$word>();
            // SAFETY: the caller's; both pieces lie within `len` bytes.
            unsafe {
                let (head, tail) =
                    (from.cast::<$word>().read_unaligned(), from.add(last).cast::<$word>().read_unaligned());
                to.cast::<$word>().write_unaligned(head);
                to.add(last).cast::<$word>().write_unaligned(tail);
            }
        }};
    }
    match len {
        8.. => as_two!(u64),
        4..8 => as_two!(u32),
        2..4 => as_two!(u16),
        1 => as_two!(u8),
        0 => {}
    }
}

extern "C" fn set(to: *mut u8, byte: c_int, len: usize, pc: u64) -> *mut u8 {
    if watched(pc) && len > 0 {
        accesses::writes(to as u64, len as u64, pc);
    }
    // SAFETY: the program's arguments.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags));
    }
    to
}

/// Before memory goes away, what was written to it has to be read.
fn look_before_it_goes() {
    log::close_write();
    state::settle();
}

extern "C" fn unmap(address: *mut c_void, len: usize, _: u64) -> c_int {
    if crate::active() {
        look_before_it_goes();
    }
    real!(munmap(address => *mut c_void, len => usize) -> c_int)
}

extern "C" fn protect(address: *mut c_void, len: usize, access: c_int, _: u64) -> c_int {
    if crate::active() {
        look_before_it_goes();
    }
    real!(mprotect(address => *mut c_void, len => usize, access => c_int) -> c_int)
}

extern "C" fn remap(
    old: *mut c_void,
    len: usize,
    new_len: usize,
    flags: c_int,
    new: *mut c_void,
    _: u64,
) -> *mut c_void {
    if crate::active() {
        look_before_it_goes();
    }
    real!(mremap(
        old => *mut c_void, len => usize, new_len => usize, flags => c_int, new => *mut c_void
    ) -> *mut c_void)
}

extern "C" fn detach(address: *const c_void, _: u64) -> c_int {
    if crate::active() {
        look_before_it_goes();
    }
    real!(shmdt(address => *const c_void) -> c_int)
}

extern "C" fn unload(library: *mut c_void, _: u64) -> c_int {
    if crate::active() {
        look_before_it_goes();
    }
    real!(dlclose(library => *mut c_void) -> c_int)
}
