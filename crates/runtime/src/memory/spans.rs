//! A deterministic allocator: where a block lies depends on the sequence of requests and on nothing else.
//!
//! Memory is handed out in pages of 64 KiB. Small blocks share a page with others of their size class, large
//! ones have pages of their own. A side table says which span a page belongs to, so that the block around any
//! address is found by arithmetic. Freed blocks are reused last in, first out.

/// Who did something, and where: return address, call stack, index of the thread.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct By {
    pub pc: u64,
    pub stack: u32,
    pub thread: u32,
}

/// What is known of a block; lies just before it.
#[repr(C, align(16))]
pub struct Block {
    /// The address that was handed out; the block may have been aligned further than it begins.
    pub start: u64,
    /// Bytes asked for.
    pub size: u64,
    pub allocated: By,
    /// Means something when the block is not live.
    pub freed: By,
    /// The next free block of its class.
    next: u64,
    pub live: bool,
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
    pub const fn new(base: u64, bytes: u64, pages: u64) -> Spans {
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
    pub fn allocate(&mut self, size: u64, align: u64) -> Option<(&'static mut Block, bool)> {
        let slack = if align > 16 { align } else { 0 };
        let wanted = size.checked_add(HEADER + slack)?;
        if wanted > self.bytes {
            return None;
        }
        let (class, stride) = class_of(wanted);
        if self.free[class] == 0 {
            self.grow(class, stride)?;
        }
        let header = self.free[class] as *mut Block;
        // SAFETY: the free list holds headers of blocks of this class, each linked through `next`.
        let block = unsafe { &mut *header };
        self.free[class] = block.next;
        let fresh = block.start == 0;
        block.start = (header as u64 + HEADER).next_multiple_of(align.max(16));
        block.size = size;
        block.live = true;
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
                (*(header as *mut Block)).next = self.free[class];
                self.free[class] = header;
            }
        }
        Some(())
    }

    /// The block whose memory holds `address`, live or not.
    pub fn block_at(&self, address: u64) -> Option<&'static mut Block> {
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
            (index < span.blocks).then(|| &mut *((start + SPAN_HEADER + index * span.stride) as *mut Block))
        }
    }

    /// The span that a block of this allocator is in.
    fn span_of(&self, block: &Block) -> &'static Span {
        let page = (std::ptr::from_ref(block) as u64 - self.base) / PAGE;
        // SAFETY: `block` came from this allocator, so its page has an entry and its span a header.
        unsafe {
            let entry = ((self.pages + page * 4) as *const u32).read();
            &*((self.base + u64::from(entry - 1) * PAGE) as *const Span)
        }
    }

    /// The memory of a block, from its header to where the next one's begins.
    pub fn extent(&self, block: &Block) -> std::ops::Range<u64> {
        let header = std::ptr::from_ref(block) as u64;
        header..header + self.span_of(block).stride
    }

    /// Takes a block back.
    pub fn release(&mut self, block: &'static mut Block) {
        let class = self.span_of(block).class as usize;
        block.live = false;
        block.next = self.free[class];
        self.free[class] = std::ptr::from_mut(block) as u64;
    }

    /// Every live block, in the order of addresses.
    pub fn live_blocks(&self) -> impl Iterator<Item = &'static Block> + '_ {
        let mut page = 0;
        let spans = std::iter::from_fn(move || {
            if page >= self.next_page {
                return None;
            }
            let start = self.base + page * PAGE;
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
            .filter(|block| block.live)
    }
}
