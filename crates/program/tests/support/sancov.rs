//! LLVM's own list of blocks, successors and callees, which `-sanitizer-coverage-control-flow` puts into a program.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};
use threadbare_program::flow::{BlockEnd, BlockIndex, Callee, Flow, ModuleCode};

/// A block as LLVM saw it when the coverage pass ran. Addresses are as linked.
pub struct ListedBlock {
    pub start: u64,
    pub successors: Vec<u64>,
    /// Functions of the same file that it calls.
    pub callees: Vec<u64>,
}

/// A word of the section: what the loader puts there, or what the file has.
enum Word {
    Address(u64),
    Import,
    Plain(u64),
}

/// Stands for the address of a block that a later pass removed.
const REMOVED: u64 = 1;

/// Reads `__sancov_cfs`: for each block its address, its successors up to a zero and its callees up to a zero.
pub fn listed_blocks(executable: &Path) -> Vec<ListedBlock> {
    let bytes = std::fs::read(executable).expect("the program was built");
    let elf = object::File::parse(&*bytes).expect("it is an ELF file");
    let section = elf.section_by_name("__sancov_cfs").expect("it was built with the list");
    let relocations: HashMap<u64, object::Relocation> =
        elf.dynamic_relocations().into_iter().flatten().collect();
    let mut words =
        section.data().expect("it has contents").chunks_exact(8).enumerate().map(|(number, bytes)| {
            match relocations.get(&(section.address() + 8 * number as u64)) {
                Some(relocation) => match relocation.target() {
                    // A shared object refers to its own functions by name.
                    object::RelocationTarget::Symbol(index) => {
                        let symbols = elf.dynamic_symbol_table().expect("it refers to symbols");
                        let symbol = symbols.symbol_by_index(index).expect("the symbol is there");
                        if symbol.is_definition() { Word::Address(symbol.address()) } else { Word::Import }
                    }
                    _ => Word::Address(relocation.addend().cast_unsigned()),
                },
                None => Word::Plain(u64::from_le_bytes(bytes.try_into().expect("eight bytes"))),
            }
        });
    let mut blocks = Vec::new();
    while let Some(first) = words.next() {
        let mut list =
            || -> Vec<Word> { words.by_ref().take_while(|word| !matches!(word, Word::Plain(0))).collect() };
        let (successors, callees) = (list(), list());
        let addresses = |list: &[Word]| {
            list.iter()
                .filter_map(|word| if let Word::Address(address) = word { Some(*address) } else { None })
                .collect()
        };
        if let Word::Address(start) = first {
            let (successors, callees) = (addresses(&successors), addresses(&callees));
            blocks.push(ListedBlock { start, successors, callees });
        } else {
            assert!(matches!(first, Word::Plain(REMOVED)), "the list is read in step");
        }
    }
    blocks
}

/// What was compared, and what of LLVM's list is missing.
#[derive(Debug, Default)]
pub struct Comparison {
    pub blocks: usize,
    pub edges: usize,
    pub calls: usize,
    pub missing: Vec<String>,
}

/// How far the passes that ran after the list was made may have changed the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// They were switched off as far as LLVM allows. A block may still be copied to the end of another one.
    Same,
    /// They removed blocks, whose labels then stand for what follows. An edge has become a path.
    Rearranged,
}

/// Looks for every edge and call of the list in our control flow.
pub fn compare(code: &ModuleCode<'_>, listed: &[ListedBlock], likeness: Likeness) -> Comparison {
    let mut oracle = Oracle { code, listed: HashMap::new(), likeness };
    for block in listed {
        oracle.listed.entry(block.start).or_default().push(block);
    }
    let mut comparison = Comparison::default();
    for block in listed {
        comparison.blocks += 1;
        oracle.check(block, &mut comparison);
    }
    comparison
}

/// How many blocks in a row may be copied.
const MAX_COPIED: usize = 3;

struct Oracle<'a> {
    code: &'a ModuleCode<'a>,
    /// By start. Where blocks were joined, their labels are at one address.
    listed: HashMap<u64, Vec<&'a ListedBlock>>,
    likeness: Likeness,
}

impl Oracle<'_> {
    fn check(&self, block: &ListedBlock, comparison: &mut Comparison) {
        let Some(flow) = self.code.function_at(block.start).and_then(|entry| self.code.flow(entry)) else {
            return;
        };
        let Some(from) = flow.block_at(block.start) else { return };
        let region = self.region(&flow, from);
        // Where several labels are at one address, all blocks but one were removed, and it is not known which.
        let is_joined = |address: &u64| {
            self.likeness == Likeness::Rearranged
                && self.listed.get(address).is_some_and(|blocks| blocks.len() > 1)
        };
        for &successor in block.successors.iter().filter(|successor| !is_joined(successor)) {
            comparison.edges += 1;
            if self.leads_to(&flow, &region, successor, 0) {
                continue;
            }
            if self.is_exception_of_nothing(&flow, from, &region, successor) {
                continue;
            }
            let behind = self.behind_calls(&flow, &region);
            if behind.is_empty() || !self.leads_to(&flow, &behind, successor, 0) {
                comparison
                    .missing
                    .push(format!("edge {:#x} -> {successor:#x} in {:#x}", block.start, flow.entry));
            }
        }
        let callees: Vec<&Callee> =
            region.iter().filter_map(|&block| flow[block].call.as_ref()).map(|call| &call.callee).collect();
        let is_indirect = callees.contains(&&Callee::Indirect);
        let address = |callee: &Callee| match callee {
            Callee::Function(address) => Some(*address),
            Callee::Import(name) => self.code.definition(name),
            Callee::Indirect => None,
        };
        let callees: HashSet<u64> = callees.into_iter().filter_map(address).collect();
        for callee in &block.callees {
            comparison.calls += 1;
            if !is_indirect && !callees.contains(callee) {
                comparison
                    .missing
                    .push(format!("call {:#x} -> {callee:#x} in {:#x}", block.start, flow.entry));
            }
        }
    }

    /// The edge to `successor` is there, or needs not be: the block was removed, so that its label is behind the
    /// function; or it is what LLVM puts behind a call that never returns. Or the code of the successor was copied: then
    /// all that it leads to is there, or at least one block if the copy did not need to decide.
    fn leads_to(&self, flow: &Flow, region: &HashSet<BlockIndex>, successor: u64, depth: usize) -> bool {
        let Some(to) = flow.block_at(successor) else { return true };
        let is_unreachable = flow[to].end == BlockEnd::Trap && flow.instructions(to).count() == 1;
        let is_copied = |copied: &ListedBlock| {
            let mut next = copied.successors.iter();
            let decided =
                || depth == 0 && next.clone().any(|&next| self.leads_to(flow, region, next, MAX_COPIED));
            next.len() > 0 && (decided() || next.all(|&next| self.leads_to(flow, region, next, depth + 1)))
        };
        let mut copied = self.listed.get(&successor).into_iter().flatten();
        // A return is copied to make a tail call of the call before it.
        let is_return = flow[to].end == BlockEnd::Return && self.likeness == Likeness::Rearranged;
        let returns = |&block: &BlockIndex| matches!(flow[block].end, BlockEnd::Return | BlockEnd::TailCall);
        is_return && region.iter().any(returns)
            || region.contains(&to)
            || is_unreachable
            || depth < MAX_COPIED && copied.any(|copied| is_copied(copied))
    }

    /// What could be reached if calls returned that we found never to return, although LLVM did not know.
    fn behind_calls(&self, flow: &Flow, region: &HashSet<BlockIndex>) -> HashSet<BlockIndex> {
        let is_found = |block: &&BlockIndex| {
            let callee = flow[**block].call.as_ref().map(|call| &call.callee);
            flow[**block].end == BlockEnd::NoReturn && matches!(callee, Some(Callee::Function(_)))
        };
        let behind = region.iter().filter(is_found).filter_map(|&block| flow.block_at(flow[block].range.end));
        behind.flat_map(|block| self.region(flow, block)).collect()
    }

    /// The blocks that can be reached from `from`. If the code is as LLVM listed it, a path ends where another block of
    /// the list starts: between two of them are only blocks that we end behind a call, and those that LLVM split.
    fn region(&self, flow: &Flow, from: BlockIndex) -> HashSet<BlockIndex> {
        let mut reached = HashSet::from([from]);
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            for &next in &flow[block].successors {
                let goes_on = self.likeness == Likeness::Rearranged
                    || !self.listed.contains_key(&flow[next].range.start);
                if reached.insert(next) && goes_on {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// The block is a landing pad, and what was to throw is no call any more: LLVM takes assembly that contains nothing,
    /// with which the standard library keeps frames, for something that may panic, and it optimises calls away.
    fn is_exception_of_nothing(
        &self,
        flow: &Flow,
        from: BlockIndex,
        region: &HashSet<BlockIndex>,
        successor: u64,
    ) -> bool {
        let is_landing_pad = flow.block_at(successor).is_some_and(|block| flow.landing_pads.contains(&block));
        let is_own = |block: BlockIndex| block == from || !self.listed.contains_key(&flow[block].range.start);
        let mut own =
            region.iter().filter(|&&block| is_own(block)).filter_map(|&block| flow[block].call.as_ref());
        is_landing_pad && own.all(|call| call.landing_pad.is_none())
    }
}
