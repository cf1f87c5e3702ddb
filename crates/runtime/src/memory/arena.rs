//! The runtime's own heap, apart from the tested program's: what the runtime remembers must not move what the
//! program allocates.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::memory::layout;
use crate::memory::layout::{ARENA, ARENA_BYTES, ARENA_PAGES};
use crate::memory::spans::Spans;
use crate::schedule::carrier::Carrier;

static SPANS: Carrier<Spans> = Carrier::new(Spans::new(ARENA, ARENA_BYTES, ARENA_PAGES));
static READY: AtomicBool = AtomicBool::new(false);

/// Reserves the memory; allocation fails before.
pub fn prepare() -> bool {
    let ready = layout::reserve(ARENA, ARENA_BYTES)
        && layout::reserve(ARENA_PAGES, Spans::page_table_bytes(ARENA_BYTES));
    READY.store(ready, Ordering::Relaxed);
    ready
}

pub fn contains(address: u64) -> bool {
    SPANS.get().contains(address)
}

pub fn allocate(size: u64, align: u64) -> *mut u8 {
    if !READY.load(Ordering::Relaxed) {
        return std::ptr::null_mut();
    }
    match SPANS.get().allocate(size, align) {
        Some((block, fresh)) => {
            let start = block.start as *mut u8;
            if !fresh {
                // SAFETY: the block has `size` bytes and nobody else's.
                unsafe { start.write_bytes(0, size as usize) };
            }
            start
        }
        None => std::ptr::null_mut(),
    }
}

/// Frees what [`allocate`] gave.
pub fn free(address: u64) {
    if let Some(block) = SPANS.get().block_at(address) {
        SPANS.get().release(block);
    }
}

/// Bytes that [`allocate`] was asked for.
pub fn size_of_block(address: u64) -> u64 {
    SPANS.get().block_at(address).map_or(0, |block| block.size)
}

struct Arena;

// SAFETY: `Spans` hands out disjoint blocks of the wanted size and alignment. The runtime allocates only while
// active, on the carrier.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout.size() as u64, layout.align() as u64)
    }

    unsafe fn dealloc(&self, start: *mut u8, _: Layout) {
        free(start as u64);
    }
}

#[global_allocator]
static GLOBAL: Arena = Arena;
