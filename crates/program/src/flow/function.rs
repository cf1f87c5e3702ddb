//! The control flow of one function, as data.

use std::ops::{Index, Range};
use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, Instruction};

/// The control flow of one function. All addresses are as linked.
///
/// A block ends behind every call, so that a call is the last instruction of its block: where a call returns to and
/// where an exception leaves it are edges, and the distance between two calls is a distance between blocks.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The first instruction.
    pub entry: u64,
    /// The code, by address: the function's own range, and the parts that the compiler moved elsewhere (`f.cold`).
    pub ranges: Vec<Range<u64>>,
    /// By address. Some may be unreachable, such as the code behind a call that never returns.
    pub blocks: Vec<Block>,
    /// The block of `entry`.
    pub entry_block: BlockIndex,
    /// The blocks where execution goes on after an exception or a panic, by address. There may be some that no call
    /// leads to, because the call was optimised away.
    pub landing_pads: Vec<BlockIndex>,
    pub(super) code: Code,
}

/// A position in [`Flow::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockIndex(pub u32);

/// Instructions that are executed one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub range: Range<u64>,
    /// How its last instruction goes on.
    pub end: BlockEnd,
    /// Every block that may come next, each once. [`BlockEnd`] says in what order; a landing pad is the last.
    pub successors: Vec<BlockIndex>,
    /// The call or tail call that ends it.
    pub call: Option<Call>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    /// The next instruction begins a block, because it is jumped to.
    FallThrough,
    Jump,
    /// Jumps or goes on. The successors are the target and the next instruction; one, if those are the same.
    Branch,
    /// A jump through a table. The successors are its targets.
    Switch(Box<JumpTable>),
    /// A jump to an address that could not be found out. It has no successors, or those that the table may have that is
    /// named by the code.
    UnresolvedJump,
    Return,
    /// A jump to another function, which returns to this one's caller. It has no successors.
    TailCall,
    /// A branch to another function. The successor is the next instruction.
    ConditionalTailCall,
    /// A call that may return. The first successor is where it returns to.
    Call,
    /// A call that never returns. It has a landing pad for a successor at most.
    NoReturn,
    /// An instruction that ends the program, such as `ud2`.
    Trap,
    /// The bytes behind the block are no code of this function, or no code at all.
    OutOfCode,
}

/// A call or tail call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub address: u64,
    /// The address behind the instruction, which is what the hooks of a run see.
    pub return_address: u64,
    pub callee: Callee,
    /// Where execution goes on in this function if the callee throws or panics.
    pub landing_pad: Option<BlockIndex>,
}

/// What a call leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A function of the same file, by address.
    Function(u64),
    /// A function that the loader finds by its linkage name, perhaps in the same file.
    Import(Arc<str>),
    /// Known at run time only.
    Indirect,
}

/// A table of jump targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JumpTable {
    pub address: u64,
    /// The target of each entry, by index.
    pub targets: Vec<BlockIndex>,
    /// No comparison that bounds the index was found. The table was read as far as its entries lead into the function.
    pub is_guessed: bool,
}

/// Where the bytes of a function are in its file.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) file: Arc<[u8]>,
    /// The position in the file of each range of [`Flow::ranges`].
    pub(super) offsets: Vec<usize>,
}

impl BlockIndex {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Index<BlockIndex> for Flow {
    type Output = Block;

    fn index(&self, block: BlockIndex) -> &Block {
        &self.blocks[block.index()]
    }
}

impl Flow {
    /// The block with the instruction at or around `address`.
    pub fn block_at(&self, address: u64) -> Option<BlockIndex> {
        let end = self.blocks.partition_point(|block| block.range.start <= address);
        let last = end.checked_sub(1)?;
        self.blocks[last].range.contains(&address).then(|| BlockIndex(last.try_into().unwrap_or(u32::MAX)))
    }

    /// The block that ends with the call that returns to `return_address`.
    pub fn block_of_call(&self, return_address: u64) -> Option<BlockIndex> {
        let block = self.block_at(return_address.checked_sub(1)?)?;
        self[block].call.as_ref().filter(|call| call.return_address == return_address).map(|_| block)
    }

    /// All positions in `blocks`.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = BlockIndex> + use<> {
        (0..self.blocks.len()).map(|index| BlockIndex(index.try_into().unwrap_or(u32::MAX)))
    }

    /// All calls and tail calls, by address.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| block.call.as_ref())
    }

    /// The blocks that may come just before each block.
    pub fn predecessors(&self) -> Vec<Vec<BlockIndex>> {
        let mut predecessors = vec![Vec::new(); self.blocks.len()];
        for (index, block) in self.indices().zip(&self.blocks) {
            for successor in &block.successors {
                predecessors[successor.index()].push(index);
            }
        }
        predecessors
    }

    /// Which blocks can be reached from the entry.
    pub fn reachable(&self) -> Vec<bool> {
        let mut reached = vec![false; self.blocks.len()];
        let mut open = vec![self.entry_block];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut reached[block.index()], true) {
                open.extend(&self[block].successors);
            }
        }
        reached
    }

    /// The bytes of an instruction.
    pub(crate) fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.code.bytes(&self.ranges, &(address..address.checked_add(len as u64)?))
    }

    /// The instructions of a block, decoded anew.
    pub fn instructions(&self, block: BlockIndex) -> impl Iterator<Item = Instruction> {
        let range = self[block].range.clone();
        let bytes = self.code.bytes(&self.ranges, &range).unwrap_or_default();
        Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE).into_iter()
    }
}

impl Code {
    fn bytes(&self, ranges: &[Range<u64>], block: &Range<u64>) -> Option<&[u8]> {
        let number = ranges.iter().position(|range| range.contains(&block.start))?;
        let skip = usize::try_from(block.start - ranges[number].start).ok()?;
        let start = self.offsets.get(number)?.checked_add(skip)?;
        let end = start.checked_add(usize::try_from(block.end.checked_sub(block.start)?).ok()?)?;
        self.file.get(start..end)
    }
}
