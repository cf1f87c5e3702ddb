//! Which bytes are shared: those that two threads have accessed and one of them has written.

use std::collections::HashMap;

use threadbare_trace::ThreadIndex;

use crate::hash::Hasher;

/// What is known of eight bytes.
#[derive(Clone, Copy, Default)]
struct Granule {
    /// 16 bits for each byte: 1 + the thread that accessed it first; 0 for none.
    first: u128,
    written: u8,
    /// Accessed by more than one thread.
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
    /// A thread accesses `len` bytes from `start` on. Returns the bytes that become shared by that, one bit each.
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

/// What one thread did to a granule. If it does the same again, nothing changes, whatever others did meanwhile: only
/// the first access of a kind makes a byte shared.
#[derive(Clone, Copy, Default)]
struct Done {
    granule: u64,
    /// 1 + the thread; 0 for none.
    thread: u16,
    accessed: u8,
    written: u8,
}

/// For how many granules the last access is remembered: enough for the memory of a loop.
const LATEST: usize = 1 << 13;

impl Done {
    /// Remembers an access to these bytes; `true` if the thread has done the same before.
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

/// What is known of all memory.
pub struct Sharing {
    blocks: HashMap<u64, Box<Block>, Hasher>,
    /// By the last bits of the granule's number.
    latest: Vec<Done>,
}

impl Sharing {
    pub fn new() -> Sharing {
        Sharing { blocks: HashMap::default(), latest: vec![Done::default(); LATEST] }
    }

    /// Thread `index` accesses memory. Tells `report` what is shared from now on: starts and lengths.
    pub fn access(
        &mut self,
        index: ThreadIndex,
        address: u64,
        size: u64,
        write: bool,
        report: &mut impl FnMut(u64, u64),
    ) {
        let thread = index.number() as u16 + 1;
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
                    report_runs(granule << 3, new, report);
                }
            }
            at = upto;
        }
    }

    /// Forgets what threads did to this memory, because it is allocated anew.
    pub fn forget(&mut self, address: u64, size: u64) {
        for granule in self.accessed_granules(address, size) {
            if let Some(block) = self.blocks.get_mut(&(granule >> BLOCK_BITS)) {
                block[place(granule)] = Granule::default();
                *self.latest(granule) = Done::default();
            }
        }
    }

    /// Thread `index` frees memory. That counts as a write to all bytes that were accessed.
    pub fn free(&mut self, index: ThreadIndex, address: u64, size: u64, report: &mut impl FnMut(u64, u64)) {
        for granule in self.accessed_granules(address, size) {
            self.access(index, granule << 3, 8, true, report);
        }
    }

    fn latest(&mut self, granule: u64) -> &mut Done {
        &mut self.latest[granule as usize % LATEST]
    }

    /// The granules of this memory that were accessed. Goes through the memory or through the known blocks, whichever
    /// are fewer.
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
}

fn empty_block() -> Box<Block> {
    Box::new([Granule::default(); 1 << BLOCK_BITS])
}

/// Reports the bytes of a granule that `bits` names, in runs.
fn report_runs(granule: u64, bits: u8, report: &mut impl FnMut(u64, u64)) {
    let mut bits = bits;
    let mut start = granule;
    while bits != 0 {
        let skipped = bits.trailing_zeros();
        start += u64::from(skipped);
        bits >>= skipped;
        let len = bits.trailing_ones();
        report(start, u64::from(len));
        start += u64::from(len);
        bits = bits.checked_shr(len).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: bool = false;
    const WRITE: bool = true;

    /// What is reported when threads access memory as listed: thread, address, size, and whether it writes.
    fn reports(sharing: &mut Sharing, accesses: &[(u32, u64, u64, bool)]) -> Vec<(u64, u64)> {
        let mut reports = Vec::new();
        for &(thread, address, size, write) in accesses {
            sharing.access(ThreadIndex::new(thread), address, size, write, &mut |start, len| {
                reports.push((start, len))
            });
        }
        reports
    }

    /// Shared means: two threads, and one of them writes. Anything less must not cost a schedule point.
    #[test]
    fn it_takes_two_threads_and_a_write() {
        let one_thread = [(0, 64, 8, WRITE), (0, 64, 8, READ)];
        let two_readers = [(0, 128, 8, READ), (1, 128, 8, READ)];
        assert_eq!(reports(&mut Sharing::new(), &one_thread), []);
        assert_eq!(reports(&mut Sharing::new(), &two_readers), []);
        for accesses in [[(0, 64, 8, WRITE), (1, 64, 8, READ)], [(0, 64, 8, READ), (1, 64, 8, WRITE)]] {
            assert_eq!(reports(&mut Sharing::new(), &accesses), [(64, 8)]);
        }
    }

    /// A byte is reported once, whatever else happens to it.
    #[test]
    fn a_byte_is_reported_once() {
        let mut sharing = Sharing::new();
        let accesses = [(0, 64, 4, WRITE), (1, 64, 4, WRITE), (0, 64, 4, WRITE), (2, 64, 4, READ)];
        assert_eq!(reports(&mut sharing, &accesses), [(64, 4)]);
    }

    /// Only the bytes that both have accessed are shared, not the word around them.
    #[test]
    fn neighbours_are_told_apart() {
        let mut sharing = Sharing::new();
        let accesses = [(0, 64, 2, WRITE), (1, 66, 2, WRITE), (0, 70, 1, READ), (1, 64, 8, READ)];
        assert_eq!(reports(&mut sharing, &accesses), [(64, 2)]);
        assert_eq!(reports(&mut sharing, &[(1, 70, 1, WRITE)]), [(70, 1)]);
    }

    /// An access may begin in one granule and end in another.
    #[test]
    fn accesses_cross_granules() {
        let mut sharing = Sharing::new();
        assert_eq!(
            reports(&mut sharing, &[(0, 60, 16, WRITE), (1, 60, 16, READ)]),
            [(60, 4), (64, 8), (72, 4)]
        );
    }

    /// Memory that is allocated anew is nobody's, though two threads have used the bytes.
    #[test]
    fn what_is_allocated_anew_has_no_past() {
        let mut sharing = Sharing::new();
        reports(&mut sharing, &[(0, 64, 8, WRITE), (0, 80, 8, WRITE)]);
        sharing.forget(64, 8);
        assert_eq!(reports(&mut sharing, &[(1, 64, 8, WRITE), (1, 80, 8, READ)]), [(80, 8)]);
    }

    /// A thread that frees what another has used writes to it: the two may come in either order.
    #[test]
    fn freeing_is_writing() {
        let mut sharing = Sharing::new();
        reports(&mut sharing, &[(0, 64, 4, READ)]);
        let mut freed = Vec::new();
        sharing.free(ThreadIndex::new(1), 64, 100, &mut |start, len| freed.push((start, len)));
        assert_eq!(freed, [(64, 4)]);
    }
}
