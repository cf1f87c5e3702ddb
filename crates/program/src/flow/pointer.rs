//! Calls through a register that can hold one function only.
//!
//! rustc without optimisation loads the address of a function of another crate from the global offset table and calls
//! the register; with optimisation it may do so far ahead, for several calls. The register is followed back to all the
//! places that set it. Only if those agree on one constant slot or address is the callee known; memory is not followed,
//! so that this is certain.

use std::collections::HashSet;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::function::{BlockEnd, BlockIndex, Callee, Flow};
use super::pieces::Pieces;
use super::{callee, no_return};
use crate::image::Image;

/// How many blocks are looked at for one call.
const MAX_BLOCKS: usize = 64;

/// Finds the callees of calls through registers.
pub(super) fn resolve(image: &Image, pieces: &Pieces, flow: &mut Flow) {
    let is_indirect =
        |block: &BlockIndex| flow[*block].call.as_ref().is_some_and(|call| call.callee == Callee::Indirect);
    let blocks: Vec<BlockIndex> = flow.indices().filter(is_indirect).collect();
    if blocks.is_empty() {
        return;
    }
    let search = Search { predecessors: flow.predecessors(), image, pieces };
    let found: Vec<(BlockIndex, Callee)> =
        blocks.into_iter().filter_map(|block| Some((block, search.callee(flow, block)?))).collect();
    for (block, callee) in found {
        let block = &mut flow.blocks[block.index()];
        let Some(call) = &mut block.call else { continue };
        if block.end == BlockEnd::Call && no_return::is_known_by_name(image, &callee) {
            block.end = BlockEnd::NoReturn;
            block.successors = call.landing_pad.into_iter().collect();
        }
        call.callee = callee;
    }
}

struct Search<'image> {
    predecessors: Vec<Vec<BlockIndex>>,
    image: &'image Image,
    pieces: &'image Pieces,
}

impl Search<'_> {
    fn callee(&self, flow: &Flow, block: BlockIndex) -> Option<Callee> {
        let instructions: Vec<Instruction> = flow.instructions(block).collect();
        let (call, before) = instructions.split_last()?;
        let register = (call.op0_kind() == OpKind::Register).then(|| call.op0_register().full_register())?;
        let mut factory = InstructionInfoFactory::new();
        if let Some(set) = before.iter().rev().find(|at| sets(&mut factory, at, register)) {
            return self.constant(set);
        }
        let (mut found, mut seen) = (None, HashSet::new());
        let mut open = self.before(flow, block)?;
        while let Some(block) = open.pop() {
            if !seen.insert(block) {
                continue;
            }
            if seen.len() > MAX_BLOCKS {
                return None;
            }
            let instructions: Vec<Instruction> = flow.instructions(block).collect();
            match instructions.iter().rev().find(|at| sets(&mut factory, at, register)) {
                Some(set) => {
                    let callee = self.constant(set)?;
                    if *found.get_or_insert_with(|| callee.clone()) != callee {
                        return None;
                    }
                }
                None => open.extend(self.before(flow, block)?),
            }
        }
        found
    }

    /// The blocks before a block; `None` if it is entered from outside.
    fn before(&self, flow: &Flow, block: BlockIndex) -> Option<Vec<BlockIndex>> {
        (block != flow.entry_block).then(|| self.predecessors[block.index()].clone())
    }

    /// The function whose address an instruction loads from a slot, or computes.
    fn constant(&self, at: &Instruction) -> Option<Callee> {
        let callee = match (at.mnemonic(), at.is_ip_rel_memory_operand()) {
            (Mnemonic::Mov, true) if at.op1_kind() == OpKind::Memory => {
                callee::through(self.image, self.pieces, at.ip_rel_memory_address())
            }
            (Mnemonic::Lea, true) => callee::direct(self.image, self.pieces, at.ip_rel_memory_address()),
            _ => return None,
        };
        (callee != Callee::Indirect).then_some(callee)
    }
}

/// An instruction changes a register, or may do so.
pub(super) fn sets(factory: &mut InstructionInfoFactory, at: &Instruction, register: Register) -> bool {
    /// What a called function leaves as it was.
    const KEPT: [Register; 6] =
        [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
    if matches!(at.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        return !KEPT.contains(&register);
    }
    factory.info(at).used_registers().iter().any(|used| {
        used.register().full_register() == register
            && !matches!(
                used.access(),
                OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            )
    })
}
