//! Which addresses are the program's own code, and which are system libraries.

use std::ffi::{CStr, c_int, c_void};

use crate::schedule::carrier::Carrier;

/// Address ranges of system libraries: libc, libstdc++ and the like. A call site there means nothing to a user.
static SYSTEM: Carrier<Vec<(u64, u64)>> = Carrier::new(Vec::new());
/// libgcc, which takes locks of its own while it unwinds.
static UNWINDER: Carrier<(u64, u64)> = Carrier::new((0, 0));
/// Where the program is loaded.
static PROGRAM: Carrier<u64> = Carrier::new(0);
/// This library's own code.
static OURS: Carrier<(u64, u64)> = Carrier::new((0, 0));

const SYSTEM_NAMES: [&str; 10] = [
    "libc.so",
    "libstdc++.so",
    "libc++.so",
    "libgcc_s.so",
    "libm.so",
    "libpthread.so",
    "ld-linux",
    "libtsan",
    "libatomic.so",
    "libgomp.so",
];

/// Looks at what is loaded.
pub fn find() {
    unsafe extern "C" fn module(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description.
        let (info, headers, name) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
            (info, headers, CStr::from_ptr(info.dlpi_name).to_bytes())
        };
        // The program itself comes first, without a name.
        if name.is_empty() && PROGRAM.get() == 0 {
            PROGRAM.set(info.dlpi_addr);
        }
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
            let start = info.dlpi_addr + header.p_vaddr;
            let range = (start, start + header.p_memsz);
            if (range.0..range.1).contains(&(find as *const () as u64)) {
                OURS.set(range);
            }
            if base.starts_with(b"libgcc_s.so") && header.p_flags & libc::PF_X != 0 {
                UNWINDER.set(range);
            }
            if SYSTEM_NAMES.iter().any(|system| base.starts_with(system.as_bytes())) {
                SYSTEM.with(|system| system.push(range));
            }
        }
        0
    }
    SYSTEM.with(Vec::clear);
    // SAFETY: the callback has the wanted signature.
    unsafe { libc::dl_iterate_phdr(Some(module), std::ptr::null_mut()) };
}

/// The difference between the program's addresses and those it was linked for.
pub fn program_base() -> u64 {
    PROGRAM.get()
}

/// The address lies in this library.
pub fn is_ours(pc: u64) -> bool {
    let (start, end) = OURS.get();
    (start..end).contains(&pc)
}

/// The call is left to libc. Either the runtime is inactive, or the unwinder calls. The unwinder's locks are not
/// scheduled, because the runtime uses the unwinder itself.
pub fn is_left_alone(pc: u64) -> bool {
    let is_unwinder = || {
        let (start, end) = UNWINDER.get();
        (start..end).contains(&pc)
    };
    !crate::active() || is_unwinder()
}

pub fn is_system(pc: u64) -> bool {
    SYSTEM.with(|system| system.iter().any(|&(start, end)| (start..end).contains(&pc)))
}

#[repr(C)]
pub struct UnwindContext {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    pub fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
    pub fn _Unwind_GetCFA(context: *mut UnwindContext) -> usize;
}

/// The return address of the innermost call in the program's own code. That is `pc` itself, unless it lies in a system
/// library, such as in `std::thread`'s constructor. Only then is the stack unwound.
pub fn users_call(pc: u64) -> u64 {
    if !is_system(pc) {
        return pc;
    }
    extern "C" fn visit(context: *mut UnwindContext, found: *mut c_void) -> c_int {
        // SAFETY: the unwinder's context, and the pointer passed below.
        unsafe {
            let pc = _Unwind_GetIP(context) as u64;
            if pc == 0 || is_system(pc) || is_ours(pc) {
                return 0;
            }
            *found.cast::<u64>() = pc;
        }
        // Stops the walk.
        4
    }
    let mut found = 0u64;
    // SAFETY: walks the running thread's own stack.
    unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
    if found == 0 { pc } else { found }
}
