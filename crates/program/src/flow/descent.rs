//! Finds the instructions of one function, by following its jumps.
//!
//! Decoding starts at the entry and at the landing pads and goes on wherever a jump leads. When nothing is left to
//! follow, indirect jumps are resolved, which may lead to more code. Code that nothing leads to is decoded last, from
//! the first byte of each gap: jumps that could not be resolved may lead there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::function::Callee;
use super::jump_table::{self, Before, Destination};
use super::landing_pads::{self, CallSites};
use super::pieces::{JumpTarget, Pieces};
use super::{callee, no_return};
use crate::frame_info::RSP;
use crate::image::Image;

/// The instructions of a function.
pub(super) struct Descent<'image> {
    pub(super) image: &'image Image,
    pieces: &'image Pieces,
    /// The function's own piece is the first.
    pub(super) parts: Vec<Part<'image>>,
    /// Instructions that do more than to go on to the next.
    pub(super) exits: BTreeMap<u64, Exit>,
    /// Calls with landing pads, by address.
    pub(super) landing_pads: Vec<CallSites>,
    /// Where jumps lead, with where they come from.
    sources: HashMap<u64, Vec<u64>>,
    /// How many pairs `sources` has.
    known: usize,
    open: Vec<u64>,
    /// Indirect jumps that were not looked at yet.
    indirect: Vec<u64>,
    /// Where tables of this function are.
    tables: Vec<Range<u64>>,
    /// Where tables start that jumps of this function may use, and other data that no table reaches into.
    table_starts: BTreeSet<u64>,
}

/// A range of code.
pub(super) struct Part<'image> {
    pub(super) range: Range<u64>,
    bytes: &'image [u8],
    /// The length of the instruction that starts at each byte; 0 where none is known to start.
    lengths: Vec<u8>,
    /// There is no gap before this position.
    scanned: usize,
}

/// An instruction that does not just go on to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Jump(u64),
    Branch(u64),
    Table {
        address: u64,
        targets: Vec<u64>,
        is_guessed: bool,
    },
    Unresolved,
    Return,
    TailCall(Callee),
    ConditionalTailCall(Callee),
    Call(Callee),
    /// A call of a function that is known by its name never to return.
    NoReturn(Callee),
    Trap,
}

impl Exit {
    /// Execution never goes on with the next instruction.
    fn is_final(&self) -> bool {
        !matches!(self, Exit::Branch(_) | Exit::ConditionalTailCall(_) | Exit::Call(_))
    }
}

impl Part<'_> {
    fn offset(&self, address: u64) -> Option<usize> {
        self.range.contains(&address).then(|| usize::try_from(address - self.range.start).ok()).flatten()
    }

    /// The known instructions, by address, each with its length.
    pub(super) fn instructions(&self) -> impl Iterator<Item = (u64, u64)> {
        let lengths = self.lengths.iter().enumerate().filter(|&(_, &length)| length > 0);
        lengths.map(|(offset, &length)| (self.range.start + offset as u64, u64::from(length)))
    }
}

impl<'image> Descent<'image> {
    /// Finds all instructions of the function that is entered at `entry`.
    pub(super) fn from(image: &'image Image, pieces: &'image Pieces, entry: u64) -> Option<Descent<'image>> {
        let first = Descent::with_tables(image, pieces, entry, BTreeSet::new())?;
        let is_guess = |exit: &Exit| matches!(exit, Exit::Table { is_guessed: true, .. });
        if !first.exits.values().any(is_guess) {
            return Some(first);
        }
        // A guess may have taken for its own what follows the table: another table, which was not known then, or
        // whatever else the code refers to.
        let mut limits = first.table_starts.clone();
        limits.extend(first.constants());
        Descent::with_tables(image, pieces, entry, limits)
    }

    /// The addresses of data that instructions name.
    fn constants(&self) -> impl Iterator<Item = u64> {
        let instructions = self.parts.iter().flat_map(Part::instructions);
        let named = instructions.filter_map(|(address, _)| {
            let at = self.instruction(address)?;
            let is_fixed = at.is_ip_rel_memory_operand() || at.memory_base() == Register::None;
            let has_memory = (0..at.op_count()).any(|operand| at.op_kind(operand) == OpKind::Memory);
            (has_memory && is_fixed).then(|| at.memory_displacement64())
        });
        named.filter(|&address| !self.pieces.is_code(address))
    }

    fn with_tables(
        image: &'image Image,
        pieces: &'image Pieces,
        entry: u64,
        table_starts: BTreeSet<u64>,
    ) -> Option<Descent<'image>> {
        let mut descent = Descent {
            image,
            pieces,
            parts: Vec::new(),
            exits: BTreeMap::new(),
            landing_pads: Vec::new(),
            sources: HashMap::new(),
            known: 0,
            open: vec![entry],
            indirect: Vec::new(),
            tables: Vec::new(),
            table_starts,
        };
        descent.add_part(pieces.at(entry)?);
        descent.run();
        while let Some(gap) = descent.gap() {
            descent.open.push(gap);
            descent.run();
        }
        descent.landing_pads.sort_by_key(|sites| sites.calls.start);
        Some(descent)
    }

    fn add_part(&mut self, range: Range<u64>) {
        let bytes = self.image.loaded(range.start, range.end - range.start).unwrap_or_default();
        let range = range.start..range.start + bytes.len() as u64;
        let landing_pads = landing_pads::of(self.image, range.start);
        self.parts.push(Part { bytes, lengths: vec![0; bytes.len()], range, scanned: 0 });
        // Several functions of one table, as in code written in assembly, have no landing pads of their own.
        for sites in landing_pads {
            if self.leads_inside(sites.landing_pad) {
                self.open.push(sites.landing_pad);
                self.landing_pads.push(sites);
            }
        }
    }

    /// An address is code of this function. Its piece is added to the function if need be.
    fn leads_inside(&mut self, target: u64) -> bool {
        if self.parts.iter().any(|part| part.range.contains(&target)) {
            return true;
        }
        let own: Vec<Range<u64>> = self.parts.iter().map(|part| part.range.clone()).collect();
        match self.pieces.jump_target(self.image, &own, target) {
            JumpTarget::Inside => true,
            JumpTarget::Part(piece) => {
                self.add_part(piece);
                true
            }
            JumpTarget::Elsewhere => false,
        }
    }

    /// Follows all that is open. Code that was found later may lead to jumps that were looked at before, so that these are
    /// looked at again until nothing new is found.
    fn run(&mut self) {
        let mut jumps = Vec::new();
        loop {
            while let Some(address) = self.open.pop() {
                self.follow(address);
            }
            jumps.append(&mut self.indirect);
            let known = self.known;
            let destinations: Vec<Destination> =
                jumps.iter().map(|&jump| jump_table::destination(self, jump)).collect();
            self.table_starts.extend(destinations.iter().filter_map(Destination::table_address));
            for (&jump, destination) in jumps.iter().zip(destinations) {
                let exit = self.resolve(jump, destination);
                if let Exit::Table { targets, .. } = &exit {
                    for &target in targets {
                        self.add_source(target, jump);
                        self.open.push(target);
                    }
                }
                self.exits.insert(jump, exit);
            }
            if self.known == known {
                return;
            }
        }
    }

    fn add_source(&mut self, target: u64, jump: u64) {
        let sources = self.sources.entry(target).or_default();
        if !sources.contains(&jump) {
            sources.push(jump);
            self.known += 1;
        }
    }

    /// Decodes from an address up to an instruction that does not go on to the next.
    fn follow(&mut self, address: u64) {
        let Some(number) = self.parts.iter().position(|part| part.range.contains(&address)) else { return };
        let part = &self.parts[number];
        let Some(offset) = part.offset(address) else { return };
        let mut decoder = Decoder::with_ip(64, &part.bytes[offset..], address, DecoderOptions::NONE);
        while decoder.can_decode() {
            let at = decoder.decode();
            let part = &mut self.parts[number];
            let Some(offset) = part.offset(at.ip()) else { return };
            if at.is_invalid() || part.lengths[offset] != 0 {
                return;
            }
            part.lengths[offset] = u8::try_from(at.len()).unwrap_or_default();
            let exit = self.exit(&at);
            let is_final = exit.as_ref().is_some_and(Exit::is_final);
            if let Some(exit) = exit {
                self.exits.insert(at.ip(), exit);
            }
            if is_final {
                return;
            }
        }
    }

    fn exit(&mut self, at: &Instruction) -> Option<Exit> {
        match at.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => Some(self.jump(at)),
            FlowControl::XbeginXabortXend if at.mnemonic() == Mnemonic::Xbegin => Some(self.jump(at)),
            FlowControl::IndirectBranch => {
                self.indirect.push(at.ip());
                Some(Exit::Unresolved)
            }
            FlowControl::Return => Some(Exit::Return),
            FlowControl::Call | FlowControl::IndirectCall if at.mnemonic() == Mnemonic::Call => {
                let callee = callee::of(self.image, self.pieces, at);
                let is_known = no_return::is_known_by_name(self.image, &callee);
                Some(if is_known { Exit::NoReturn(callee) } else { Exit::Call(callee) })
            }
            FlowControl::Exception => Some(Exit::Trap),
            FlowControl::Interrupt if at.mnemonic() == Mnemonic::Int3 => Some(Exit::Trap),
            _ if at.mnemonic() == Mnemonic::Hlt => Some(Exit::Trap),
            _ => None,
        }
    }

    fn jump(&mut self, at: &Instruction) -> Exit {
        let is_conditional = at.flow_control() != FlowControl::UnconditionalBranch;
        let target = at.near_branch_target();
        if at.op0_kind() == OpKind::NearBranch64 && self.leads_inside(target) {
            self.add_source(target, at.ip());
            self.open.push(target);
            return if is_conditional { Exit::Branch(target) } else { Exit::Jump(target) };
        }
        let callee = callee::of(self.image, self.pieces, at);
        if is_conditional { Exit::ConditionalTailCall(callee) } else { Exit::TailCall(callee) }
    }

    fn resolve(&mut self, jump: u64, destination: Destination) -> Exit {
        let table = match destination {
            Destination::Table(table) => table,
            Destination::Slot(slot) if self.pieces.is_constant(slot) => {
                return Exit::TailCall(callee::through(self.image, self.pieces, slot));
            }
            Destination::Slot(_) | Destination::Unknown => return self.elsewhere(jump),
        };
        let next = self.table_starts.range(table.address + 1..).next().copied();
        let image = self.image;
        let (targets, is_whole) = table.read(image, next, |target| self.is_plausible(target));
        if targets.is_empty() {
            return self.elsewhere(jump);
        }
        let range = table.range(targets.len());
        if !self.tables.contains(&range) {
            self.tables.push(range);
        }
        Exit::Table { address: table.address, targets, is_guessed: !is_whole }
    }

    /// A jump to an address that only a run can tell. It leaves the function if the frame is gone by then.
    fn elsewhere(&self, jump: u64) -> Exit {
        let has_no_frame = self.image.debug_info().frames.cfa(jump) == Some((RSP, 8));
        if has_no_frame { Exit::TailCall(Callee::Indirect) } else { Exit::Unresolved }
    }

    /// Something may jump to an address: it is code of this function and not in the middle of an instruction.
    fn is_plausible(&mut self, target: u64) -> bool {
        if !self.leads_inside(target) {
            return false;
        }
        let Some(part) = self.parts.iter().find(|part| part.range.contains(&target)) else { return false };
        let Some(offset) = part.offset(target) else { return false };
        part.lengths[offset] != 0
            || !(1..offset.min(MAX_LENGTH)).any(|back| usize::from(part.lengths[offset - back]) > back)
    }

    /// The first byte that is neither decoded nor padding.
    fn gap(&mut self) -> Option<u64> {
        let tables = self.tables.clone();
        self.parts.iter_mut().find_map(|part| part.gap(&tables))
    }
}

/// No instruction is longer.
const MAX_LENGTH: usize = 15;

impl Part<'_> {
    fn gap(&mut self, tables: &[Range<u64>]) -> Option<u64> {
        let mut offset = self.scanned;
        while offset < self.lengths.len() {
            self.scanned = offset;
            let address = self.range.start + offset as u64;
            if self.lengths[offset] != 0 {
                offset += usize::from(self.lengths[offset]);
                continue;
            }
            if let Some(table) = tables.iter().find(|table| table.contains(&address)) {
                offset += usize::try_from(table.end - address).unwrap_or(usize::MAX);
                continue;
            }
            let at = Decoder::with_ip(64, &self.bytes[offset..], address, DecoderOptions::NONE).decode();
            if !at.is_invalid() && !is_padding(&at, &self.bytes[offset..]) {
                return Some(address);
            }
            offset += at.len().max(1);
        }
        self.scanned = offset;
        None
    }
}

/// What compilers and linkers put between functions and before loops.
fn is_padding(at: &Instruction, bytes: &[u8]) -> bool {
    matches!(at.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) || bytes.starts_with(&[0, 0]) || bytes == [0]
}

impl Before for Descent<'_> {
    fn instruction(&self, address: u64) -> Option<Instruction> {
        let part = self.parts.iter().find(|part| part.range.contains(&address))?;
        let offset = part.offset(address)?;
        Some(Decoder::with_ip(64, &part.bytes[offset..], address, DecoderOptions::NONE).decode())
    }

    fn predecessors(&self, address: u64) -> Vec<u64> {
        let mut found = self.sources.get(&address).cloned().unwrap_or_default();
        for sites in self.landing_pads.iter().filter(|sites| sites.landing_pad == address) {
            let exits = self.exits.range(sites.calls.clone());
            let calls = exits.filter(|(_, exit)| matches!(exit, Exit::Call(_) | Exit::NoReturn(_)));
            found.extend(calls.map(|(&call, _)| call));
        }
        let Some(part) = self.parts.iter().find(|part| part.range.contains(&address)) else { return found };
        let Some(offset) = part.offset(address) else { return found };
        for back in 1..=offset.min(MAX_LENGTH) {
            let before = address - back as u64;
            let goes_on = || self.exits.get(&before).is_none_or(|exit| !exit.is_final());
            if usize::from(part.lengths[offset - back]) == back && goes_on() {
                found.push(before);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
