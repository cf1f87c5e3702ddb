//! Finding out which memory is shared.
//!
//! A byte is shared once two threads have accessed it and one of the accesses was a write; what happened
//! before there were threads does not count. The moment a byte becomes shared it is reported, under a name
//! that other runs can use, in the shared file.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use threadbare_trace::Extent;
use threadbare_trace::wire::{self, LEARNT_BYTES, LEARNT_OFFSET};

use crate::carrier::Carrier;
use crate::hash::Hasher;
use crate::layout::WIRE;
use crate::{heap, log, scheduler, shadow};

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

impl Granule {
    /// A thread accesses `len` bytes from `start` on. The bytes that are shared from now on, one bit each.
    fn access(&mut self, thread: u16, start: u32, len: u32, write: bool) -> u8 {
        const EACH: u128 = 0x0001_0001_0001_0001_0001_0001_0001_0001;
        let bits = (u8::MAX >> (8 - len)) << start;
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

#[derive(Default)]
struct Learner {
    blocks: HashMap<u64, Box<Block>, Hasher>,
    spin: Spin,
    reported: u64,
    words: u64,
}

fn empty_block() -> Box<Block> {
    Box::new([Granule::default(); 1 << BLOCK_BITS])
}

static LEARNER: Carrier<Option<Learner>> = Carrier::new(None);

/// Begins to learn.
pub fn start() {
    *LEARNER.get() = Some(Learner { words: 1, ..Learner::default() });
    publish();
}

/// The running thread accesses memory.
pub fn access(address: u64, size: u64, write: bool) {
    let Some(learner) = LEARNER.get().as_mut() else { return };
    let thread = scheduler::get().current as u16 + 1;
    let end = address + size;
    let mut at = address;
    while at < end {
        let granule_end = (at | 7) + 1;
        let upto = end.min(granule_end);
        let block = learner.blocks.entry(at >> 3 >> BLOCK_BITS).or_insert_with(empty_block);
        let new = block[place(at >> 3)].access(thread, (at & 7) as u32, (upto - at) as u32, write);
        if new != 0 {
            report(at & !7, new);
        }
        at = upto;
    }
}

/// The running thread reads memory that is not tracked. If it does nothing else any more, it waits for
/// somebody to write there: that memory is tracked from now on, which lets others run.
pub fn read(pc: u64, address: u64, size: u64) {
    let Some(learner) = LEARNER.get().as_mut() else { return };
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
    for Read { address, size, .. } in std::mem::take(&mut spin.reads) {
        append(&name(address, size));
        shadow::set(address, size, true);
    }
    spin.repeats = 0;
}

/// The running thread does something that is not part of a loop that waits.
pub fn moves_on() {
    if let Some(learner) = LEARNER.get().as_mut() {
        learner.spin.reads.clear();
    }
}

/// Memory that was allocated anew has no past.
pub fn forget(address: u64, size: u64) {
    for granule in accessed_granules(address, size) {
        let Some(learner) = LEARNER.get().as_mut() else { return };
        if let Some(block) = learner.blocks.get_mut(&(granule >> BLOCK_BITS)) {
            block[place(granule)] = Granule::default();
        }
    }
}

/// To free memory is to write to what was accessed of it.
pub fn freed(address: u64, size: u64) {
    for granule in accessed_granules(address, size) {
        access(granule << 3, 8, true);
    }
}

/// The granules of this memory that were accessed, found from whichever side has fewer to look at.
fn accessed_granules(address: u64, size: u64) -> Vec<u64> {
    let Some(learner) = LEARNER.get().as_ref() else { return Vec::new() };
    let granules = address >> 3..(address + size).div_ceil(8);
    let range = granules.start >> BLOCK_BITS..granules.end.div_ceil(1 << BLOCK_BITS);
    let mut blocks: Vec<(u64, &Block)> = if range.end - range.start < learner.blocks.len() as u64 {
        range.filter_map(|number| Some((number, &**learner.blocks.get(&number)?))).collect()
    } else {
        let blocks = learner.blocks.iter().filter(|(number, _)| range.contains(number));
        blocks.map(|(&number, block)| (number, &**block)).collect()
    };
    blocks.sort_unstable_by_key(|&(number, _)| number);
    let accessed = blocks.into_iter().flat_map(|(number, block)| {
        (number << BLOCK_BITS..).zip(block).filter(|(_, granule)| granule.first != 0)
    });
    accessed.map(|(granule, _)| granule).filter(|granule| granules.contains(granule)).collect()
}

/// Reports the bytes of a granule that `bits` names, in runs.
fn report(granule: u64, bits: u8) {
    let mut bits = bits;
    let mut start = granule;
    while bits != 0 {
        let skipped = bits.trailing_zeros();
        start += u64::from(skipped);
        bits >>= skipped;
        let len = bits.trailing_ones();
        append(&name(start, u64::from(len)));
        start += u64::from(len);
        bits = bits.checked_shr(len).unwrap_or(0);
    }
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

fn append(extent: &Extent) {
    let Some(learner) = LEARNER.get().as_mut() else { return };
    // The first word is the count, which is kept here.
    let words = wire::encode_extents(std::slice::from_ref(extent));
    if (learner.words + words.len() as u64) * 8 > LEARNT_BYTES {
        return;
    }
    for &word in &words[1..] {
        // SAFETY: inside the region, as just checked.
        unsafe { ((WIRE + LEARNT_OFFSET) as *mut u64).add(learner.words as usize).write(word) };
        learner.words += 1;
    }
    learner.reported += 1;
    publish();
}

fn publish() {
    let Some(learner) = LEARNER.get().as_ref() else { return };
    // SAFETY: the first word of the region.
    unsafe { ((WIRE + LEARNT_OFFSET) as *mut u64).write(learner.reported) };
    log::control().learnt_words.store(learner.words, Ordering::Release);
}
