//! `memcpy`, `memmove` and `memset`: they access memory for the program.
//!
//! The compiler makes this library call them too. So they are written with string instructions, and report an access
//! only if the program calls them.

use std::arch::asm;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::entry::intercept::intercept;
use crate::entry::modules;
use crate::hooks::accesses::{self, IGNORE, WATCH};

/// The call comes from the program, and accesses count.
pub fn watched(pc: u64) -> bool {
    WATCH.load(Ordering::Relaxed) != IGNORE && !modules::is_ours(pc)
}

intercept! {
    fn memcpy | memmove | __tsan_memcpy | __tsan_memmove(
        to: *mut u8, from: *const u8, len: usize; pc
    ) -> *mut u8, when (true) {
        if watched(pc) && len > 0 {
            // SAFETY: the copy is made below.
            unsafe { accesses::copies(from as u64, to as u64, len as u64, pc) };
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
}

/// Copies up to 16 bytes as two pieces that may overlap.
///
/// # Safety
/// As for `memmove`.
unsafe fn small_copy(to: *mut u8, from: *const u8, len: usize) {
    macro_rules! as_two {
        ($word:ty) => {{
            let last = len - size_of::<$word>();
            // SAFETY: the caller's promise; both pieces lie within `len` bytes.
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

intercept! {
    fn memset | __tsan_memset(to: *mut u8, byte: c_int, len: usize; pc) -> *mut u8, when (true) {
        if watched(pc) && len > 0 {
            // SAFETY: the bytes are written below.
            unsafe { accesses::writes(to as u64, len as u64, pc) };
        }
        // SAFETY: the program promises libc so many bytes that can be written to.
        unsafe {
            asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8,
                options(nostack, preserves_flags));
        }
        to
    }
}
