//! A deterministic allocator: where a block lies depends on the sequence of requests and on nothing else.
//!
//! Memory is handed out in pages of 64 KiB. Small blocks share a page with others of their size class, large
//! ones have pages of their own. A side table says which span a page belongs to, so that the block around any
//! address is found by arithmetic. Freed blocks are reused last in, first out.

use std::cell::Cell;

use threadbare_trace::{StackIndex, ThreadIndex};

/// Who did something, and where.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct By {
    pub pc: u64,
    pub stack: StackIndex,
    pub thread: ThreadIndex,
}

/// What is known of a block; lies just before it.
#[repr(C, align(16))]
pub struct Block {
    start: Cell<u64>,
    size: Cell<u64>,
    allocated: Cell<By>,
    freed: Cell<By>,
    /// The next free block of its class.
    next: Cell<u64>,
    live: Cell<bool>,
}

impl Block {
    /// The address that was handed out; 0 if none was yet. With a large alignment it is not the first after the header.
    pub fn start(&self) -> u64 {
        self.start.get()
    }

    /// Bytes asked for.
    pub fn size(&self) -> u64 {
        self.size.get()
    }

    pub fn end(&self) -> u64 {
        self.start() + self.size()
    }

    pub fn is_live(&self) -> bool {
        self.live.get()
    }

    pub fn allocated(&self) -> By {
        self.allocated.get()
    }

    pub fn set_allocated(&self, by: By) {
        self.allocated.set(by);
    }

    /// Means something when the block is not live.
    pub fn freed(&self) -> By {
        self.freed.get()
    }

    /// The program has freed it. [`Spans::release`] is what makes it available again.
    pub fn set_freed(&self, by: By) {
        self.live.set(false);
        self.freed.set(by);
    }
}

/// At the start of a span's first page.
#[repr(C)]
struct Span {
    /// Bytes from one block to the next, header included.
    stride: u64,
    blocks: u64,
    class: u64,
    unused: u64,
}

pub struct Spans {
    base: u64,
    bytes: u64,
    /// One `u32` for each page: 1 + the first page of its span, or 0.
    pages: u64,
    next_page: u64,
    free: [u64; CLASSES],
}

const PAGE: u64 = 64 << 10;
pub const HEADER: u64 = size_of::<Block>() as u64;
const SPAN_HEADER: u64 = size_of::<Span>() as u64;
const CLASSES: usize = 160;
const _: () = assert!(HEADER.is_multiple_of(16) && SPAN_HEADER.is_multiple_of(16));

/// The class of a block that takes `bytes` with its header, and the bytes such a class has: four classes to
/// each doubling, from 80 bytes up. Blocks of a page or more are whole pages.
fn class_of(bytes: u64) -> (usize, u64) {
    let bytes = bytes.max(80).next_multiple_of(16);
    let power = u64::from(63 - bytes.leading_zeros());
    let quarter = 1u64 << (power - 2);
    let rounded = bytes.next_multiple_of(quarter.max(16));
    let power = u64::from(63 - rounded.leading_zeros());
    let step = (rounded - (1 << power)) / (1 << (power - 2));
    ((power * 4 + step - 20) as usize, rounded)
}

impl Spans {
    /// An allocator for the `bytes` of memory at `base`, which keeps its page table at `pages`.
    ///
    /// # Safety
    /// Before it is used, both are mapped and all zeroes, for good. Nobody but this allocator and those whom it hands
    /// blocks to uses them.
    pub const unsafe fn new(base: u64, bytes: u64, pages: u64) -> Spans {
        Spans { base, bytes, pages, next_page: 0, free: [0; CLASSES] }
    }

    /// The bytes of page table this allocator needs mapped at its `pages` address.
    pub const fn page_table_bytes(bytes: u64) -> u64 {
        bytes / PAGE * 4
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.base..self.base + self.bytes).contains(&address)
    }

    /// A block of `size` bytes, aligned to `align` (a power of two), or `None` when the region is used up.
    /// The second value says that its memory is fresh, hence zero.
    pub fn allocate(&mut self, size: u64, align: u64) -> Option<(&'static Block, bool)> {
        let slack = if align > 16 { align } else { 0 };
        let wanted = size.checked_add(HEADER + slack)?;
        if wanted > self.bytes {
            return None;
        }
        let (class, stride) = class_of(wanted);
        if self.free[class] == 0 {
            self.grow(class, stride)?;
        }
        let header = self.free[class];
        // SAFETY: `grow` and `release` put headers of blocks of this class into the free list, and nothing else.
        let block = unsafe { &*(header as *const Block) };
        self.free[class] = block.next.get();
        let fresh = block.start() == 0;
        block.start.set((header + HEADER).next_multiple_of(align.max(16)));
        block.size.set(size);
        block.live.set(true);
        Some((block, fresh))
    }

    /// Adds a span of blocks to the free list of `class`.
    fn grow(&mut self, class: usize, stride: u64) -> Option<()> {
        let pages = (SPAN_HEADER + stride).div_ceil(PAGE);
        let first = self.next_page;
        if (first + pages) * PAGE > self.bytes {
            return None;
        }
        self.next_page += pages;
        let start = self.base + first * PAGE;
        let blocks = if pages > 1 { 1 } else { (PAGE - SPAN_HEADER) / stride };
        // SAFETY: the pages were never handed out, and lie in the region that was reserved for this allocator.
        unsafe {
            (start as *mut Span).write(Span { stride, blocks, class: class as u64, unused: 0 });
            for page in first..first + pages {
                ((self.pages + page * 4) as *mut u32).write(first as u32 + 1);
            }
            // Last block first, so that blocks are handed out in the order of their addresses.
            for index in (0..blocks).rev() {
                let header = start + SPAN_HEADER + index * stride;
                (*(header as *const Block)).next.set(self.free[class]);
                self.free[class] = header;
            }
        }
        Some(())
    }

    /// The block whose memory holds `address`, live or not.
    pub fn block_at(&self, address: u64) -> Option<&'static Block> {
        if !self.contains(address) {
            return None;
        }
        let page = (address - self.base) / PAGE;
        // SAFETY: the page table covers the region; a non-zero entry names a span that `grow` wrote.
        unsafe {
            let entry = ((self.pages + page * 4) as *const u32).read();
            let start = self.base + u64::from(entry.checked_sub(1)?) * PAGE;
            let span = &*(start as *const Span);
            let index = address.checked_sub(start + SPAN_HEADER)? / span.stride;
            (index < span.blocks).then(|| &*((start + SPAN_HEADER + index * span.stride) as *const Block))
        }
    }

    /// The span that a block is in.
    ///
    /// # Safety
    /// The block is one of this allocator's.
    unsafe fn span_of(&self, block: &Block) -> &'static Span {
        let page = (std::ptr::from_ref(block) as u64 - self.base) / PAGE;
        // SAFETY: the caller promises that the block is this allocator's, so `grow` has made an entry for its page and
        // a header for its span.
        unsafe {
            let entry = ((self.pages + page * 4) as *const u32).read();
            &*((self.base + u64::from(entry - 1) * PAGE) as *const Span)
        }
    }

    /// The memory of a block, from its header to where the next one's begins.
    ///
    /// # Safety
    /// The block is one of this allocator's.
    pub unsafe fn extent(&self, block: &Block) -> std::ops::Range<u64> {
        let header = std::ptr::from_ref(block) as u64;
        // SAFETY: the caller's promise.
        header..header + unsafe { self.span_of(block) }.stride
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// This allocator handed the block out, has not taken it back since, and nobody uses its memory any more.
    pub unsafe fn release(&mut self, block: &'static Block) {
        // SAFETY: the caller's promise.
        let class = unsafe { self.span_of(block) }.class as usize;
        block.live.set(false);
        block.next.set(self.free[class]);
        self.free[class] = std::ptr::from_ref(block) as u64;
    }

    /// Every live block, in the order of addresses.
    pub fn live_blocks(&self) -> impl Iterator<Item = &'static Block> + use<> {
        let (base, next_page, mut page) = (self.base, self.next_page, 0);
        let spans = std::iter::from_fn(move || {
            if page >= next_page {
                return None;
            }
            let start = base + page * PAGE;
            // SAFETY: spans follow one another from the first page to `next_page`.
            let span = unsafe { &*(start as *const Span) };
            page += (SPAN_HEADER + span.stride).div_ceil(PAGE);
            Some((start, span))
        });
        spans
            .flat_map(|(start, span)| {
                (0..span.blocks).map(move |index| {
                    // SAFETY: `grow` made a header for each of the span's blocks.
                    unsafe { &*((start + SPAN_HEADER + index * span.stride) as *const Block) }
                })
            })
            .filter(|block| block.is_live())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An allocator with memory of its own, which lives for as long as the test's process.
    pub fn spans() -> Spans {
        const BYTES: u64 = 64 * PAGE;
        let zeroes = |bytes: u64| {
            let words = vec![[0u64; 2]; bytes as usize / 16 + PAGE as usize / 16].leak();
            (words.as_ptr() as u64).next_multiple_of(PAGE)
        };
        // SAFETY: zeroes that are never freed and named nowhere else.
        unsafe { Spans::new(zeroes(BYTES), BYTES, zeroes(Spans::page_table_bytes(BYTES))) }
    }

    fn allocate(spans: &mut Spans, size: u64) -> u64 {
        spans.allocate(size, 16).expect("there is room").0.start()
    }

    /// Replays and names of memory rest on this: the same requests give the same addresses.
    #[test]
    fn addresses_follow_from_the_requests() {
        let (mut one, mut other) = (spans(), spans());
        for size in [1, 100, 5000, 16, 1, 200_000, 100] {
            let [first, second] = [&mut one, &mut other].map(|spans| {
                let base = spans.base;
                allocate(spans, size) - base
            });
            assert_eq!(first, second, "{size}");
        }
    }

    /// What was freed last is used first, and is not taken for fresh.
    #[test]
    fn blocks_are_reused_last_in_first_out() {
        let mut spans = spans();
        let [first, second] = [(); 2].map(|()| spans.allocate(40, 16).expect("there is room").0);
        // SAFETY: the test uses neither block any more.
        unsafe {
            spans.release(first);
            spans.release(second);
        }
        let (again, fresh) = spans.allocate(40, 16).expect("there is room");
        assert_eq!((again.start(), fresh), (second.start(), false));
        assert!(again.is_live() && !first.is_live());
    }

    /// Any address inside a block leads to it, be the block small or many pages long.
    #[test]
    fn a_block_is_found_by_any_of_its_addresses() {
        let mut spans = spans();
        for size in [1, 33, 4096, 300_000] {
            let start = allocate(&mut spans, size);
            for address in [start, start + size / 2, start + size - 1] {
                let found = spans.block_at(address).expect("it is in a block");
                assert_eq!((found.start(), found.size()), (start, size));
            }
        }
        assert!(spans.block_at(spans.base - 1).is_none());
        assert!(spans.block_at(spans.base + spans.bytes - 1).is_none());
    }

    /// Blocks that are live at the same time have no byte in common, and keep the alignment that was asked for.
    #[test]
    fn blocks_are_apart_and_aligned() {
        let mut spans = spans();
        let requests = [(1, 16), (64, 64), (100, 256), (5000, 4096), (16, 16), (70_000, 16)];
        let mut taken: Vec<std::ops::Range<u64>> = Vec::new();
        for (size, align) in requests {
            let (block, _) = spans.allocate(size, align).expect("there is room");
            assert!(block.start().is_multiple_of(align));
            let range = block.start()..block.end();
            assert!(taken.iter().all(|other| range.end <= other.start || other.end <= range.start));
            taken.push(range);
        }
        let mut live: Vec<u64> = spans.live_blocks().map(Block::start).collect();
        live.sort_unstable();
        taken.sort_unstable_by_key(|range| range.start);
        assert_eq!(live, taken.iter().map(|range| range.start).collect::<Vec<_>>());
    }

    /// A class holds every size that is put into it, and classes grow with sizes.
    #[test]
    fn classes_hold_their_sizes() {
        let mut last = 0;
        for bytes in (1..20_000).chain([1 << 20, (1 << 30) + 1]) {
            let (class, rounded) = class_of(bytes);
            assert!(rounded >= bytes && rounded.is_multiple_of(16) && class >= last && class < CLASSES);
            last = class;
        }
    }

    /// A request that does not fit is refused and leaves the allocator usable.
    #[test]
    fn too_much_is_refused() {
        let mut spans = spans();
        assert!(spans.allocate(u64::MAX, 16).is_none());
        assert!(spans.allocate(spans.bytes, 16).is_none());
        allocate(&mut spans, 1000);
    }
}
