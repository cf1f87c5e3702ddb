//! The functions that a program calls for memory: `malloc` and its kin, and C++'s `new`.

use std::ffi::{c_int, c_void};

use super::heap;
use crate::entry::intercept::intercept;
use crate::entry::real::real;

/// What `malloc` aligns to.
const ALIGN: u64 = 16;

/// libc's own, while the runtime is inactive.
macro_rules! of_libc {
    ($($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)+) => { $(
        unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller promises libc what a program does.
            unsafe { real!($name($($arg => $ty),*) $(-> $ret)?) }
        }
    )+ };
}

of_libc! {
    __libc_malloc(size: usize) -> *mut c_void;
    __libc_calloc(count: usize, size: usize) -> *mut c_void;
    __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    __libc_free(block: *mut c_void);
    __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

fn allocate(size: usize, pc: u64) -> *mut c_void {
    heap::allocate(size as u64, ALIGN, false, pc)
}

fn allocate_aligned(align: usize, size: usize, pc: u64) -> *mut c_void {
    heap::allocate(size as u64, align.next_power_of_two() as u64, false, pc)
}

/// # Safety
/// `block` is null, or a block that the program does not use any more once it is resized.
unsafe fn reallocate(block: *mut c_void, size: usize, pc: u64) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        match (block.is_null(), size) {
            (true, _) => allocate(size, pc),
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
    if !block.is_null() {
        // SAFETY: the caller's promise.
        unsafe { heap::release(block as u64, pc) };
    }
}

/// `posix_memalign`, where `allocate` gives an aligned block.
///
/// # Safety
/// `result` can be written to.
unsafe fn store_aligned(
    result: *mut *mut c_void,
    align: usize,
    allocate: impl FnOnce() -> *mut c_void,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let block = allocate();
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { result.write(block) };
    0
}

intercept! {
    fn malloc(size: usize; pc) -> *mut c_void, otherwise (__libc_malloc(size)) {
        allocate(size, pc)
    }

    fn calloc(count: usize, size: usize; pc) -> *mut c_void, otherwise (__libc_calloc(count, size)) {
        match count.checked_mul(size) {
            Some(bytes) => heap::allocate(bytes as u64, ALIGN, true, pc),
            None => std::ptr::null_mut(),
        }
    }

    fn realloc(block: *mut c_void, size: usize; pc) -> *mut c_void, otherwise (__libc_realloc(block, size)) {
        // SAFETY: the program gives its block up to this call.
        unsafe { reallocate(block, size, pc) }
    }

    fn reallocarray(
        block: *mut c_void, count: usize, size: usize; pc
    ) -> *mut c_void, otherwise (match count.checked_mul(size) {
        Some(bytes) => __libc_realloc(block, bytes),
        None => std::ptr::null_mut(),
    }) {
        match count.checked_mul(size) {
            // SAFETY: the program gives its block up to this call.
            Some(bytes) => unsafe { reallocate(block, bytes, pc) },
            None => std::ptr::null_mut(),
        }
    }

    fn memalign | aligned_alloc(
        align: usize, size: usize; pc
    ) -> *mut c_void, otherwise (__libc_memalign(align, size)) {
        allocate_aligned(align, size, pc)
    }

    fn posix_memalign(
        result: *mut *mut c_void, align: usize, size: usize; pc
    ) -> c_int, otherwise (store_aligned(result, align, || __libc_memalign(align, size))) {
        // SAFETY: the program promises libc a place for the result.
        unsafe { store_aligned(result, align, || allocate_aligned(align, size, pc)) }
    }

    fn valloc(size: usize; pc) -> *mut c_void, otherwise (__libc_memalign(4096, size)) {
        allocate_aligned(4096, size, pc)
    }

    /// No more than was asked for: what is beyond is fenced off.
    fn malloc_usable_size(block: *mut c_void) -> usize, calling ask {
        // SAFETY: the program promises libc a block of its own.
        heap::size_of_block(block as u64).map_or_else(|| unsafe { ask(block) }, |size| size as usize)
    }

    fn free | _ZdlPv | _ZdaPv(block: *mut c_void; pc), otherwise (__libc_free(block)) {
        // SAFETY: the program gives its block up to this call.
        unsafe { free(block, pc) };
    }
}

/// C++'s `new` never returns null. If there is no `block`, libstdc++ knows how to say so.
fn or_out_of_memory(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: `new` takes any size.
        unsafe { real!(_Znwm(size => usize) -> *mut c_void) }
    } else {
        block
    }
}

/// The same for an alignment.
fn or_out_of_aligned_memory(block: *mut c_void, size: usize, align: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the alignment is that of a type, which is a power of two.
        unsafe { real!(_ZnwmSt11align_val_t(size => usize, align => usize) -> *mut c_void) }
    } else {
        block
    }
}

intercept! {
    fn _Znwm | _Znam(
        size: usize; pc
    ) -> *mut c_void, otherwise (or_out_of_memory(__libc_malloc(size.max(1)), size)) {
        or_out_of_memory(allocate(size.max(1), pc), size)
    }

    fn _ZnwmRKSt9nothrow_t | _ZnamRKSt9nothrow_t(
        size: usize, _nothrow: *const c_void; pc
    ) -> *mut c_void, otherwise (__libc_malloc(size.max(1))) {
        allocate(size.max(1), pc)
    }

    fn _ZnwmSt11align_val_t | _ZnamSt11align_val_t(
        size: usize, align: usize; pc
    ) -> *mut c_void, otherwise (or_out_of_aligned_memory(__libc_memalign(align, size.max(1)), size, align)) {
        or_out_of_aligned_memory(allocate_aligned(align, size.max(1), pc), size, align)
    }

    fn _ZnwmSt11align_val_tRKSt9nothrow_t | _ZnamSt11align_val_tRKSt9nothrow_t(
        size: usize, align: usize, _nothrow: *const c_void; pc
    ) -> *mut c_void, otherwise (__libc_memalign(align, size.max(1))) {
        allocate_aligned(align, size.max(1), pc)
    }

    fn _ZdlPvm | _ZdaPvm | _ZdlPvRKSt9nothrow_t | _ZdaPvRKSt9nothrow_t | _ZdlPvSt11align_val_t
        | _ZdaPvSt11align_val_t(block: *mut c_void, _second: usize; pc), otherwise (__libc_free(block)) {
        // SAFETY: the program gives its block up to this call.
        unsafe { free(block, pc) };
    }

    fn _ZdlPvmSt11align_val_t | _ZdaPvmSt11align_val_t(
        block: *mut c_void, _second: usize, _third: usize; pc
    ), otherwise (__libc_free(block)) {
        // SAFETY: the program gives its block up to this call.
        unsafe { free(block, pc) };
    }
}
