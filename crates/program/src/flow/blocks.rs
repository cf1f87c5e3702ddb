//! From the instructions of a function to its blocks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::descent::{Descent, Exit};
use super::function::{Block, BlockEnd, BlockIndex, Call, Callee, Code, Flow, JumpTable};
use super::pieces::Pieces;

/// The blocks of the function that is entered at `entry`.
pub(super) fn flow(descent: &Descent<'_>, pieces: &Pieces, entry: u64) -> Option<Flow> {
    let mut ranges: Vec<Range<u64>> = descent.parts.iter().map(|part| part.range.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    let offsets = ranges.iter().map(|range| descent.image.file_offset(range.start));
    let code = Code { file: descent.image.bytes().clone(), offsets: offsets.collect::<Option<_>>()? };

    let raw = cut(descent, &leaders(descent, entry));
    let indices: HashMap<u64, BlockIndex> = raw
        .iter()
        .enumerate()
        .filter_map(|(index, block)| Some((block.range.start, BlockIndex(index.try_into().ok()?))))
        .collect();
    let linker = Linker { descent, pieces, indices: &indices };
    let blocks = raw.iter().map(|block| linker.block(block)).collect();
    let entry_block = *indices.get(&entry)?;
    let landing_pads: BTreeSet<BlockIndex> =
        descent.landing_pads.iter().filter_map(|sites| indices.get(&sites.landing_pad).copied()).collect();
    let landing_pads = landing_pads.into_iter().collect();
    Some(Flow { entry, ranges, blocks, entry_block, landing_pads, code })
}

/// A block before it is linked to others.
struct RawBlock {
    range: Range<u64>,
    /// The address of its last instruction.
    last: u64,
}

/// The addresses at which a block starts, apart from those behind an exit.
fn leaders(descent: &Descent<'_>, entry: u64) -> BTreeSet<u64> {
    let mut leaders = BTreeSet::from([entry]);
    for exit in descent.exits.values() {
        match exit {
            Exit::Jump(target) | Exit::Branch(target) => {
                leaders.insert(*target);
            }
            Exit::Table { targets, .. } => leaders.extend(targets),
            _ => {}
        }
    }
    leaders.extend(descent.landing_pads.iter().map(|sites| sites.landing_pad));
    // Where instructions overlap, because one jumps behind the prefix of another, they go on at the same address.
    for part in &descent.parts {
        let mut end = part.range.start;
        for (address, length) in part.instructions() {
            if address < end {
                leaders.insert(end);
            }
            end = address + length;
        }
    }
    leaders
}

fn cut(descent: &Descent<'_>, leaders: &BTreeSet<u64>) -> Vec<RawBlock> {
    let mut parts: Vec<_> = descent.parts.iter().collect();
    parts.sort_by_key(|part| part.range.start);
    let mut blocks: Vec<RawBlock> = Vec::new();
    for part in parts {
        let mut open: Option<RawBlock> = None;
        for (address, length) in part.instructions() {
            let goes_on = open.as_ref().is_some_and(|block| block.range.end == address);
            if !goes_on || leaders.contains(&address) {
                blocks.extend(open.take());
            }
            let start = open.take().map_or(address, |block| block.range.start);
            let block = RawBlock { range: start..address + length, last: address };
            if descent.exits.contains_key(&address) {
                blocks.push(block);
            } else {
                open = Some(block);
            }
        }
        blocks.extend(open);
    }
    blocks
}

/// Finds the successors of blocks.
struct Linker<'flow> {
    descent: &'flow Descent<'flow>,
    pieces: &'flow Pieces,
    /// By start.
    indices: &'flow HashMap<u64, BlockIndex>,
}

impl Linker<'_> {
    fn block(&self, raw: &RawBlock) -> Block {
        let next = raw.range.end;
        let call = |callee: &Callee| Call {
            address: raw.last,
            return_address: next,
            callee: callee.clone(),
            landing_pad: None,
        };
        let (end, targets, call) = match self.descent.exits.get(&raw.last) {
            None => self.falls_through(raw),
            Some(Exit::Jump(target)) => (BlockEnd::Jump, vec![*target], None),
            Some(Exit::Branch(target)) => (BlockEnd::Branch, vec![*target, next], None),
            Some(Exit::Table { address, targets, is_guessed }) => {
                let blocks = targets.iter().filter_map(|target| self.indices.get(target).copied()).collect();
                let table = JumpTable { address: *address, targets: blocks, is_guessed: *is_guessed };
                (BlockEnd::Switch(Box::new(table)), targets.clone(), None)
            }
            Some(Exit::Unresolved) => (BlockEnd::UnresolvedJump, Vec::new(), None),
            Some(Exit::Return) => (BlockEnd::Return, Vec::new(), None),
            Some(Exit::Trap) => (BlockEnd::Trap, Vec::new(), None),
            Some(Exit::TailCall(callee)) => (BlockEnd::TailCall, Vec::new(), Some(call(callee))),
            Some(Exit::ConditionalTailCall(callee)) => {
                (BlockEnd::ConditionalTailCall, vec![next], Some(call(callee)))
            }
            // A compiler leaves out the code behind a call only if it knows that the call never returns.
            Some(Exit::Call(callee)) if self.indices.contains_key(&next) => {
                (BlockEnd::Call, vec![next], Some(call(callee)))
            }
            Some(Exit::Call(callee) | Exit::NoReturn(callee)) => {
                (BlockEnd::NoReturn, Vec::new(), Some(call(callee)))
            }
        };
        self.linked(raw, end, &targets, call)
    }

    fn linked(&self, raw: &RawBlock, end: BlockEnd, targets: &[u64], call: Option<Call>) -> Block {
        let mut call = call;
        if matches!(end, BlockEnd::Call | BlockEnd::NoReturn)
            && let Some(call) = &mut call
        {
            call.landing_pad = self.landing_pad(raw.last);
        }
        let targets = targets.iter().filter_map(|target| self.indices.get(target).copied());
        let mut seen = HashSet::new();
        let all = targets.chain(call.as_ref().and_then(|call| call.landing_pad));
        let successors = all.filter(|&block| seen.insert(block)).collect();
        Block { range: raw.range.clone(), end, successors, call }
    }

    fn falls_through(&self, raw: &RawBlock) -> (BlockEnd, Vec<u64>, Option<Call>) {
        let next = raw.range.end;
        if self.indices.contains_key(&next) {
            return (BlockEnd::FallThrough, vec![next], None);
        }
        if self.pieces.starting_at(next).is_none() {
            return (BlockEnd::OutOfCode, Vec::new(), None);
        }
        let callee = Callee::Function(next);
        let call = Call { address: raw.last, return_address: next, callee, landing_pad: None };
        (BlockEnd::TailCall, Vec::new(), Some(call))
    }

    fn landing_pad(&self, call: u64) -> Option<BlockIndex> {
        let sites = &self.descent.landing_pads;
        let before = sites.partition_point(|sites| sites.calls.start <= call);
        let sites = sites[..before].last().filter(|sites| sites.calls.contains(&call))?;
        self.indices.get(&sites.landing_pad).copied()
    }
}
