//! The functions that a program calls to take memory away: before it goes, what was written to it has to be read.

use std::ffi::{c_int, c_long, c_void};

use crate::entry::intercept::intercept;
use crate::entry::log;
use crate::schedule::state;

/// Reads what was written to memory, while it is still there.
fn look_before_it_goes() {
    log::close_write();
    state::settle();
}

/// The program makes a system call by its number: does it take memory away?
pub fn before_raw_call(number: c_long, flags_of_mmap: c_int) {
    match number {
        libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_mremap | libc::SYS_shmdt => look_before_it_goes(),
        libc::SYS_mmap => before_mmap(flags_of_mmap),
        _ => {}
    }
}

/// A mapping at a fixed address takes the place of what is there.
fn before_mmap(flags: c_int) {
    if flags & libc::MAP_FIXED != 0 {
        look_before_it_goes();
    }
}

intercept! {
    fn mmap | mmap64(
        address: *mut c_void, len: usize, access: c_int, flags: c_int, file: c_int, offset: libc::off_t
    ) -> *mut c_void, calling map {
        before_mmap(flags);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { map(address, len, access, flags, file, offset) }
    }
}

intercept! {
    fn munmap(address: *mut c_void, len: usize) -> c_int, calling unmap {
        look_before_it_goes();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { unmap(address, len) }
    }

    fn mprotect(address: *mut c_void, len: usize, access: c_int) -> c_int, calling protect {
        look_before_it_goes();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { protect(address, len, access) }
    }

    fn mremap(
        old: *mut c_void, len: usize, new_len: usize, flags: c_int, new: *mut c_void
    ) -> *mut c_void, calling remap {
        look_before_it_goes();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { remap(old, len, new_len, flags, new) }
    }

    fn shmdt(address: *const c_void) -> c_int, calling detach {
        look_before_it_goes();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { detach(address) }
    }

    fn dlclose(library: *mut c_void) -> c_int, calling unload {
        look_before_it_goes();
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { unload(library) }
    }
}
