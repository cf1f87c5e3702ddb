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

#[cfg(test)]
mod tests {
    use std::sync::Once;

    use super::*;

    /// An address for a test's own use. It is never accessed, so nothing need be there.
    fn address(test: u64) -> u64 {
        static MAPPED: Once = Once::new();
        MAPPED.call_once(|| assert!(prepare(), "the address space is there"));
        0x7000_0000_0000 + (test << 12)
    }

    /// Every range against every query, around the borders of shadow bytes: a wrong mask loses events or invents them.
    #[test]
    fn ranges_are_exact_to_the_byte() {
        let base = address(0);
        for (start, len) in (0..9).flat_map(|start| (0..26).map(move |len| (start, len))) {
            set(base + start, len, true);
            for (from, count) in (0..40).flat_map(|from| (0..10).map(move |count| (from, count))) {
                let meets = count > 0 && len > 0 && from < start + len && start < from + count;
                assert_eq!(is_tracked(base + from, count), meets, "{start}+{len}, asked for {from}+{count}");
            }
            set(base, 64, false);
        }
    }

    /// To stop tracking some bytes leaves those beside them tracked.
    #[test]
    fn a_hole_is_a_hole() {
        let base = address(1);
        set(base, 64, true);
        set(base + 5, 14, false);
        let tracked: Vec<u64> = (0..64).filter(|&byte| is_tracked(base + byte, 1)).collect();
        assert_eq!(tracked, (0..5).chain(19..64).collect::<Vec<_>>());
    }

    /// A program may pass any address to a hook.
    #[test]
    fn there_is_no_shadow_of_the_kernels_half() {
        address(2);
        set(u64::MAX - 3, 8, true);
        assert!(!is_tracked(u64::MAX - 3, 8) && !is_tracked(u64::MAX, u64::MAX));
        assert!(!is_tracked((SHADOW_BYTES << 3) - 1, u64::MAX));
    }
}
