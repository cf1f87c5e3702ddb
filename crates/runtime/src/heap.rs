//! The tested program's heap: `malloc` and its kin, and C++'s `new`.
//!
//! Addresses are a function of the requests alone (see [`spans`](crate::spans)). Each allocation is an event
//! with its call stack, which is how heap memory gets its name; blocks of a site that the plan tracks are
//! marked in the shadow as they come.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};

use threadbare_trace::wire::Ending;
use threadbare_trace::{EventKind, Extent};

use crate::carrier::Carrier;
use crate::entry::intercept;
use crate::hash::Hasher;
use crate::layout::{self, HEAP, HEAP_BYTES, HEAP_PAGES};
use crate::log::Entry;
use crate::real::real;
use crate::scheduler::{self, finish};
use crate::spans::{Block, Spans};
use crate::{active, arena, calls, learn, shadow};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

static SPANS: Carrier<Spans> = Carrier::new(Spans::new(HEAP, HEAP_BYTES, HEAP_PAGES));

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
    let [first, second] = calls::innermost(block.stack);
    [block.pc, first, second]
}

fn mark(block: &mut Block) {
    let Some(by_site) = TRACKED.get().as_ref() else { return };
    for &(start, len) in by_site.get(&site_of(block)).into_iter().flatten() {
        if start < block.size {
            shadow::set(block.start + start, len.min(block.size - start), true);
            block.tracked = true;
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
    block.pc = pc;
    block.stack = calls::current();
    let sched = scheduler::get();
    block.thread = sched.current as u16;
    let start = block.start;
    if zero && !fresh {
        // SAFETY: the block has this many bytes.
        unsafe { (start as *mut u8).write_bytes(0, size as usize) };
    }
    if sched.running {
        learn::forget(start, size);
        mark(block);
        Entry::new(EventKind::Allocate, pc, start).size(size).value(size).write();
    }
    start as *mut c_void
}

fn release(address: u64, pc: u64) {
    if arena::contains(address) {
        return arena::free(address);
    }
    let Some(block) = SPANS.get().block_at(address) else {
        // From before the runtime was active, or none of ours.
        // SAFETY: libc knows its own blocks.
        return unsafe { __libc_free(address as *mut c_void) };
    };
    if !block.live || block.start != address {
        finish(Ending::Abort, 0, pc, "free of memory that is not an allocated block");
    }
    if block.tracked {
        shadow::set(block.start, block.size, false);
    }
    Entry::new(EventKind::Free, pc, address).value(block.size).write();
    SPANS.get().release(block);
}

fn resize(address: u64, size: u64, pc: u64) -> *mut c_void {
    let old = if arena::contains(address) {
        arena::size_of_block(address)
    } else {
        match SPANS.get().block_at(address) {
            Some(block) if block.live && block.start == address => block.size,
            Some(_) => finish(Ending::Abort, 0, pc, "realloc of memory that is not an allocated block"),
            // SAFETY: as in `release`.
            None => return unsafe { __libc_realloc(address as *mut c_void, size as usize) },
        }
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
        Some(block) if active() => SPANS.get().usable(block) as usize,
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
