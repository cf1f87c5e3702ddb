//! Where a value can be inside a function: registers, flags and cells of the frame, numbered.
//!
//! A general register has two parts, its lowest byte and the rest, so that `setcc al` does not seem to depend on what
//! was in `rax`. A vector register has its lowest 16 bytes and the rest, which only AVX code writes.

use iced_x86::{OpAccess, Register, RflagsBits};

/// A part of a register, the flags, or a cell of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Location(pub(super) u32);

const FIRST_VECTOR: u32 = 32;
const FIRST_MASK: u32 = 96;
const FLOAT_STACK: Location = Location(104);
const CARRY: Location = Location(105);
/// Zero, sign, overflow, parity and auxiliary carry, which are nearly always written together.
const STATUS: Location = Location(106);
/// All of the frame, taken as one, for what may read any part of it. Every write to the frame adds to it.
pub(super) const FRAME: Location = Location(107);
/// The same for the part of the frame whose address was given away.
pub(super) const EXPOSED: Location = Location(108);
/// Cells of the frame are numbered from here.
pub(super) const FIRST_CELL: u32 = 109;

/// Numbers of general registers, as in machine code.
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
pub(super) const RSP: u8 = 4;
pub(super) const RBP: u8 = 5;
pub(super) const RSI: u8 = 6;
pub(super) const RDI: u8 = 7;
pub(super) const R8: u8 = 8;
pub(super) const R9: u8 = 9;

/// Registers of integer arguments, in order.
pub(super) const ARGUMENTS: [u8; 6] = [RDI, RSI, RDX, RCX, R8, R9];

impl Location {
    pub(super) fn low(register: u8) -> Location {
        Location(2 * u32::from(register))
    }

    pub(super) fn both(register: u8) -> [Location; 2] {
        [Location::low(register), Location(2 * u32::from(register) + 1)]
    }

    pub(super) fn vector_low(number: u32) -> Location {
        Location(FIRST_VECTOR + 2 * number)
    }

    /// A part of the frame.
    pub(super) fn is_memory(self) -> bool {
        self.0 >= FRAME.0
    }

    /// The number of the cell.
    pub(super) fn cell(self) -> Option<usize> {
        self.0.checked_sub(FIRST_CELL).map(|cell| cell as usize)
    }

    pub(super) fn of_cell(cell: usize) -> Location {
        Location(FIRST_CELL + u32::try_from(cell).unwrap_or(u32::MAX - FIRST_CELL))
    }

    /// A register that a function must leave as it found it, in the System V calling convention.
    pub(super) fn is_callee_saved(self) -> bool {
        self.0 < FIRST_VECTOR && matches!(self.0 / 2, 3 | 4 | 5 | 12..=15)
    }
}

/// The locations in which functions return values. LLVM uses the third of each kind for functions that are not
/// visible outside.
pub(super) fn results() -> impl Iterator<Item = Location> {
    let general = [RAX, RDX, RCX].into_iter().flat_map(Location::both);
    let vector = (0..4).flat_map(|number| {
        let low = Location::vector_low(number);
        [low, Location(low.0 + 1)]
    });
    general.chain(vector).chain([FLOAT_STACK])
}

/// The registers in which arguments are passed.
pub(super) fn arguments() -> impl Iterator<Item = Location> {
    let vector = (0..8).map(Location::vector_low);
    ARGUMENTS.into_iter().flat_map(Location::both).chain(vector)
}

/// The number of a general register of any size.
pub(super) fn general(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| u8::try_from(full.number()).ok()).flatten()
}

/// A location that an instruction writes. What it had may remain in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) location: Location,
    pub(super) keeps_old: bool,
}

/// The locations of a register that is read.
pub(super) fn read_by(register: Register, add: &mut Vec<Location>) {
    add.extend(parts(register).into_iter().flatten().map(|(location, _)| location));
}

/// The locations of a register that is written.
pub(super) fn written_by(register: Register, conditional: bool, add: &mut Vec<Written>) {
    let parts = parts(register).into_iter().flatten();
    add.extend(parts.map(|(location, whole)| Written { location, keeps_old: conditional || !whole }));
}

/// The locations of a register, each with whether the register is all of it.
fn parts(register: Register) -> [Option<(Location, bool)>; 2] {
    if let Some(number) = general(register) {
        let [low, upper] = Location::both(number);
        return match register {
            Register::AH | Register::BH | Register::CH | Register::DH => [None, Some((upper, false))],
            _ if register.is_gpr8() => [Some((low, true)), None],
            _ if register.is_gpr16() => [Some((low, true)), Some((upper, false))],
            _ => [Some((low, true)), Some((upper, true))],
        };
    }
    if register.is_vector_register() {
        let low = Location::vector_low(u32::try_from(register.number()).unwrap_or_default());
        let upper = Location(low.0 + 1);
        return [Some((low, true)), (!register.is_xmm()).then_some((upper, true))];
    }
    if register.is_k() {
        let number = u32::try_from(register.number()).unwrap_or_default();
        return [Some((Location(FIRST_MASK + number), true)), None];
    }
    if register.is_st() || register.is_mm() {
        return [Some((FLOAT_STACK, false)), None];
    }
    [None, None]
}

/// The flags among some bits of `rflags`.
pub(super) fn flags(bits: u32) -> impl Iterator<Item = Location> {
    let status = RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF | RflagsBits::PF | RflagsBits::AF;
    let carry = (bits & RflagsBits::CF != 0).then_some(CARRY);
    carry.into_iter().chain((bits & status != 0).then_some(STATUS))
}

pub(super) fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub(super) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub(super) fn is_conditional(access: OpAccess) -> bool {
    matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite)
}
