//! Which bytes of memory the plan tracks: one bit each, at a place computed from the address.

use crate::memory::layout::{self, SHADOW, SHADOW_BYTES};

pub fn prepare() -> bool {
    layout::reserve(SHADOW, SHADOW_BYTES)
}

/// Whether any of the `len` bytes at `address` is tracked.
pub fn is_tracked(address: u64, len: u64) -> bool {
    if len == 0 || address >= SHADOW_BYTES << 3 || len > (SHADOW_BYTES << 3) - address {
        return false;
    }
    let (first, last) = (address >> 3, (address + len - 1) >> 3);
    // SAFETY: one shadow byte for eight bytes of the lower half of the address space, which `prepare` has mapped.
    let byte = |index: u64| unsafe { ((SHADOW + index) as *const u8).read() };
    let head = 0xffu8 << (address & 7);
    let tail = 0xffu8 >> (7 - ((address + len - 1) & 7));
    if first == last {
        return byte(first) & head & tail != 0;
    }
    byte(first) & head != 0 || byte(last) & tail != 0 || (first + 1..last).any(|index| byte(index) != 0)
}

/// Tracks `len` bytes at `address`, or no longer.
pub fn set(address: u64, len: u64, tracked: bool) {
    let end = address.saturating_add(len).min(SHADOW_BYTES << 3);
    if address >= end {
        return;
    }
    let whole = address.next_multiple_of(8)..end & !7;
    let bit = |at: u64| {
        let byte = (SHADOW + (at >> 3)) as *mut u8;
        let bit = 1 << (at & 7);
        // SAFETY: below `end`, so in the shadow, which `prepare` has mapped. Only the carrier writes there.
        unsafe { byte.write(if tracked { byte.read() | bit } else { byte.read() & !bit }) };
    };
    if whole.is_empty() {
        return (address..end).for_each(bit);
    }
    (address..whole.start).for_each(bit);
    // SAFETY: the shadow bytes that stand for these and no other bytes, all below `end`.
    unsafe {
        let first = (SHADOW + (whole.start >> 3)) as *mut u8;
        first.write_bytes(if tracked { 0xff } else { 0 }, ((whole.end - whole.start) >> 3) as usize);
    }
    (whole.end..end).for_each(bit);
}
