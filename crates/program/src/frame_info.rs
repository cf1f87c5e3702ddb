//! Where the frame of a function is while it calls another, from `.eh_frame` and, where that names the frame
//! pointer, from the instructions that move the stack pointer.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameOffset, FrameDescriptionEntry, Register, UnwindContext,
    UnwindSection as _,
};
use iced_x86::{Instruction, Mnemonic, OpKind};

use crate::calls;
use crate::image::{Image, Reader};
use crate::symbols::Kind;

/// DWARF's numbers for the frame pointer and the stack pointer.
pub(crate) const RBP: Register = gimli::X86_64::RBP;
pub(crate) const RSP: Register = gimli::X86_64::RSP;

/// How far a frame pointer points below the canonical frame address. The return address and the saved frame pointer are
/// stored between the two.
pub(crate) const FRAME_POINTER_BELOW_CFA: i64 = 16;

/// The unwind tables of one file.
pub(crate) struct FrameInfo {
    bases: BaseAddresses,
    frames: Option<EhFrame<Reader>>,
    /// The tables of functions by address, collected on first use. The file has such a list of its own
    /// (`.eh_frame_hdr`), but a damaged one misleads.
    functions: OnceLock<Vec<(Range<u64>, EhFrameOffset)>>,
}

impl FrameInfo {
    /// `section` gives the address and contents of a section by name.
    pub(crate) fn load(section: impl Fn(&str) -> Option<(u64, Reader)>) -> FrameInfo {
        let mut bases = BaseAddresses::default();
        if let Some((text, _)) = section(".text") {
            bases = bases.set_text(text);
        }
        let frames = section(".eh_frame").map(|(address, reader)| {
            bases = std::mem::take(&mut bases).set_eh_frame(address);
            EhFrame::from(reader)
        });
        FrameInfo { bases, frames, functions: OnceLock::new() }
    }

    /// The code that has tables of its own, by address. It may overlap in a damaged file.
    pub(crate) fn described(&self) -> impl Iterator<Item = &Range<u64>> {
        self.functions().iter().map(|(range, _)| range)
    }

    /// Where the exception table of the code at `address` is, and where that code starts.
    pub(crate) fn exception_table(&self, address: u64) -> Option<(u64, u64)> {
        let table = self.table(address)?;
        match table.lsda()? {
            gimli::Pointer::Direct(exceptions) => Some((exceptions, table.initial_address())),
            gimli::Pointer::Indirect(_) => None,
        }
    }

    fn functions(&self) -> &[(Range<u64>, EhFrameOffset)] {
        let Some(frames) = &self.frames else { return &[] };
        self.functions.get_or_init(|| functions(frames, &self.bases))
    }

    fn table(&self, address: u64) -> Option<FrameDescriptionEntry<Reader>> {
        let functions = self.functions();
        let end = functions.partition_point(|(range, _)| range.start <= address);
        let (_, offset) = functions[..end].last().filter(|(range, _)| range.contains(&address))?;
        self.frames.as_ref()?.fde_from_offset(&self.bases, *offset, EhFrame::cie_from_offset).ok()
    }

    /// The register and offset that give the canonical frame address at an instruction.
    pub(crate) fn cfa(&self, address: u64) -> Option<(Register, i64)> {
        let frames = self.frames.as_ref()?;
        let table = self.table(address)?;
        let mut context = UnwindContext::new();
        let row = table.unwind_info_for_address(frames, &self.bases, &mut context, address).ok()?;
        match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some((register, offset)),
            CfaRule::Expression(_) => None,
        }
    }
}

/// The position of each function's table, by address of the function.
fn functions(frames: &EhFrame<Reader>, bases: &BaseAddresses) -> Vec<(Range<u64>, EhFrameOffset)> {
    let mut found = Vec::new();
    let mut entries = frames.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(table) = partial.parse(EhFrame::cie_from_offset)
        {
            let start = table.initial_address();
            found.push((start..start.saturating_add(table.len()), EhFrameOffset(table.offset())));
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// The canonical frame address less the stack pointer just before the call that returns to `return_address`
/// (as linked).
pub(crate) fn cfa_from_stack_pointer(image: &Image, return_address: u64) -> Option<i64> {
    let inside_call = return_address.checked_sub(1)?;
    match image.debug_info().frames.cfa(inside_call)? {
        (RSP, offset) => Some(offset),
        (RBP, FRAME_POINTER_BELOW_CFA) => frame_size(image, return_address),
        _ => None,
    }
}

/// Whether the function at an address (as linked) finds its frame by the frame pointer there.
pub(crate) fn has_frame_pointer(image: &Image, address: u64) -> bool {
    image.debug_info().frames.cfa(address) == Some((RBP, FRAME_POINTER_BELOW_CFA))
}

/// The same for a function with a frame pointer, whose tables say nothing about the stack pointer: follows it
/// through the instructions. `None` where it is moved by an amount known only at run time.
fn frame_size(image: &Image, return_address: u64) -> Option<i64> {
    let function = image.symbols.at(return_address.checked_sub(1)?, Kind::Function)?;
    // The call that led here has pushed the return address.
    let mut depth = 8_i64;
    // What holds between the prologue and any epilogue, to go on from after a return in mid-function.
    let mut body = None;
    for at in calls::instructions(image, function).iter() {
        if at.next_ip() >= return_address {
            let is_call = at.next_ip() == return_address && at.mnemonic() == Mnemonic::Call;
            return is_call.then_some(depth);
        }
        match at.mnemonic() {
            Mnemonic::Call => body = body.or(Some(depth)),
            Mnemonic::Ret | Mnemonic::Jmp | Mnemonic::Leave => depth = body.unwrap_or(depth),
            _ => depth = depth.checked_add(moved(&at)?)?,
        }
    }
    None
}

/// By how much an instruction lowers the stack pointer; `None` if that cannot be told.
fn moved(at: &Instruction) -> Option<i64> {
    let on_stack_pointer = at.op0_kind() == OpKind::Register && at.op0_register() == iced_x86::Register::RSP;
    match at.mnemonic() {
        Mnemonic::Push => Some(8),
        Mnemonic::Pop => Some(-8),
        Mnemonic::Sub | Mnemonic::Add if on_stack_pointer => {
            let amount = at.try_immediate(1).ok()?.cast_signed();
            Some(if at.mnemonic() == Mnemonic::Sub { amount } else { amount.checked_neg()? })
        }
        // An alignment, an allocation of unknown size, a switch of stacks, or a loop that probes the stack.
        Mnemonic::And | Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Cmp if on_stack_pointer => None,
        _ => Some(0),
    }
}
