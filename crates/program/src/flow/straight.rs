//! The instructions that are executed before and after a call, whatever the branches around it decide.

use iced_x86::{Instruction, Register};

use super::function::{BlockEnd, BlockIndex, Flow};
use super::symbolic::{State, Value};

/// How many blocks are looked at on each side. Values are set up close to the call that takes them.
const MAX_BLOCKS: usize = 12;

/// The blocks that always come before `block`, the first of them first, and `block` itself.
fn before(predecessors: &[Vec<BlockIndex>], block: BlockIndex) -> Vec<BlockIndex> {
    let mut path = vec![block];
    while let Some(&first) = path.last()
        && let [only] = predecessors[first.index()][..]
        && path.len() < MAX_BLOCKS
        && !path.contains(&only)
    {
        path.push(only);
    }
    path.reverse();
    path
}

/// The blocks that follow `block` up to the next branch, unless an exception is thrown.
pub(super) fn after(flow: &Flow, block: BlockIndex) -> Vec<BlockIndex> {
    let mut path = Vec::new();
    let mut last = block;
    while matches!(flow[last].end, BlockEnd::FallThrough | BlockEnd::Jump | BlockEnd::Call)
        && let Some(&next) = flow[last].successors.first()
        && path.len() < MAX_BLOCKS
    {
        path.push(next);
        last = next;
    }
    path
}

/// The instructions of blocks that are executed one after another.
pub(super) fn instructions(flow: &Flow, path: &[BlockIndex]) -> Vec<Instruction> {
    path.iter().flat_map(|&block| flow.instructions(block)).collect()
}

/// What a register holds when the call at the end of `block` is made, with the state to go on from.
pub(super) fn argument(
    flow: &Flow,
    predecessors: &[Vec<BlockIndex>],
    block: BlockIndex,
    register: Register,
) -> Option<(Value, State)> {
    let path = instructions(flow, &before(predecessors, block));
    let (_, before) = path.split_last()?;
    let mut state = State::new();
    for (at, next) in before.iter().zip(&path[1..]) {
        state.step(at, next.ip());
    }
    Some((state.register(register)?, state))
}
