//! The calls a function makes, by decoding its instructions.
//!
//! x86-64 compilers keep data out of code, so a function can be decoded from its first byte to its last.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::image::Image;
use crate::symbols::{Kind, Symbol};

/// One call instruction; addresses are as linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) return_address: u64,
    /// The linkage name of the called function; empty for a call through a pointer.
    pub(crate) callee: String,
}

/// The instructions of a function.
pub(crate) fn instructions<'image>(image: &'image Image, function: &Symbol) -> Decoder<'image> {
    let code = image.loaded(function.address, function.size).unwrap_or_default();
    Decoder::with_ip(64, code, function.address, DecoderOptions::NONE)
}

/// The calls of a function, in address order.
pub(crate) fn calls(image: &Image, function: &Symbol) -> Vec<Call> {
    let calls = instructions(image, function).into_iter().filter(|at| at.mnemonic() == Mnemonic::Call);
    calls.map(|call| Call { return_address: call.next_ip(), callee: callee(image, &call) }).collect()
}

/// The linkage name of what an instruction calls or jumps to; empty if that is not known.
pub(crate) fn callee(image: &Image, call: &Instruction) -> String {
    let name = match call.op0_kind() {
        OpKind::NearBranch64 => direct(image, call.near_branch_target()),
        OpKind::Memory => slot_address(call).and_then(|address| image.slot(address)),
        _ => None,
    };
    name.unwrap_or_default().to_string()
}

/// The function at `target`, or the one that the stub there jumps to. A stub is recognised by its instructions, because
/// its section (`.plt`, `.plt.sec` or `.plt.got`) depends on the linker.
fn direct(image: &Image, target: u64) -> Option<&str> {
    /// `endbr64` and a jump, with room for the longest encoding of both.
    const STUB: u64 = 16;
    if let Some(function) = image.symbols.starting_at(target, Kind::Function) {
        return Some(&function.name);
    }
    let stub = Decoder::with_ip(64, image.loaded(target, STUB)?, target, DecoderOptions::NONE);
    let jump = stub.into_iter().find(|at| at.mnemonic() != Mnemonic::Endbr64)?;
    match jump.code() {
        Code::Jmp_rm64 => image.slot(slot_address(&jump)?),
        _ => None,
    }
}

/// The fixed address that an instruction reads its target from.
fn slot_address(at: &Instruction) -> Option<u64> {
    let fixed = matches!(at.memory_base(), Register::RIP | Register::None)
        && at.memory_index() == Register::None
        && at.op0_kind() == OpKind::Memory;
    // For addresses relative to the instruction pointer the decoder has added that already.
    fixed.then(|| at.memory_displacement64())
}
