//! The runtime's own heap.
//!
//! It is apart from the program's heap, because the addresses of the program's blocks must not depend on what the
//! runtime allocates.

#[cfg(not(test))]
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::memory::layout::{self, ARENA, ARENA_BYTES, ARENA_PAGES};
use crate::memory::spans::{Block, Spans};
use crate::schedule::carrier::Carrier;

// SAFETY: `layout` gives both regions to the arena, and `prepare` maps them before anything is allocated.
static SPANS: Carrier<Spans> = Carrier::new(unsafe { Spans::new(ARENA, ARENA_BYTES, ARENA_PAGES) });
static READY: AtomicBool = AtomicBool::new(false);

/// Reserves the memory; allocation fails before.
pub fn prepare() -> bool {
    let ready = layout::reserve(ARENA, ARENA_BYTES)
        && layout::reserve(ARENA_PAGES, Spans::page_table_bytes(ARENA_BYTES));
    READY.store(ready, Ordering::Relaxed);
    ready
}

pub fn contains(address: u64) -> bool {
    SPANS.with(|spans| spans.contains(address))
}

pub fn allocate(size: u64, align: u64) -> *mut u8 {
    if !READY.load(Ordering::Relaxed) {
        return std::ptr::null_mut();
    }
    match SPANS.with(|spans| spans.allocate(size, align)) {
        Some((block, fresh)) => {
            let start = block.start() as *mut u8;
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
///
/// # Safety
/// Nobody uses it any more, and it was not freed before.
pub unsafe fn free(address: u64) {
    SPANS.with(|spans| {
        if let Some(block) = spans.block_at(address) {
            // SAFETY: the caller's promise.
            unsafe { spans.release(block) };
        }
    });
}

/// Bytes that [`allocate`] was asked for.
pub fn size_of_block(address: u64) -> u64 {
    SPANS.with(|spans| spans.block_at(address)).map_or(0, Block::size)
}

#[cfg(not(test))]
struct Arena;

// SAFETY: `Spans` hands out disjoint blocks of the wanted size and alignment. The runtime allocates only while
// active, on the carrier.
#[cfg(not(test))]
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout.size() as u64, layout.align() as u64)
    }

    unsafe fn dealloc(&self, start: *mut u8, _: Layout) {
        // SAFETY: Rust frees what it was given, and once.
        unsafe { free(start as u64) };
    }
}

#[cfg(not(test))]
#[global_allocator]
static GLOBAL: Arena = Arena;
