//! Finding out which memory is shared.
//!
//! A byte is shared once two threads have accessed it and one of the accesses was a write; what happened
//! before there were threads does not count. The moment a byte becomes shared it is reported, under a name
//! that other runs can use, in the shared file.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use threadbare_trace::Extent;
use threadbare_wire::{self as wire, LEARNT_BYTES, LEARNT_OFFSET};

use crate::entry::log;
use crate::hash::Hasher;
use crate::memory::layout::WIRE;
use crate::memory::{heap, shadow};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

/// What is known of eight bytes.
#[derive(Clone, Copy, Default)]
struct Granule {
    /// 16 bits for each byte: 1 + the thread that accessed it first; 0 for none.
    first: u128,
    written: u8,
    /// By more than one thread.
    several: u8,
    reported: u8,
}

/// Granules that lie side by side: programs go through memory in order.
type Block = [Granule; 1 << BLOCK_BITS];
const BLOCK_BITS: u32 = 4;

/// A granule's place in its block.
fn place(granule: u64) -> usize {
    granule as usize & ((1 << BLOCK_BITS) - 1)
}

/// One bit for each of `len` bytes from `start` on.
fn bits(start: u32, len: u32) -> u8 {
    (u8::MAX >> (8 - len)) << start
}

impl Granule {
    /// A thread accesses `len` bytes from `start` on. The bytes that are shared from now on, one bit each.
    fn access(&mut self, thread: u16, start: u32, len: u32, write: bool) -> u8 {
        const EACH: u128 = 0x0001_0001_0001_0001_0001_0001_0001_0001;
        let bits = bits(start, len);
        let bits_of_first = (u128::MAX >> (16 * (8 - len))) << (16 * start);
        if (self.first ^ (EACH * u128::from(thread))) & bits_of_first != 0 {
            for byte in start..start + len {
                match (self.first >> (16 * byte)) as u16 {
                    0 => self.first |= u128::from(thread) << (16 * byte),
                    first if first != thread => self.several |= 1 << byte,
                    _ => {}
                }
            }
        }
        if write {
            self.written |= bits;
        }
        let new = self.several & self.written & !self.reported & bits;
        self.reported |= new;
        new
    }
}

/// What one thread did to a granule. To do that again tells nothing, whatever others did meanwhile: a byte becomes
/// shared by an access that is the first of its kind.
#[derive(Clone, Copy, Default)]
struct Done {
    granule: u64,
    /// 1 + the thread; 0 for none.
    thread: u16,
    accessed: u8,
    written: u8,
}

/// Of so many granules it is remembered what was done there last: enough for what a loop goes through.
const LATEST: usize = 1 << 13;

impl Done {
    /// Remembers an access to the bytes of these bits. Was it known?
    fn again(&mut self, granule: u64, thread: u16, bits: u8, write: bool) -> bool {
        if (self.granule, self.thread) != (granule, thread) {
            *self = Done { granule, thread, accessed: 0, written: 0 };
        }
        let written = if write { bits } else { 0 };
        let known = bits & !self.accessed == 0 && written & !self.written == 0;
        self.accessed |= bits;
        self.written |= written;
        known
    }
}

/// What the running thread has read since its last schedule point, as far as it may be a loop that waits for
/// another thread: such a loop reads the same few places over and over and finds the same there.
#[derive(Default)]
struct Spin {
    reads: Vec<Read>,
    repeats: u32,
}

struct Read {
    pc: u64,
    address: u64,
    size: u64,
    value: Option<u64>,
}

/// A loop that reads no more than so many places may be waiting.
const SPIN_READS: usize = 8;
/// It is, when that has gone on for so many reads.
const SPIN_REPEATS: u32 = 20_000;

struct Learner {
    blocks: HashMap<u64, Box<Block>, Hasher>,
    /// By the last bits of the granule's number.
    latest: Vec<Done>,
    spin: Spin,
    reported: u64,
    words: u64,
}

static LEARNER: Carrier<Option<Learner>> = Carrier::new(None);

/// Begins to learn.
pub fn start() {
    let learner = LEARNER.get().insert(Learner {
        blocks: HashMap::default(),
        latest: vec![Done::default(); LATEST],
        spin: Spin::default(),
        reported: 0,
        words: 1,
    });
    learner.publish();
}

fn learner() -> Option<&'static mut Learner> {
    LEARNER.get().as_mut()
}

/// The running thread accesses memory.
pub fn access(address: u64, size: u64, write: bool) {
    if let Some(learner) = learner() {
        learner.access(address, size, write);
    }
}

/// The running thread reads memory that is not tracked. If it does nothing else any more, it waits for
/// somebody to write there: that memory is tracked from now on, which lets others run.
pub fn read(pc: u64, address: u64, size: u64) {
    let Some(learner) = learner() else { return };
    let spin = &mut learner.spin;
    let same = |read: &&mut Read| (read.pc, read.address, read.size) == (pc, address, size);
    let Some(known) = spin.reads.iter_mut().find(same) else {
        if spin.reads.len() == SPIN_READS {
            spin.reads.clear();
        }
        spin.reads.push(Read { pc, address, size, value: None });
        spin.repeats = 0;
        return;
    };
    // SAFETY: the program has read the same bytes before, so they are there. (The first time, they may not be:
    // that is for the program to find out.)
    let value = Some(if size > 8 { size } else { unsafe { log::read_memory(address, size) } });
    if std::mem::replace(&mut known.value, value) != value {
        spin.repeats = 0;
    }
    spin.repeats += 1;
    if spin.repeats < SPIN_REPEATS {
        return;
    }
    spin.repeats = 0;
    for Read { address, size, .. } in std::mem::take(&mut spin.reads) {
        learner.append(&name(address, size));
        shadow::set(address, size, true);
    }
}

/// The running thread does something that is not part of a loop that waits.
pub fn moves_on() {
    if let Some(learner) = learner() {
        learner.spin.reads.clear();
    }
}

/// Memory that was allocated anew has no past.
pub fn forget(address: u64, size: u64) {
    let Some(learner) = learner() else { return };
    for granule in learner.accessed_granules(address, size) {
        if let Some(block) = learner.blocks.get_mut(&(granule >> BLOCK_BITS)) {
            block[place(granule)] = Granule::default();
            *learner.latest(granule) = Done::default();
        }
    }
}

/// To free memory is to write to what was accessed of it.
pub fn freed(address: u64, size: u64) {
    let Some(learner) = learner() else { return };
    for granule in learner.accessed_granules(address, size) {
        learner.access(granule << 3, 8, true);
    }
}

impl Learner {
    fn access(&mut self, address: u64, size: u64, write: bool) {
        let thread = scheduler::get().current as u16 + 1;
        let end = address + size;
        let mut at = address;
        while at < end {
            let granule_end = (at | 7) + 1;
            let upto = end.min(granule_end);
            let (granule, start, len) = (at >> 3, (at & 7) as u32, (upto - at) as u32);
            if !self.latest(granule).again(granule, thread, bits(start, len), write) {
                let block = self.blocks.entry(granule >> BLOCK_BITS).or_insert_with(empty_block);
                let new = block[place(granule)].access(thread, start, len, write);
                if new != 0 {
                    self.report(granule << 3, new);
                }
            }
            at = upto;
        }
    }

    fn latest(&mut self, granule: u64) -> &mut Done {
        &mut self.latest[granule as usize % LATEST]
    }

    /// The granules of this memory that were accessed, found from whichever side has fewer to look at.
    fn accessed_granules(&self, address: u64, size: u64) -> Vec<u64> {
        let granules = address >> 3..(address + size).div_ceil(8);
        let range = granules.start >> BLOCK_BITS..granules.end.div_ceil(1 << BLOCK_BITS);
        let mut blocks: Vec<(u64, &Block)> = if range.end - range.start < self.blocks.len() as u64 {
            range.filter_map(|number| Some((number, &**self.blocks.get(&number)?))).collect()
        } else {
            let blocks = self.blocks.iter().filter(|(number, _)| range.contains(number));
            blocks.map(|(&number, block)| (number, &**block)).collect()
        };
        blocks.sort_unstable_by_key(|&(number, _)| number);
        let accessed = blocks.into_iter().flat_map(|(number, block)| {
            (number << BLOCK_BITS..).zip(block).filter(|(_, granule)| granule.first != 0)
        });
        accessed.map(|(granule, _)| granule).filter(|granule| granules.contains(granule)).collect()
    }

    /// Reports the bytes of a granule that `bits` names, in runs.
    fn report(&mut self, granule: u64, bits: u8) {
        let mut bits = bits;
        let mut start = granule;
        while bits != 0 {
            let skipped = bits.trailing_zeros();
            start += u64::from(skipped);
            bits >>= skipped;
            let len = bits.trailing_ones();
            self.append(&name(start, u64::from(len)));
            start += u64::from(len);
            bits = bits.checked_shr(len).unwrap_or(0);
        }
    }

    fn append(&mut self, extent: &Extent) {
        // The first word is the count, which is kept here.
        let words = wire::encode_extents(std::slice::from_ref(extent));
        if (self.words + words.len() as u64) * 8 > LEARNT_BYTES {
            return;
        }
        for &word in &words[1..] {
            // SAFETY: inside the region, as just checked.
            unsafe { ((WIRE + LEARNT_OFFSET) as *mut u64).add(self.words as usize).write(word) };
            self.words += 1;
        }
        self.reported += 1;
        self.publish();
    }

    fn publish(&self) {
        // SAFETY: the first word of the region.
        unsafe { ((WIRE + LEARNT_OFFSET) as *mut u64).write(self.reported) };
        log::control().learnt_words.store(self.words, Ordering::Release);
    }
}

fn empty_block() -> Box<Block> {
    Box::new([Granule::default(); 1 << BLOCK_BITS])
}

fn name(start: u64, len: u64) -> Extent {
    if let Some((site, offset)) = heap::block_site(start) {
        return Extent::Heap { site, start: offset, len };
    }
    match scheduler::get().stack_variable(start) {
        Some((thread, start)) => Extent::Stack { thread, start, len },
        None => Extent::Fixed { start, len },
    }
}
