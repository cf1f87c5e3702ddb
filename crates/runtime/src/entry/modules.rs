//! Which addresses are the program's own code, and which are system libraries.
//!
//! Handlers of signals ask here too, whatever they have interrupted. So the answers are in atomics, and nothing is
//! borrowed or allocated to find them.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// A range of addresses, empty until it is set.
struct Range {
    start: AtomicU64,
    end: AtomicU64,
}

impl Range {
    const fn empty() -> Range {
        Range { start: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    fn set(&self, start: u64, end: u64) {
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.end.load(Ordering::Relaxed) == 0
    }

    #[inline]
    fn contains(&self, address: u64) -> bool {
        (self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)).contains(&address)
    }
}

/// System libraries: libc, libstdc++ and the like. A call site there means nothing to a user. Those that are there come
/// first.
static SYSTEM: [Range; MAX_SYSTEM] = [const { Range::empty() }; MAX_SYSTEM];
const MAX_SYSTEM: usize = 2 * SYSTEM_NAMES.len();
/// libgcc, which takes locks of its own while it unwinds.
static UNWINDER: Range = Range::empty();
/// Where the program is loaded.
static PROGRAM: AtomicU64 = AtomicU64::new(0);
/// This library's own code.
static OURS: Range = Range::empty();

/// How the file names of system libraries begin.
pub const SYSTEM_NAMES: [&str; 14] = [
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
    "libunwind.so",
    "libc++abi.so",
    "librt.so",
    "libdl.so",
];
pub const UNWINDER_NAME: &[u8] = b"libgcc_s.so";

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
        if name.is_empty() && PROGRAM.load(Ordering::Relaxed) == 0 {
            PROGRAM.store(info.dlpi_addr, Ordering::Relaxed);
        }
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let (mut low, mut high) = (u64::MAX, 0);
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
            let start = info.dlpi_addr + header.p_vaddr;
            let end = start + header.p_memsz;
            (low, high) = (low.min(start), high.max(end));
            if (start..end).contains(&(find as *const () as u64)) {
                OURS.set(start, end);
            }
            if base.starts_with(UNWINDER_NAME) && header.p_flags & libc::PF_X != 0 {
                UNWINDER.set(start, end);
            }
        }
        let is_system = SYSTEM_NAMES.iter().any(|system| base.starts_with(system.as_bytes()));
        // The loader puts a library into one piece of address space.
        if is_system && let Some(free) = SYSTEM.iter().find(|range| range.is_empty()) {
            free.set(low, high);
        }
        0
    }
    // SAFETY: the callback has the signature that the loader calls, and keeps nothing of what it is shown.
    unsafe { libc::dl_iterate_phdr(Some(module), std::ptr::null_mut()) };
}

/// The difference between the program's addresses and those it was linked for.
pub fn program_base() -> u64 {
    PROGRAM.load(Ordering::Relaxed)
}

/// The address lies in this library.
pub fn is_ours(pc: u64) -> bool {
    OURS.contains(pc)
}

/// The call is left to libc. Either the runtime is inactive, or the unwinder calls. The unwinder's locks are not
/// scheduled, because the runtime uses the unwinder itself.
pub fn is_left_alone(pc: u64) -> bool {
    !crate::active() || UNWINDER.contains(pc)
}

pub fn is_system(pc: u64) -> bool {
    SYSTEM.iter().take_while(|range| !range.is_empty()).any(|range| range.contains(pc))
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
    // SAFETY: the unwinder walks the running thread's own stack, and `visit` keeps to the types that it is called with.
    unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
    if found == 0 { pc } else { found }
}
