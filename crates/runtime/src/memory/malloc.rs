//! The functions that a program calls for memory: `malloc` and its kin, and C++'s `new`.

use std::ffi::{c_int, c_void};

use super::heap;
use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::real::real;

/// What `malloc` aligns to.
const ALIGN: u64 = 16;

// Libc's own, while the runtime is inactive. They cannot be looked up: to look up a function may allocate memory.
unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

fn allocate(size: usize, pc: u64) -> *mut c_void {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_malloc(size) };
    }
    heap::allocate(size as u64, ALIGN, false, pc)
}

fn allocate_aligned(align: usize, size: usize, pc: u64) -> *mut c_void {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_memalign(align, size) };
    }
    heap::allocate(size as u64, align.next_power_of_two() as u64, false, pc)
}

/// # Safety
/// `block` is null, or a block that the program does not use any more once it is resized.
unsafe fn reallocate(block: *mut c_void, size: usize, pc: u64) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        match (block.is_null(), size) {
            _ if !active() => __libc_realloc(block, size),
            (true, _) => heap::allocate(size as u64, ALIGN, false, pc),
            (false, 0) => {
                heap::release(block as u64, pc);
                std::ptr::null_mut()
            }
            (false, _) => heap::resize(block as u64, size as u64, pc),
        }
    }
}

/// # Safety
/// `block` is null, or a block that the program does not use any more.
unsafe fn free(block: *mut c_void, pc: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        if !active() {
            __libc_free(block);
        } else if !block.is_null() {
            heap::release(block as u64, pc);
        }
    }
}

intercept! {
    fn malloc(size: usize; pc) -> *mut c_void, when (true) {
        allocate(size, pc)
    }

    fn calloc(count: usize, size: usize; pc) -> *mut c_void, when (true) {
        if !active() {
            // SAFETY: libc's own.
            return unsafe { __libc_calloc(count, size) };
        }
        match count.checked_mul(size) {
            Some(bytes) => heap::allocate(bytes as u64, ALIGN, true, pc),
            None => std::ptr::null_mut(),
        }
    }

    fn realloc(block: *mut c_void, size: usize; pc) -> *mut c_void, when (true) {
        // SAFETY: the program's block.
        unsafe { reallocate(block, size, pc) }
    }

    fn reallocarray(block: *mut c_void, count: usize, size: usize; pc) -> *mut c_void, when (true) {
        match count.checked_mul(size) {
            // SAFETY: the program's block.
            Some(bytes) => unsafe { reallocate(block, bytes, pc) },
            None => std::ptr::null_mut(),
        }
    }

    fn memalign | aligned_alloc(align: usize, size: usize; pc) -> *mut c_void, when (true) {
        allocate_aligned(align, size, pc)
    }

    fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize; pc) -> c_int, when (true) {
        if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
            return libc::EINVAL;
        }
        let block = allocate_aligned(align, size, pc);
        if block.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the program's place for the result.
        unsafe { result.write(block) };
        0
    }

    fn valloc(size: usize; pc) -> *mut c_void, when (true) {
        allocate_aligned(4096, size, pc)
    }

    /// No more than was asked for: what is beyond is fenced off.
    fn malloc_usable_size(block: *mut c_void) -> usize, calling ask {
        heap::size_of_block(block as u64).map_or_else(|| ask(block), |size| size as usize)
    }

    fn free | _ZdlPv | _ZdaPv(block: *mut c_void; pc), when (true) {
        // SAFETY: the program's block.
        unsafe { free(block, pc) };
    }
}

intercept! {
    fn _Znwm | _Znam(size: usize; pc) -> *mut c_void, when (true) {
        let block = allocate(size.max(1), pc);
        // Out of memory: libstdc++ knows how to say so.
        if block.is_null() { real!(_Znwm(size => usize) -> *mut c_void) } else { block }
    }

    fn _ZnwmRKSt9nothrow_t | _ZnamRKSt9nothrow_t(
        size: usize, nothrow: *const c_void; pc
    ) -> *mut c_void, when (true) {
        allocate(size.max(1), pc)
    }

    fn _ZnwmSt11align_val_t | _ZnamSt11align_val_t(size: usize, align: usize; pc) -> *mut c_void, when (true) {
        let block = allocate_aligned(align, size.max(1), pc);
        if block.is_null() {
            real!(_ZnwmSt11align_val_t(size => usize, align => usize) -> *mut c_void)
        } else {
            block
        }
    }

    fn _ZnwmSt11align_val_tRKSt9nothrow_t | _ZnamSt11align_val_tRKSt9nothrow_t(
        size: usize, align: usize, nothrow: *const c_void; pc
    ) -> *mut c_void, when (true) {
        allocate_aligned(align, size.max(1), pc)
    }

    fn _ZdlPvm | _ZdaPvm | _ZdlPvRKSt9nothrow_t | _ZdaPvRKSt9nothrow_t | _ZdlPvSt11align_val_t
        | _ZdaPvSt11align_val_t(block: *mut c_void, second: usize; pc), when (true) {
        // SAFETY: the program's block.
        unsafe { free(block, pc) };
    }

    fn _ZdlPvmSt11align_val_t | _ZdaPvmSt11align_val_t(
        block: *mut c_void, second: usize, third: usize; pc
    ), when (true) {
        // SAFETY: the program's block.
        unsafe { free(block, pc) };
    }
}
