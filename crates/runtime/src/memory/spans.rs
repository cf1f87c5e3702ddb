//! A deterministic allocator: where a block lies depends on the sequence of requests and on nothing else.
//!
//! Memory is handed out in pages of 64 KiB. Small blocks share a page with others of their size class, large
//! ones have pages of their own. A side table says which span a page belongs to, so that the block around any
//! address is found by arithmetic. Freed blocks are reused last in, first out.
//!
//! A block may also be put *apart*: no other block is on its pages of the processor, and its header is not there either.
//! So its memory can be made inaccessible (see [`guard`](crate::memory::guard)).

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

/// What is known of a block; lies just before it, or at the start of the span if the block is apart.
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

impl Span {
    /// From the start of the span to the memory of its first block.
    fn first(&self) -> u64 {
        first_of(self.class as usize)
    }

    /// From one header to the next.
    fn header_stride(&self) -> u64 {
        if is_apart(self.class as usize) { HEADER } else { self.stride }
    }

    /// The block with this index.
    ///
    /// # Safety
    /// The span is one that `grow` wrote, and has so many blocks.
    unsafe fn block(&self, index: u64) -> &'static Block {
        let header = std::ptr::from_ref(self) as u64 + SPAN_HEADER + index * self.header_stride();
        // SAFETY: the caller's promise: `grow` made a header for each of the span's blocks.
        unsafe { &*(header as *const Block) }
    }
}

pub struct Spans {
    base: u64,
    bytes: u64,
    /// One `u32` for each page: 1 + the first page of its span, or 0.
    pages: u64,
    next_page: u64,
    /// The first free block of each class; then the same for blocks that are apart.
    free: [u64; 2 * CLASSES],
}

const PAGE: u64 = 64 << 10;
/// The pages that the processor protects.
const SMALL_PAGE: u64 = 4 << 10;
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

/// The same for a block that is apart.
fn class_apart(bytes: u64) -> (usize, u64) {
    let (class, rounded) = class_of(bytes.max(SMALL_PAGE));
    (CLASSES + class, rounded.next_multiple_of(SMALL_PAGE))
}

const fn is_apart(class: usize) -> bool {
    class >= CLASSES
}

/// From the start of a span of this class to the memory of its first block.
const fn first_of(class: usize) -> u64 {
    if is_apart(class) { SMALL_PAGE } else { SPAN_HEADER }
}

impl Spans {
    /// An allocator for the `bytes` of memory at `base`, which keeps its page table at `pages`.
    ///
    /// # Safety
    /// Before it is used, both are mapped and all zeroes, for good. Nobody but this allocator and those whom it hands
    /// blocks to uses them.
    pub const unsafe fn new(base: u64, bytes: u64, pages: u64) -> Spans {
        Spans { base, bytes, pages, next_page: 0, free: [0; 2 * CLASSES] }
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
        let (class, stride) = class_of(self.room(size, align)?);
        self.take(class, stride, size, align)
    }

    /// The same, and the block is apart.
    pub fn allocate_apart(&mut self, size: u64, align: u64) -> Option<(&'static Block, bool)> {
        let (class, stride) = class_apart(self.room(size, align)?);
        self.take(class, stride, size, align)
    }

    /// The bytes that such a block takes, with as much before it as a header has.
    fn room(&self, size: u64, align: u64) -> Option<u64> {
        let slack = if align > 16 { align } else { 0 };
        size.checked_add(HEADER + slack).filter(|&wanted| wanted <= self.bytes)
    }

    fn take(&mut self, class: usize, stride: u64, size: u64, align: u64) -> Option<(&'static Block, bool)> {
        if self.free[class] == 0 {
            self.grow(class, stride)?;
        }
        let header = self.free[class];
        // SAFETY: `grow` and `release` put headers of blocks of this class into the free list, and nothing else.
        let block = unsafe { &*(header as *const Block) };
        self.free[class] = block.next.get();
        let fresh = block.start() == 0;
        // SAFETY: the block is this allocator's.
        let memory = if is_apart(class) { unsafe { self.extent(block) }.start } else { header };
        block.start.set((memory + HEADER).next_multiple_of(align.max(16)));
        block.size.set(size);
        block.live.set(true);
        Some((block, fresh))
    }

    /// Adds a span of blocks to the free list of `class`.
    fn grow(&mut self, class: usize, stride: u64) -> Option<()> {
        let pages = (first_of(class) + stride).div_ceil(PAGE);
        let first = self.next_page;
        if (first + pages) * PAGE > self.bytes {
            return None;
        }
        self.next_page += pages;
        let start = self.base + first * PAGE;
        let blocks = if pages > 1 { 1 } else { (PAGE - first_of(class)) / stride };
        // SAFETY: the pages were never handed out, and lie in the region that was reserved for this allocator.
        unsafe {
            let span = start as *mut Span;
            span.write(Span { stride, blocks, class: class as u64, unused: 0 });
            for page in first..first + pages {
                ((self.pages + page * 4) as *mut u32).write(first as u32 + 1);
            }
            // Last block first, so that blocks are handed out in the order of their addresses.
            for index in (0..blocks).rev() {
                let block = (*span).block(index);
                block.next.set(self.free[class]);
                self.free[class] = std::ptr::from_ref(block) as u64;
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
            let index = address.checked_sub(start + span.first())? / span.stride;
            (index < span.blocks).then(|| span.block(index))
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

    /// The memory of a block, from its header to where the next one's begins. If the block is apart, these are whole
    /// pages, without the header.
    ///
    /// # Safety
    /// The block is one of this allocator's.
    pub unsafe fn extent(&self, block: &Block) -> std::ops::Range<u64> {
        // SAFETY: the caller's promise.
        let span = unsafe { self.span_of(block) };
        let (header, span_start) = (std::ptr::from_ref(block) as u64, std::ptr::from_ref(span) as u64);
        let start = match is_apart(span.class as usize) {
            true => span_start + span.first() + (header - span_start - SPAN_HEADER) / HEADER * span.stride,
            false => header,
        };
        start..start + span.stride
    }

    /// # Safety
    /// The block is one of this allocator's.
    pub unsafe fn is_apart(&self, block: &Block) -> bool {
        // SAFETY: the caller's promise.
        is_apart(unsafe { self.span_of(block) }.class as usize)
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
            page += (span.first() + span.stride).div_ceil(PAGE);
            Some(span)
        });
        spans
            .flat_map(|span| {
                // SAFETY: `grow` wrote the span, with so many blocks.
                (0..span.blocks).map(move |index| unsafe { span.block(index) })
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

    /// Pages of a block that is apart can be protected: nothing else is on them, and no header.
    #[test]
    fn blocks_that_are_apart_have_pages_of_their_own() {
        let mut spans = spans();
        let mut pages: Vec<std::ops::Range<u64>> = Vec::new();
        let mut headers = Vec::new();
        for (size, align) in
            [(1, 16), (4096, 16), (100, 4096), (5000, 64), (70_000, 16), (300_000, 16), (0, 16)]
        {
            let (near, _) = spans.allocate(size, align).expect("there is room");
            let (block, fresh) = spans.allocate_apart(size, align).expect("there is room");
            // SAFETY: the allocator's own blocks.
            let (extent, [is_near, is_apart]) =
                unsafe { (spans.extent(block), [near, block].map(|block| spans.is_apart(block))) };
            assert!(fresh && is_apart && !is_near && block.start().is_multiple_of(align));
            assert!(extent.start.is_multiple_of(SMALL_PAGE) && extent.end.is_multiple_of(SMALL_PAGE));
            assert!(extent.start + HEADER <= block.start() && block.end() <= extent.end);
            for address in [extent.start, block.start(), extent.end - 1] {
                assert_eq!(spans.block_at(address).map(Block::start), Some(block.start()));
            }
            headers.extend([near, block].map(|block| std::ptr::from_ref(block) as u64));
            headers.push(near.start());
            pages.push(extent);
        }
        for (index, page) in pages.iter().enumerate() {
            assert!(headers.iter().all(|header| !page.contains(header)));
            assert!(pages[..index].iter().all(|other| page.end <= other.start || other.end <= page.start));
        }
        assert_eq!(spans.live_blocks().count(), 14);
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
