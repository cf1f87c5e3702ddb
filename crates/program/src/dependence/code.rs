//! One function, decoded, with what each of its calls does.

use std::ops::Range;
use std::sync::Arc;

use iced_x86::Instruction;

use super::effect::{Effect, Effects};
use super::summary::Summary;
use crate::flow::{BlockEnd, Flow};

/// One function in the form that the analysis walks over.
pub(super) struct Code {
    pub(super) flow: Arc<Flow>,
    /// The instructions of all blocks, one block after another.
    pub(super) instructions: Vec<Instruction>,
    pub(super) effects: Vec<Effect>,
    /// The instructions of each block.
    pub(super) blocks: Vec<Range<usize>>,
    /// The block of each instruction.
    pub(super) block_of: Vec<u32>,
    /// The reachable predecessors of each block.
    pub(super) predecessors: Vec<Vec<usize>>,
    pub(super) reachable: Vec<bool>,
    /// What the call at the end of each block does.
    pub(super) calls: Vec<Option<Arc<Summary>>>,
}

impl Code {
    /// `calls` gives what the call at the end of each block does.
    pub(super) fn new(flow: Arc<Flow>, calls: Vec<Option<Arc<Summary>>>) -> Code {
        let reachable = flow.reachable();
        let (mut instructions, mut blocks, mut block_of) = (Vec::new(), Vec::new(), Vec::new());
        for (number, index) in flow.indices().enumerate() {
            let start = instructions.len();
            instructions.extend(flow.instructions(index));
            blocks.push(start..instructions.len());
            block_of.resize(instructions.len(), u32::try_from(number).unwrap_or(u32::MAX));
        }
        let mut factory = Effects::new();
        let effects = instructions.iter().map(|at| factory.of(at)).collect();
        let predecessors = flow
            .predecessors()
            .into_iter()
            .map(|all| all.into_iter().map(|block| block.index()).filter(|&block| reachable[block]).collect())
            .collect();
        Code { flow, instructions, effects, blocks, block_of, predecessors, reachable, calls }
    }

    pub(super) fn block_of(&self, instruction: usize) -> usize {
        self.block_of[instruction] as usize
    }

    pub(super) fn entry(&self) -> usize {
        self.flow.entry_block.index()
    }

    /// The blocks at whose end the function returns to its caller.
    pub(super) fn exits(&self) -> impl Iterator<Item = usize> {
        (0..self.blocks.len()).filter(|&block| {
            let end = &self.flow.blocks[block].end;
            let returns =
                matches!(end, BlockEnd::Return | BlockEnd::TailCall | BlockEnd::ConditionalTailCall);
            self.reachable[block] && returns
        })
    }

    /// The call at the end of a block is a jump, so that the callee has this function's frame for its own.
    pub(super) fn is_tail_call(&self, block: usize) -> bool {
        matches!(self.flow.blocks[block].end, BlockEnd::TailCall | BlockEnd::ConditionalTailCall)
    }

    /// The block can be left to its successors without the call at its end having been made.
    pub(super) fn continues_without_call(&self, block: usize) -> bool {
        self.flow.blocks[block].end == BlockEnd::ConditionalTailCall
    }
}
