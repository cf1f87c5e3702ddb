//! The tested program's heap: `malloc` and its kin, and C++'s `new`.
//!
//! Addresses are a function of the requests alone (see [`spans`](crate::memory::spans)). Each allocation is an event
//! with its call stack, which is how heap memory gets its name; blocks of a site that the plan tracks are
//! marked in the shadow as they come.
//!
//! So is all memory that is not part of a live block: around blocks, and in freed ones, which are kept for a
//! while before they are used again. An access that the shadow sends to the slow path is [checked](check)
//! there, which makes a use after free and an access past the end failures when they happen.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use threadbare_trace::{EventKind, Extent};
use threadbare_wire::{Ending, Origin};

use crate::entry::intercept::intercept;
use crate::entry::log;
use crate::entry::log::Entry;
use crate::entry::real::real;
use crate::hooks::calls;
use crate::memory::layout::{HEAP, HEAP_BYTES, HEAP_PAGES};
use crate::memory::spans::{Block, By, HEADER, Spans};
use crate::memory::{arena, layout, learn, shadow};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;
use crate::schedule::scheduler::finish;
use crate::{active, hash::Hasher};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

static SPANS: Carrier<Spans> = Carrier::new(Spans::new(HEAP, HEAP_BYTES, HEAP_PAGES));

/// Freed blocks that are not used again yet, oldest first, and their bytes.
static QUARANTINE: Carrier<(VecDeque<u64>, u64)> = Carrier::new((VecDeque::new(), 0));
const QUARANTINE_BLOCKS: usize = 4096;
const QUARANTINE_BYTES: u64 = 64 << 20;

/// Extents, as (start, length) in a block, by allocation site.
type BySite = HashMap<[u64; 3], Vec<(u64, u64)>, Hasher>;
static TRACKED: Carrier<Option<BySite>> = Carrier::new(None);

/// While the runtime itself makes libc allocate (for a new context), the memory comes from its own arena.
static OURS: Carrier<bool> = Carrier::new(false);

pub fn prepare() -> bool {
    layout::reserve(HEAP, HEAP_BYTES) && layout::reserve(HEAP_PAGES, Spans::page_table_bytes(HEAP_BYTES))
}

/// Runs `work`, which makes libc allocate memory on the runtime's behalf.
pub fn for_runtime<T>(work: impl FnOnce() -> T) -> T {
    let before = std::mem::replace(OURS.get(), true);
    let result = work();
    *OURS.get() = before;
    result
}

pub fn live_blocks() -> impl Iterator<Item = &'static Block> {
    SPANS.get().live_blocks()
}

/// Marks the heap extents of a plan, in the blocks that are there and in those to come.
pub fn track(extents: &[Extent]) {
    let mut by_site = BySite::default();
    for extent in extents {
        if let Extent::Heap { site, start, len } = extent {
            by_site.entry(*site).or_default().push((*start, *len));
        }
    }
    if by_site.is_empty() {
        return;
    }
    *TRACKED.get() = Some(by_site);
    let live: Vec<u64> = live_blocks().map(|block| block.start).collect();
    for start in live {
        if let Some(block) = SPANS.get().block_at(start) {
            mark(block);
        }
    }
}

fn site_of(block: &Block) -> [u64; 3] {
    calls::users_calls(block.allocated.pc, block.allocated.stack)
}

fn mark(block: &mut Block) {
    let Some(by_site) = TRACKED.get().as_ref() else { return };
    for &(start, len) in by_site.get(&site_of(block)).into_iter().flatten() {
        if start < block.size {
            shadow::set(block.start + start, len.min(block.size - start), true);
        }
    }
}

/// The site of the live block around `address`, and the offset into it.
pub fn block_site(address: u64) -> Option<([u64; 3], u64)> {
    let block = SPANS.get().block_at(address)?;
    let offset = address.checked_sub(block.start)?;
    (block.live && offset < block.size.max(1)).then(|| (site_of(block), offset))
}

/// A block of `size` zeroes (where `zero` asks for them), or null.
fn allocate(size: u64, align: u64, zero: bool, pc: u64) -> *mut c_void {
    if *OURS.get() {
        return arena::allocate(size, align).cast();
    }
    let Some((block, fresh)) = SPANS.get().allocate(size, align) else {
        // SAFETY: errno of the running thread.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return std::ptr::null_mut();
    };
    block.allocated = by(pc);
    fence(block, fresh);
    let start = block.start;
    if zero && !fresh {
        // SAFETY: the block has this many bytes.
        unsafe { (start as *mut u8).write_bytes(0, size as usize) };
    }
    if scheduler::get().running {
        learn::forget(start, size);
        mark(block);
        Entry::new(EventKind::Allocate, pc, start).size(size).value(size).write();
    }
    start as *mut c_void
}

/// The running thread, here.
fn by(pc: u64) -> By {
    By { pc, stack: calls::current(), thread: scheduler::get().current as u32 }
}

/// Marks what is around a new block, and not the block itself.
fn fence(block: &Block, fresh: bool) {
    let extent = SPANS.get().extent(block);
    let end = block.start + block.size;
    shadow::set(extent.start, block.start - extent.start, true);
    if !fresh {
        shadow::set(block.start, block.size, false);
    }
    // The header of the next block too, which may not have been handed out yet.
    shadow::set(end, extent.end + HEADER - end, true);
}

fn release(address: u64, pc: u64) {
    if arena::contains(address) {
        return arena::free(address);
    }
    let spans = SPANS.get();
    if !spans.contains(address) {
        // From before the runtime was active, or none of ours.
        // SAFETY: libc knows its own blocks.
        return unsafe { __libc_free(address as *mut c_void) };
    }
    let block = live_block(address, "freed", pc);
    Entry::new(EventKind::Free, pc, address).value(block.size).write();
    learn::freed(block.start, block.size);
    block.live = false;
    block.freed = by(pc);
    shadow::set(block.start, block.size, true);
    let (queue, bytes) = QUARANTINE.get();
    *bytes += block.size;
    queue.push_back(address);
    while queue.len() > QUARANTINE_BLOCKS || *bytes > QUARANTINE_BYTES {
        let Some(oldest) = queue.pop_front().and_then(|start| spans.block_at(start)) else { break };
        *bytes -= oldest.size;
        spans.release(oldest);
    }
}

/// The live block that begins at `address`; anything else is a failure of the program.
fn live_block(address: u64, verb: &str, pc: u64) -> &'static mut Block {
    match SPANS.get().block_at(address) {
        Some(block) if block.start == address && block.live => block,
        Some(block) if block.start == address => {
            accuse(block);
            let message = format!("a block of {} bytes is {verb} again", block.size);
            finish(Ending::DoubleFree, 0, pc, &message)
        }
        Some(block) if block.live && address > block.start && address < block.start + block.size => {
            accuse(block);
            let (offset, whole) = (address - block.start, block.size);
            let message = format!("what is {verb} lies {offset} bytes into a block of {whole} bytes");
            finish(Ending::InvalidFree, 0, pc, &message)
        }
        _ => finish(Ending::InvalidFree, 0, pc, &format!("what is {verb} is not the start of a block")),
    }
}

/// Leaves word of who allocated and who freed the block.
fn accuse(block: &Block) {
    let write = |origin: &Origin, by: By| {
        origin.pc.store(by.pc, Ordering::Relaxed);
        origin.stack.store(by.stack, Ordering::Relaxed);
        origin.thread.store(by.thread + 1, Ordering::Relaxed);
    };
    write(&log::control().allocated, block.allocated);
    if !block.live {
        write(&log::control().freed, block.freed);
    }
}

/// The program is about to access these bytes: they must lie in a live block, if they lie in the heap at all.
pub fn check(address: u64, size: u64, verb: &str, pc: u64) {
    if !SPANS.get().contains(address) {
        return;
    }
    let Some(block) = SPANS.get().block_at(address) else { return };
    // The header of a block is what follows the block before it, if there is one.
    let header = std::ptr::from_ref(block) as u64;
    let before = SPANS.get().block_at(header - 1).filter(|before| before.start != 0);
    let block = match before {
        Some(before) if address < header + HEADER => before,
        _ => block,
    };
    let end = block.start + block.size;
    if block.live && address >= block.start && address + size <= end {
        return;
    }
    accuse(block);
    let whole = block.size;
    if block.live || address < block.start || address >= end {
        let (distance, side) = match address.checked_sub(end) {
            Some(past) => (past, "after the end"),
            None if address >= block.start => (address + size - end, "too many at the end"),
            None => (block.start - address, "before the start"),
        };
        let message = format!("{verb} of {size} bytes, {distance} bytes {side} of a block of {whole} bytes");
        finish(Ending::HeapOverflow, 0, pc, &message);
    }
    let offset = address - block.start;
    let message = format!("{verb} of {size} bytes, {offset} bytes into a freed block of {whole} bytes");
    finish(Ending::UseAfterFree, 0, pc, &message)
}

fn resize(address: u64, size: u64, pc: u64) -> *mut c_void {
    let old = if arena::contains(address) {
        arena::size_of_block(address)
    } else if SPANS.get().contains(address) {
        live_block(address, "resized", pc).size
    } else {
        // SAFETY: as in `release`.
        return unsafe { __libc_realloc(address as *mut c_void, size as usize) };
    };
    let new = allocate(size, 16, false, pc);
    if !new.is_null() {
        // SAFETY: two live blocks of at least this many bytes.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(address as *const u8, old.min(size) as usize) };
        release(address, pc);
    }
    new
}

intercept! {
    malloc/1 => malloc_;
    calloc/2 => calloc_;
    realloc/2 => realloc_;
    reallocarray/3 => reallocarray_;
    free/1 => free_;
    memalign/2 => memalign_;
    aligned_alloc/2 => memalign_;
    posix_memalign/3 => posix_memalign_;
    valloc/1 => valloc_;
    malloc_usable_size/1 => usable_size;
    _Znwm/1 => new_;
    _Znam/1 => new_;
    _ZnwmRKSt9nothrow_t/2 => new_nothrow;
    _ZnamRKSt9nothrow_t/2 => new_nothrow;
    _ZnwmSt11align_val_t/2 => new_aligned;
    _ZnamSt11align_val_t/2 => new_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t/3 => new_aligned_nothrow;
    _ZnamSt11align_val_tRKSt9nothrow_t/3 => new_aligned_nothrow;
    _ZdlPv/1 => free_;
    _ZdaPv/1 => free_;
    _ZdlPvm/2 => delete_2;
    _ZdaPvm/2 => delete_2;
    _ZdlPvRKSt9nothrow_t/2 => delete_2;
    _ZdaPvRKSt9nothrow_t/2 => delete_2;
    _ZdlPvSt11align_val_t/2 => delete_2;
    _ZdaPvSt11align_val_t/2 => delete_2;
    _ZdlPvmSt11align_val_t/3 => delete_3;
    _ZdaPvmSt11align_val_t/3 => delete_3;
}

extern "C" fn malloc_(size: usize, pc: u64) -> *mut c_void {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_malloc(size) };
    }
    allocate(size as u64, 16, false, pc)
}

extern "C" fn calloc_(count: usize, size: usize, pc: u64) -> *mut c_void {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_calloc(count, size) };
    }
    match count.checked_mul(size) {
        Some(bytes) => allocate(bytes as u64, 16, true, pc),
        None => std::ptr::null_mut(),
    }
}

extern "C" fn realloc_(block: *mut c_void, size: usize, pc: u64) -> *mut c_void {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_realloc(block, size) };
    }
    match (block.is_null(), size) {
        (true, _) => allocate(size as u64, 16, false, pc),
        (false, 0) => {
            release(block as u64, pc);
            std::ptr::null_mut()
        }
        (false, _) => resize(block as u64, size as u64, pc),
    }
}

extern "C" fn reallocarray_(block: *mut c_void, count: usize, size: usize, pc: u64) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => realloc_(block, bytes, pc),
        None => std::ptr::null_mut(),
    }
}

extern "C" fn free_(block: *mut c_void, pc: u64) {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_free(block) };
    }
    if !block.is_null() {
        release(block as u64, pc);
    }
}

extern "C" fn memalign_(align: usize, size: usize, pc: u64) -> *mut c_void {
    if !active() {
        // SAFETY: libc's own.
        return unsafe { __libc_memalign(align, size) };
    }
    allocate(size as u64, align.next_power_of_two() as u64, false, pc)
}

extern "C" fn posix_memalign_(result: *mut *mut c_void, align: usize, size: usize, pc: u64) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let block = memalign_(align, size, pc);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the program's place for the result.
    unsafe { result.write(block) };
    0
}

extern "C" fn valloc_(size: usize, pc: u64) -> *mut c_void {
    memalign_(4096, size, pc)
}

extern "C" fn usable_size(block: *mut c_void, _: u64) -> usize {
    match SPANS.get().block_at(block as u64) {
        // No more than was asked for: what is beyond is fenced off.
        Some(block) if active() => block.size as usize,
        _ => real!(malloc_usable_size(block => *mut c_void) -> usize),
    }
}

extern "C" fn new_(size: usize, pc: u64) -> *mut c_void {
    let block = malloc_(size.max(1), pc);
    // Out of memory: libstdc++ knows how to say so.
    if block.is_null() { real!(_Znwm(size => usize) -> *mut c_void) } else { block }
}

extern "C" fn new_nothrow(size: usize, _: *const c_void, pc: u64) -> *mut c_void {
    malloc_(size.max(1), pc)
}

extern "C" fn new_aligned(size: usize, align: usize, pc: u64) -> *mut c_void {
    let block = memalign_(align, size.max(1), pc);
    if block.is_null() {
        real!(_ZnwmSt11align_val_t(size => usize, align => usize) -> *mut c_void)
    } else {
        block
    }
}

extern "C" fn new_aligned_nothrow(size: usize, align: usize, _: *const c_void, pc: u64) -> *mut c_void {
    memalign_(align, size.max(1), pc)
}

extern "C" fn delete_2(block: *mut c_void, _: usize, pc: u64) {
    free_(block, pc);
}

extern "C" fn delete_3(block: *mut c_void, _: usize, _: usize, pc: u64) {
    free_(block, pc);
}
