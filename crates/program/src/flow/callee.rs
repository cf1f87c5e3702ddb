//! What calls and tail calls lead to.

use std::sync::Arc;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::function::Callee;
use super::pieces::Pieces;
use crate::image::{Image, Slot};
use crate::symbols::Kind;

/// What a call or jump instruction leads to.
pub(super) fn of(image: &Image, pieces: &Pieces, at: &Instruction) -> Callee {
    match at.op0_kind() {
        OpKind::NearBranch64 => direct(image, pieces, at.near_branch_target()),
        OpKind::Memory => slot(at).map_or(Callee::Indirect, |slot| through(image, pieces, slot)),
        _ => Callee::Indirect,
    }
}

/// The function at `target`, or the one that the linker's stub there leads to.
pub(super) fn direct(image: &Image, pieces: &Pieces, target: u64) -> Callee {
    /// `endbr64` and a jump, with room for the longest encoding of both.
    const STUB: u64 = 16;
    if !pieces.is_stub(target) {
        return Callee::Function(target);
    }
    let code = image.loaded(target, STUB).unwrap_or_default();
    let mut stub = Decoder::with_ip(64, code, target, DecoderOptions::NONE).into_iter();
    let jump =
        stub.find(|at| at.mnemonic() != Mnemonic::Endbr64).filter(|jump| jump.code() == Code::Jmp_rm64);
    jump.and_then(|jump| slot(&jump)).map_or(Callee::Indirect, |slot| through(image, pieces, slot))
}

/// What a slot leads to that is not written to after the program is loaded.
pub(super) fn through(image: &Image, pieces: &Pieces, slot: u64) -> Callee {
    if !pieces.is_constant(slot) {
        return Callee::Indirect;
    }
    let name = |name: &str| Callee::Import(Arc::from(name));
    match image.slots().get(&slot) {
        Some(Slot::Symbol(symbol)) => name(symbol),
        Some(Slot::Address(target)) => Callee::Function(*target),
        Some(Slot::Resolver(resolver)) => {
            let symbol = image.symbols.starting_at(*resolver, Kind::Function);
            symbol.map_or(Callee::Indirect, |symbol| name(&symbol.name))
        }
        None => {
            let bytes = image.loaded(slot, 8).and_then(|bytes| bytes.try_into().ok());
            let target = bytes.map(u64::from_le_bytes).filter(|&target| pieces.is_code(target));
            target.map_or(Callee::Indirect, Callee::Function)
        }
    }
}

/// The fixed address that an instruction reads its target from.
fn slot(at: &Instruction) -> Option<u64> {
    let fixed = matches!(at.memory_base(), Register::RIP | Register::None)
        && at.memory_index() == Register::None
        && at.segment_prefix() == Register::None
        && at.op0_kind() == OpKind::Memory;
    // For addresses relative to the instruction pointer the decoder has added that already.
    fixed.then(|| at.memory_displacement64())
}
