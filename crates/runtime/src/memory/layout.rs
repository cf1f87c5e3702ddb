//! Where the runtime keeps its own memory inside the tested process.
//!
//! Everything has a fixed address, far from where Linux puts programs (0x55…), libraries and stacks (0x7f…). So
//! addresses do not depend on what was mapped before, and an address tells what it belongs to. A reservation costs
//! nothing: the kernel makes a page when it is first used.

use std::ffi::c_int;

use crate::os::system;

/// One bit for each byte of the lower half of the address space: is it tracked?
pub const SHADOW: u64 = 0x1000_0000_0000;
pub const SHADOW_BYTES: u64 = 1 << 44;
/// The runtime's own data.
pub const ARENA: u64 = 0x2000_0000_0000;
pub const ARENA_BYTES: u64 = 1 << 36;
/// The tested program's heap.
pub const HEAP: u64 = 0x2100_0000_0000;
pub const HEAP_BYTES: u64 = 1 << 40;
/// Which span a page of the arena or the heap belongs to.
pub const ARENA_PAGES: u64 = 0x2400_0000_0000;
pub const HEAP_PAGES: u64 = 0x2480_0000_0000;
/// The file shared with the tool.
pub const WIRE: u64 = 0x2600_0000_0000;
/// Stacks of borrowed contexts, one slot each.
pub const STACKS: u64 = 0x2800_0000_0000;
pub const STACK_SLOT: u64 = 128 << 20;
/// Shadow call stacks, one slot a thread. The end of a slot is never mapped (see `calls`).
pub const CALLS: u64 = 0x3000_0000_0000;
pub const CALLS_SLOT: u64 = 192 << 20;

/// Maps `bytes` of zeroes at exactly `address`. `false` when the kernel refuses.
pub fn reserve(address: u64, bytes: u64) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(address, bytes, flags, -1)
}

/// Maps `bytes` at exactly `address`, for code that is written there. `false` when the kernel refuses.
pub fn reserve_code(address: u64, bytes: u64) -> bool {
    let access = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
    reserve(address, bytes) && {
        // SAFETY: the mapping is new, and nobody knows of it.
        unsafe { system::call(libc::SYS_mprotect, [address, bytes, access, 0, 0, 0]) == 0 }
    }
}

/// Maps a file, or zeroes, at exactly `address`, to be read and written. `false` when the kernel refuses.
pub fn map(address: u64, bytes: u64, flags: c_int, file: c_int) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = flags & !libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping that is there, and MAP_FIXED is taken out.
    let got = unsafe {
        system::call(libc::SYS_mmap, [address, bytes, access as u64, flags as u64, file as u64, 0])
    };
    if got > 0 && got as u64 != address {
        // SAFETY: an old kernel has put the mapping elsewhere, and nobody knows of it.
        unsafe { system::call(libc::SYS_munmap, [got as u64, bytes, 0, 0, 0, 0]) };
    }
    got as u64 == address
}
