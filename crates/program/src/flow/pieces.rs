//! Where the functions of a file are.
//!
//! A piece is code that the linker keeps together: a function, or a part of one that the compiler moved elsewhere
//! because it is rarely executed. Symbols and `.eh_frame` both name pieces. A stripped file has the latter only; code
//! written in assembly often has the former only.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind};
use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE};
use object::{Object as _, ObjectSection as _, SectionFlags};

use crate::frame_info::RSP;
use crate::image::{Elf, Image};
use crate::symbols::Kind;

/// All pieces of a file.
#[derive(Default)]
pub(crate) struct Pieces {
    /// By address, without overlaps.
    ranges: Vec<Range<u64>>,
    /// The sections with code, without those for [`Pieces::is_stub`], by address.
    sections: Vec<Range<u64>>,
    /// The sections with the stubs that lead to other modules, by address.
    stubs: Vec<Range<u64>>,
    /// The sections that are not written to once the program is loaded, by address.
    constants: Vec<Range<u64>>,
}

/// What a jump leads to, seen from a function with the pieces that are known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JumpTarget {
    /// Code of the function.
    Inside,
    /// Code of the function in this piece.
    Part(Range<u64>),
    /// Another function.
    Elsewhere,
}

impl Pieces {
    pub(super) fn of(image: &Image) -> Pieces {
        let mut pieces = Pieces::default();
        let Ok(elf) = Elf::parse(&**image.bytes()) else { return pieces };
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let has = |flag| sh_flags.contains(flag);
            let range = section.address()..section.address().saturating_add(section.size());
            if !has(SHF_ALLOC) || range.is_empty() {
                continue;
            }
            let name = section.name().unwrap_or_default();
            if has(SHF_EXECINSTR) {
                let is_stubs = name.starts_with(".plt") || name == ".iplt";
                if is_stubs { &mut pieces.stubs } else { &mut pieces.sections }.push(range);
            } else if !has(SHF_WRITE) || name.starts_with(".got") || name.starts_with(".data.rel.ro") {
                pieces.constants.push(range);
            }
        }
        for ranges in [&mut pieces.sections, &mut pieces.stubs, &mut pieces.constants] {
            ranges.sort_by_key(|range| range.start);
        }
        pieces.ranges = pieces.collect(image);
        pieces
    }

    fn collect(&self, image: &Image) -> Vec<Range<u64>> {
        // The greatest known end of what starts at each address.
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        let mut note = |range: Range<u64>| {
            let end = ends.entry(range.start).or_default();
            *end = range.end.max(*end);
        };
        image.debug_info().frames.described().for_each(|range| note(range.clone()));
        // An entry inside a function with a symbol is another entry of that function.
        let mut covered = 0;
        for symbol in image.symbols.all(Kind::Function) {
            if symbol.address >= covered {
                note(symbol.range());
                covered = symbol.range().end;
            }
        }
        let starts: Vec<(u64, u64)> =
            ends.into_iter().filter(|&(start, _)| self.section(start).is_some()).collect();
        let nexts = starts.iter().skip(1).map(|&(start, _)| start).chain([u64::MAX]);
        let mut reach = 0;
        let mut ranges = Vec::with_capacity(starts.len());
        for (&(start, end), next) in starts.iter().zip(nexts) {
            let limit = self.section(start).map_or(start, |section| section.end).min(next);
            reach = end.max(reach);
            // Without a size, it goes on to the next one.
            ranges.push(start..if reach > start { reach.min(limit) } else { limit });
        }
        ranges
    }

    fn section(&self, address: u64) -> Option<&Range<u64>> {
        containing(&self.sections, address)
    }

    /// The address is one of code.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.section(address).is_some()
    }

    /// The address is one of a stub of the linker's, such as those of `.plt`.
    pub(super) fn is_stub(&self, address: u64) -> bool {
        containing(&self.stubs, address).is_some()
    }

    /// The memory at an address keeps what the file or the loader put there.
    pub(super) fn is_constant(&self, address: u64) -> bool {
        containing(&self.constants, address).is_some()
    }

    /// All pieces, by address.
    pub(super) fn all(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// The piece with an address. Code that nothing describes reaches from there to what is described next.
    pub(super) fn at(&self, address: u64) -> Option<Range<u64>> {
        if let Some(range) = containing(&self.ranges, address) {
            return Some(range.clone());
        }
        let section = self.section(address)?;
        let next = self.ranges.partition_point(|range| range.start <= address);
        let limit = self.ranges.get(next).map_or(u64::MAX, |range| range.start);
        Some(address..section.end.min(limit))
    }

    /// The piece that starts at an address.
    pub(super) fn starting_at(&self, address: u64) -> Option<&Range<u64>> {
        containing(&self.ranges, address).filter(|range| range.start == address)
    }

    /// Tells a jump inside a function from a jump to another one. `own` are the pieces of the function, its own first.
    pub(super) fn jump_target(&self, image: &Image, own: &[Range<u64>], target: u64) -> JumpTarget {
        if own.iter().any(|range| range.contains(&target)) {
            return JumpTarget::Inside;
        }
        let Some(piece) = containing(&self.ranges, target) else { return JumpTarget::Elsewhere };
        let is_part = match (cold_part_of(image, piece.start), self.name(image, piece.start)) {
            (Some(stem), _) => own.first().is_some_and(|own| has_stem(image, own.start, stem)),
            (None, Some(_)) => false,
            (None, None) => {
                target != piece.start
                    || !starts_like_a_function(image, piece.start)
                    || jumps_into(image, piece, own)
            }
        };
        if is_part { JumpTarget::Part(piece.clone()) } else { JumpTarget::Elsewhere }
    }

    fn name<'image>(&self, image: &'image Image, address: u64) -> Option<&'image str> {
        Some(&image.symbols.starting_at(address, Kind::Function)?.name)
    }

    /// The functions of the pieces that are parts of others, by start of the part. All code is gone through for it,
    /// because only a jump says what an unnamed part belongs to.
    pub(super) fn owners(&self, image: &Image) -> HashMap<u64, u64> {
        let mut owners = HashMap::new();
        for piece in self.ranges.iter().filter(|piece| !self.is_part(image, piece.start)) {
            for target in direct_jumps(image, piece).filter(|target| !piece.contains(target)) {
                let own = std::slice::from_ref(piece);
                if let JumpTarget::Part(part) = self.jump_target(image, own, target) {
                    owners.insert(part.start, piece.start);
                }
            }
        }
        owners
    }

    /// The piece is known, by its name or its frame, to be a part of a function that begins elsewhere.
    pub(super) fn is_part(&self, image: &Image, start: u64) -> bool {
        match self.name(image, start) {
            Some(_) => cold_part_of(image, start).is_some(),
            None => !starts_like_a_function(image, start),
        }
    }
}

/// The name of the function that the code at `start` was split off from, as the compiler named it.
pub(super) fn cold_part_of(image: &Image, start: u64) -> Option<&str> {
    let name = &image.symbols.starting_at(start, Kind::Function)?.name;
    let (stem, number) = name.rsplit_once(".cold")?;
    // LLVM numbers functions that it makes of rarely executed code, and calls them.
    number.is_empty().then_some(stem)
}

fn has_stem(image: &Image, start: u64, stem: &str) -> bool {
    image.symbols.names_at(start, Kind::Function).any(|name| name == stem)
}

/// The frame is as a call leaves it, with nothing but the return address on the stack.
fn starts_like_a_function(image: &Image, start: u64) -> bool {
    image.debug_info().frames.cfa(start).is_none_or(|cfa| cfa == (RSP, 8))
}

/// The code of `piece` jumps into `own`, other than to its start.
fn jumps_into(image: &Image, piece: &Range<u64>, own: &[Range<u64>]) -> bool {
    direct_jumps(image, piece)
        .any(|target| own.iter().any(|range| range.contains(&target) && range.start != target))
}

/// The targets of direct jumps in a piece.
pub(super) fn direct_jumps(image: &Image, piece: &Range<u64>) -> impl Iterator<Item = u64> {
    let code = image.loaded(piece.start, piece.end - piece.start).unwrap_or_default();
    let decoder = Decoder::with_ip(64, code, piece.start, DecoderOptions::NONE);
    decoder.into_iter().filter_map(|at| {
        let is_jump =
            matches!(at.flow_control(), FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch);
        (is_jump && at.op0_kind() == OpKind::NearBranch64).then(|| at.near_branch_target())
    })
}

/// The range with an address, of ranges that are sorted and do not overlap.
fn containing(ranges: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let end = ranges.partition_point(|range| range.start <= address);
    ranges[..end].last().filter(|range| range.contains(&address))
}
