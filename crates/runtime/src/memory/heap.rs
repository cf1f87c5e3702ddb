//! The tested program's heap.
//!
//! Addresses follow from the requests alone (see [`spans`](crate::memory::spans)). Each allocation is an event with its
//! call stack, from which heap memory gets its name. If the plan tracks the call site of an allocation, the block is
//! marked in the shadow.
//!
//! Memory around live blocks and in freed blocks is marked too. Freed blocks are kept for a while before they are used
//! again. An access to marked memory takes the slow path, where it is [checked](check), and so does a
//! primitive that lies there. So a use after free and an
//! access past the end are failures at the moment they happen, and cost nothing elsewhere.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;

use threadbare_trace::{End, EventKind, Extent, Failure, FailureKind, Related, Role};
use threadbare_wire::CodePlace;

use crate::entry::log::Entry;
use crate::hash::Hasher;
use crate::hooks::calls;
use crate::memory::layout::{self, HEAP, HEAP_BYTES, HEAP_PAGES};
use crate::memory::spans::{Block, By, HEADER, Spans};
use crate::memory::{arena, guard, learn, shadow};
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::{fail, finish, here};
use crate::schedule::scheduler;

unsafe extern "C" {
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

// SAFETY: `layout` gives both regions to the heap, and `prepare` maps them before anything is allocated.
static SPANS: Carrier<Spans> = Carrier::new(unsafe { Spans::new(HEAP, HEAP_BYTES, HEAP_PAGES) });

/// Freed blocks that are not used again yet.
struct Quarantine {
    /// Oldest first.
    blocks: VecDeque<&'static Block>,
    bytes: u64,
}

impl Quarantine {
    const MAX_BLOCKS: usize = 4096;
    const MAX_BYTES: u64 = 64 << 20;

    fn add(&mut self, block: &'static Block) {
        self.bytes += block.size();
        self.blocks.push_back(block);
    }

    /// Takes out the oldest block, if there are too many.
    fn take_oldest(&mut self) -> Option<&'static Block> {
        let is_over = self.blocks.len() > Quarantine::MAX_BLOCKS || self.bytes > Quarantine::MAX_BYTES;
        let oldest = if is_over { self.blocks.pop_front()? } else { return None };
        self.bytes -= oldest.size();
        Some(oldest)
    }
}

static QUARANTINE: Carrier<Quarantine> = Carrier::new(Quarantine { blocks: VecDeque::new(), bytes: 0 });

/// Extents, as (start, length) in a block, by allocation site.
type BySite = HashMap<[u64; 3], Vec<(u64, u64)>, Hasher>;
static TRACKED: Carrier<Option<BySite>> = Carrier::new(None);

/// The runtime makes libc allocate, for a new context: the memory comes from the runtime's arena.
static OURS: Carrier<bool> = Carrier::new(false);

pub fn prepare() -> bool {
    layout::reserve(HEAP, HEAP_BYTES) && layout::reserve(HEAP_PAGES, Spans::page_table_bytes(HEAP_BYTES))
}

/// Runs `work`, which makes libc allocate memory on the runtime's behalf.
pub fn for_runtime<T>(work: impl FnOnce() -> T) -> T {
    let before = OURS.replace(true);
    let result = work();
    OURS.set(before);
    result
}

pub fn live_blocks() -> impl Iterator<Item = &'static Block> {
    SPANS.with(|spans| spans.live_blocks())
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
    TRACKED.with(|tracked| *tracked = Some(by_site));
    live_blocks().for_each(mark);
}

fn site_of(block: &Block) -> [u64; 3] {
    calls::users_calls(block.allocated().pc, block.allocated().stack)
}

/// Marks what the plan tracks of a block.
fn mark(block: &Block) {
    TRACKED.with(|tracked| {
        let Some(by_site) = tracked else { return };
        for &(start, len) in by_site.get(&site_of(block)).into_iter().flatten() {
            if start < block.size() {
                shadow::set(block.start() + start, len.min(block.size() - start), true);
            }
        }
    });
}

fn block_at(address: u64) -> Option<&'static Block> {
    SPANS.with(|spans| spans.block_at(address))
}

/// The address lies in the region of the heap.
pub fn contains(address: u64) -> bool {
    SPANS.with(|spans| spans.contains(address))
}

/// The site of the live block around `address`, and the offset into it.
pub fn block_site(address: u64) -> Option<([u64; 3], u64)> {
    let block = block_at(address)?;
    let offset = address.checked_sub(block.start())?;
    (block.is_live() && offset < block.size().max(1)).then(|| (site_of(block), offset))
}

/// A block of `size` bytes, or null. With `zero` they are zeroes.
pub fn allocate(size: u64, align: u64, zero: bool, pc: u64) -> *mut c_void {
    if OURS.get() {
        return arena::allocate(size, align).cast();
    }
    let is_apart = guard::chooses();
    let got = SPANS.with(|spans| match is_apart {
        true => spans.allocate_apart(size, align),
        false => spans.allocate(size, align),
    });
    let Some((block, fresh)) = got else {
        system::set_errno(libc::ENOMEM);
        return std::ptr::null_mut();
    };
    block.set_allocated(by(pc));
    // SAFETY: the heap has just given it.
    unsafe { fence(block, fresh) };
    let start = block.start();
    if zero && !fresh {
        // SAFETY: the block has this many bytes.
        unsafe { (start as *mut u8).write_bytes(0, size as usize) };
    }
    if scheduler::is_running() {
        learn::forget(start, size);
        mark(block);
        Entry::new(EventKind::Allocate, pc, start).size(size).value(size).write();
    }
    start as *mut c_void
}

/// Names the running thread and its place, for a block.
fn by(pc: u64) -> By {
    By { pc, stack: calls::current(), thread: scheduler::current() }
}

/// Marks what is around a new block, and not the block itself.
///
/// # Safety
/// The block is one of the heap's.
unsafe fn fence(block: &Block, fresh: bool) {
    // SAFETY: the caller's promise.
    let extent = SPANS.with(|spans| unsafe { spans.extent(block) });
    let end = block.end();
    shadow::set(extent.start, block.start() - extent.start, true);
    if !fresh {
        shadow::set(block.start(), block.size(), false);
    }
    // The header of the next block too, which may not have been handed out yet.
    shadow::set(end, extent.end + HEADER - end, true);
}

/// Frees a block.
///
/// # Safety
/// The program does not use it any more. If it is neither the heap's nor the arena's, it is libc's.
pub unsafe fn release(address: u64, pc: u64) {
    if arena::contains(address) {
        // SAFETY: the caller's promise.
        return unsafe { arena::free(address) };
    }
    if !contains(address) {
        // SAFETY: from before the runtime was active, or none of ours; the caller's promise.
        return unsafe { __libc_free(address as *mut c_void) };
    }
    let block = live_block(address, "freed", pc);
    Entry::new(EventKind::Free, pc, address).value(block.size()).write();
    learn::freed(block.start(), block.size());
    block.set_freed(by(pc));
    shadow::set(block.start(), block.size(), true);
    guard::close(pages_of(block));
    QUARANTINE.with(|quarantine| quarantine.add(block));
    while let Some(oldest) = QUARANTINE.with(Quarantine::take_oldest) {
        guard::give_back(pages_of(oldest));
        // SAFETY: a block comes into the quarantine once, when the program frees it, and leaves it here.
        SPANS.with(|spans| unsafe { spans.release(oldest) });
    }
}

/// The pages of a block that is apart.
fn pages_of(block: &Block) -> Option<Range<u64>> {
    // SAFETY: the block is the heap's.
    SPANS.with(|spans| unsafe { spans.is_apart(block).then(|| spans.extent(block)) })
}

/// The run is guarded: what was freed before it began is inaccessible too.
pub fn guard() {
    guard::start();
    QUARANTINE.with(|quarantine| quarantine.blocks.iter().for_each(|block| guard::close(pages_of(block))));
}

/// The pages of the freed block around `address`, if that is inaccessible.
pub fn closed_pages(address: u64) -> Option<Range<u64>> {
    block_at(address).filter(|block| guard::is_on() && !block.is_live()).and_then(pages_of)
}

/// Code that tells the runtime nothing has accessed `address`, which is inaccessible.
pub fn fail_at_closed(address: u64, verb: &str, at: CodePlace) -> ! {
    match block_at(address) {
        Some(block) => {
            let (kind, message) = describe(block, address, 1, format_args!("{verb}"));
            fail_with(block, kind, at, message)
        }
        None => finish(&End::Failed(Failure::new(FailureKind::UseAfterFree, verb, at))),
    }
}

/// The live block that begins at `address`; anything else is a failure of the program.
fn live_block(address: u64, verb: &str, pc: u64) -> &'static Block {
    match block_at(address) {
        Some(block) if block.start() == address && block.is_live() => block,
        Some(block) if block.start() == address => {
            let message = format!("a block of {} bytes is {verb} again", block.size());
            fail_with(block, FailureKind::DoubleFree, here(pc), message)
        }
        Some(block) if block.is_live() && address > block.start() && address < block.end() => {
            let (offset, whole) = (address - block.start(), block.size());
            let message = format!("what is {verb} lies {offset} bytes into a block of {whole} bytes");
            fail_with(block, FailureKind::InvalidFree, here(pc), message)
        }
        _ => fail(FailureKind::InvalidFree, pc, &format!("what is {verb} is not the start of a block")),
    }
}

/// Ends the run, and says who allocated the block and, if it was freed, who did that.
fn fail_with(block: &Block, kind: FailureKind, at: CodePlace, message: String) -> ! {
    let related = |role, by: By| {
        let at = CodePlace { thread: by.thread, stack: by.stack, pc: by.pc };
        Related { role, at }
    };
    let freed = (!block.is_live()).then(|| related(Role::Freed, block.freed()));
    let related = [related(Role::Allocated, block.allocated())].into_iter().chain(freed).collect();
    finish(&End::Failed(Failure { kind, message, at, related }))
}

/// The program does `what` to these bytes: they must lie in a live block, if they lie in the heap at all.
pub fn check(address: u64, size: u64, what: fmt::Arguments<'_>, pc: u64) {
    if !contains(address) {
        return;
    }
    let Some(block) = block_at(address) else { return };
    // The header of a block is what follows the block before it, if there is one.
    // SAFETY: the block is the heap's.
    let first = SPANS.with(|spans| unsafe { spans.extent(block) }).start;
    let before = block_at(first - 1).filter(|before| before.start() != 0);
    let block = match before {
        Some(before) if address < first + HEADER => before,
        _ => block,
    };
    if block.is_live() && address >= block.start() && address + size <= block.end() {
        return;
    }
    let (kind, message) = describe(block, address, size, what);
    fail_with(block, kind, here(pc), message)
}

/// What is wrong with doing `what` to these bytes, which do not lie in a live block. `block` is the nearest one.
fn describe(block: &Block, address: u64, size: u64, what: fmt::Arguments<'_>) -> (FailureKind, String) {
    let (start, end, whole) = (block.start(), block.end(), block.size());
    if block.is_live() || address < start || address >= end {
        let (distance, side) = match address.checked_sub(end) {
            Some(past) => (past, "after the end"),
            None if address >= start => (address + size - end, "too many at the end"),
            None => (start - address, "before the start"),
        };
        let message = format!("{what}, {distance} bytes {side} of a block of {whole} bytes");
        return (FailureKind::HeapOverflow, message);
    }
    let offset = address - start;
    (FailureKind::UseAfterFree, format!("{what}, {offset} bytes into a freed block of {whole} bytes"))
}

/// Moves a block to a larger or smaller one.
///
/// # Safety
/// As for [`release`].
pub unsafe fn resize(address: u64, size: u64, pc: u64) -> *mut c_void {
    let old = if arena::contains(address) {
        arena::size_of_block(address)
    } else if contains(address) {
        live_block(address, "resized", pc).size()
    } else {
        // SAFETY: from before the runtime was active, or none of ours; the caller's promise.
        return unsafe { __libc_realloc(address as *mut c_void, size as usize) };
    };
    let new = allocate(size, 16, false, pc);
    if !new.is_null() {
        // SAFETY: two live blocks of at least this many bytes; the caller's promise for the old one.
        unsafe {
            new.cast::<u8>().copy_from_nonoverlapping(address as *const u8, old.min(size) as usize);
            release(address, pc);
        }
    }
    new
}

/// The bytes that the program asked for with the block at `address`, if it is one of the heap's.
pub fn size_of_block(address: u64) -> Option<u64> {
    block_at(address).map(Block::size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::spans::tests::spans;

    fn quarantine() -> Quarantine {
        Quarantine { blocks: VecDeque::new(), bytes: 0 }
    }

    /// Freed blocks come out in the order in which they were freed, and no sooner than there are too many.
    #[test]
    fn the_oldest_of_too_many_blocks_is_used_again() {
        let (mut quarantine, mut spans) = (quarantine(), spans());
        let mut freed = || spans.allocate(16, 16).expect("there is room").0;
        let (first, second) = (freed(), freed());
        quarantine.add(first);
        quarantine.add(second);
        for _ in 2..Quarantine::MAX_BLOCKS {
            quarantine.add(freed());
        }
        assert!(quarantine.take_oldest().is_none());
        quarantine.add(freed());
        assert_eq!(quarantine.take_oldest().map(Block::start), Some(first.start()));
        assert!(quarantine.take_oldest().is_none());
        quarantine.add(freed());
        assert_eq!(quarantine.take_oldest().map(Block::start), Some(second.start()));
    }

    /// Large blocks are given back sooner, until what is kept is small enough.
    #[test]
    fn too_many_bytes_are_given_back() {
        let (mut quarantine, mut spans) = (quarantine(), spans());
        let (small, large) = (spans.allocate(16, 16), spans.allocate(1 << 20, 16));
        let [small, large] = [small, large].map(|block| block.expect("there is room").0);
        quarantine.add(large);
        quarantine.add(small);
        assert!(quarantine.take_oldest().is_none());
        quarantine.bytes += Quarantine::MAX_BYTES;
        assert_eq!(quarantine.take_oldest().map(Block::start), Some(large.start()));
        assert_eq!(quarantine.bytes, Quarantine::MAX_BYTES + 16);
    }
}
