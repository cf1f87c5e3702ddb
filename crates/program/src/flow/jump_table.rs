//! What an indirect jump leads to.
//!
//! The instructions on the paths to the jump are executed symbolically. A jump through a table is recognised by what it
//! jumps to: an entry of a table, or a constant plus an entry. How long the table is follows from a comparison of the
//! index on the path. Compilers at `-O0` keep the index in a stack slot, and optimisers move the comparison into blocks far away or turn it
//! into a conditional move; none of that matters to an execution of the path.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::pointer::sets;
use super::symbolic::{Entry, State};
use crate::image::{Image, Slot};

/// A path is given up when it is longer than this. Comparisons stand at most a few blocks before the jump.
const MAX_PATH: usize = 160;
/// How many paths are tried for one jump.
const MAX_PATHS: usize = 96;
/// No table has more entries.
const MAX_ENTRIES: u64 = 1 << 16;

/// The instructions that come before others, as far as they are known.
pub(super) trait Before {
    /// The instruction that starts at an address.
    fn instruction(&self, address: u64) -> Option<Instruction>;
    /// The addresses of the instructions that may be executed just before the one at `address`.
    fn predecessors(&self, address: u64) -> Vec<u64>;
}

/// What an indirect jump goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Table(Table),
    /// Where a fixed slot leads.
    Slot(u64),
    /// The value comes from elsewhere.
    Unknown,
}

impl Destination {
    pub(super) fn table_address(&self) -> Option<u64> {
        match self {
            Destination::Table(table) => Some(table.address),
            Destination::Slot(_) | Destination::Unknown => None,
        }
    }
}

/// Where a table is and how its entries are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) address: u64,
    size: u64,
    /// Added to each entry.
    base: Option<u64>,
    /// How many entries it has, if a comparison says so.
    pub(super) count: Option<u64>,
    /// It has no more than these, by the width of the index.
    limit: u64,
}

/// Finds out where the indirect jump at `jump` goes.
pub(super) fn destination(code: &impl Before, jump: u64) -> Destination {
    let mut search = Search { code, found: Vec::new(), has_unbounded: false, tried: 0, looks_far: false };
    search.extend(vec![jump]);
    if search.found.is_empty() && code.instruction(jump).is_some_and(|jump| may_use_table(&jump)) {
        search = Search { looks_far: true, tried: 0, has_unbounded: false, ..search };
        search.extend(vec![jump]);
    }
    let Search { found, has_unbounded, .. } = search;
    let Some(first) = found.first() else { return Destination::Unknown };
    let Destination::Table(mut table) = first.clone() else { return first.clone() };
    let mut has_unbounded = has_unbounded;
    for other in &found[1..] {
        let Destination::Table(other) = other else { continue };
        if (other.size, other.base) != (table.size, table.base) {
            continue;
        }
        // Paths may bound the index on both sides: the table is all that any of them reaches.
        let end = |table: &Table| Some(table.address + table.count? * table.size);
        let ends = end(&table).zip(end(other)).map(|(a, b)| a.max(b));
        table.address = table.address.min(other.address);
        table.count = ends.map(|end| (end - table.address) / table.size);
        has_unbounded |= ends.is_none();
    }
    if has_unbounded {
        let limits = found.iter().filter_map(|found| match found {
            Destination::Table(Table { count: None, limit, .. }) => Some(*limit),
            _ => None,
        });
        (table.count, table.limit) = (None, limits.max().unwrap_or(MAX_ENTRIES));
    }
    Destination::Table(table)
}

/// Goes back from a jump along all paths, until each says how long the table is.
struct Search<'code, C> {
    code: &'code C,
    found: Vec<Destination>,
    has_unbounded: bool,
    tried: usize,
    /// Registers at the start of a path are looked up in all the code before it. An optimiser may load the address of
    /// a table outside of the loop with the jump.
    looks_far: bool,
}

/// The jump is not one through a fixed place of an object, such as a virtual table.
fn may_use_table(jump: &Instruction) -> bool {
    jump.op0_kind() == OpKind::Register || jump.memory_index() != Register::None
}

impl<C: Before> Search<'_, C> {
    /// `path` is in reverse: the jump is the first.
    fn extend(&mut self, mut path: Vec<u64>) {
        loop {
            let Some(&last) = path.last() else { return };
            let mut before = self.code.predecessors(last);
            // A loop that is gone through again says nothing new.
            before.retain(|address| !path.contains(address));
            if let [only] = before[..]
                && path.len() < MAX_PATH
            {
                path.push(only);
                continue;
            }
            let is_last = before.is_empty() || path.len() >= MAX_PATH || self.tried >= MAX_PATHS;
            if self.evaluate(&path, is_last) || is_last {
                return;
            }
            for address in before {
                let mut longer = path.clone();
                longer.push(address);
                self.extend(longer);
            }
            return;
        }
    }

    /// Executes a path. True if it says all that is to be known.
    fn evaluate(&mut self, path: &[u64], is_last: bool) -> bool {
        self.tried += 1;
        let destination = execute(self.code, path, self.looks_far);
        let is_bounded = match &destination {
            Destination::Table(table) => table.count.is_some(),
            Destination::Slot(_) => true,
            Destination::Unknown => false,
        };
        if is_bounded || is_last {
            self.has_unbounded |= !is_bounded;
            if destination != Destination::Unknown {
                self.found.push(destination);
            }
        }
        is_bounded
    }
}

/// Where the jump at the end of one path goes.
fn execute(code: &impl Before, path: &[u64], looks_far: bool) -> Destination {
    let mut state = State::new();
    if let (true, Some(&start)) = (looks_far, path.last()) {
        for register in bases(code, path) {
            if let Some(address) = constant_at(code, start, register) {
                state.set(register, address);
            }
        }
    }
    for (position, &address) in path.iter().enumerate().rev() {
        let Some(at) = code.instruction(address) else { return Destination::Unknown };
        match position.checked_sub(1) {
            Some(next) => state.step(&at, path[next]),
            None => {
                let entry = state.operand(&at, 0).and_then(|value| value.entry);
                return entry.and_then(|entry| of_entry(&state, entry)).unwrap_or(Destination::Unknown);
            }
        }
    }
    Destination::Unknown
}

/// The registers that the path takes addresses from and that calls keep.
fn bases(code: &impl Before, path: &[u64]) -> Vec<Register> {
    let instructions = path.iter().filter_map(|&address| code.instruction(address));
    let mut bases: Vec<Register> = instructions
        .flat_map(|at| [at.memory_base(), at.memory_index()])
        .map(Register::full_register)
        .collect();
    bases.sort_unstable();
    bases.dedup();
    bases.retain(|&register| register.is_gpr64() && register != Register::RSP);
    bases
}

/// The address that a register holds before an instruction, if all that can have set it computed the same.
fn constant_at(code: &impl Before, address: u64, register: Register) -> Option<u64> {
    /// How many instructions are looked at.
    const MAX_SEEN: usize = 20_000;
    let mut factory = InstructionInfoFactory::new();
    let mut found = None;
    let mut seen = HashSet::new();
    let mut open = code.predecessors(address);
    while let Some(address) = open.pop() {
        if !seen.insert(address) {
            continue;
        }
        let at = code.instruction(address)?;
        if sets(&mut factory, &at, register) {
            let is_address = at.mnemonic() == Mnemonic::Lea && at.is_ip_rel_memory_operand();
            let value = is_address.then(|| at.ip_rel_memory_address())?;
            if *found.get_or_insert(value) != value {
                return None;
            }
            continue;
        }
        let before = code.predecessors(address);
        // The register comes from the caller, or the search goes on for too long.
        if before.is_empty() || seen.len() > MAX_SEEN {
            return None;
        }
        open.extend(before);
    }
    found
}

fn of_entry(state: &State, entry: Entry) -> Option<Destination> {
    let Entry { address, size, table, base } = entry;
    if let (Some(slot), None) = (address.as_constant(), base) {
        return Some(Destination::Slot(slot.cast_unsigned()));
    }
    let size = size as u64;
    let with = |address: i64, count: Option<u64>, limit: u64| {
        let (address, base) = (u64::try_from(address).ok()?, base.map(i64::cast_unsigned));
        Some(Table { address, size, base, count, limit: limit.min(MAX_ENTRIES) })
    };
    if let Some(address) = address.as_constant() {
        return with(address, Some(1), 1).map(Destination::Table);
    }
    let known = state.intervals(address);
    let checked =
        known.iter().filter(|(_, interval)| interval.is_checked).filter_map(|(offset, interval)| {
            // A path that contradicts itself is never taken.
            let count = u64::try_from(interval.high.checked_sub(interval.low)?.checked_add(1)?).ok()?;
            let first = interval.low.checked_sub(*offset)?.checked_mul(address.factor)?;
            with(
                address.offset.checked_add(first)?,
                Some(count).filter(|&count| (1..=MAX_ENTRIES).contains(&count)),
                count,
            )
        });
    // The bound of the index itself starts where the operand says. Others are of values that it was computed from.
    let is_of_index = |found: &Table| i64::try_from(found.address) == Ok(table);
    // No index is negative, so that a bound which says so is of another value.
    let is_possible = |found: &Table| i64::try_from(found.address).is_ok_and(|address| address >= table);
    let tightest = checked
        .filter(|found| found.count.is_some() && is_possible(found))
        .min_by_key(|found| (!is_of_index(found), found.count));
    let limits = known.iter().filter_map(|(_, interval)| u64::try_from(interval.high).ok()?.checked_add(1));
    let limit = limits.min().unwrap_or(MAX_ENTRIES);
    tightest.or_else(|| with(table, None, limit)).map(Destination::Table)
}

impl Table {
    /// The targets, up to the first that is not accepted, and whether these are all that the index can choose.
    /// Another table starts at `next`.
    pub(super) fn read(
        &self,
        image: &Image,
        next: Option<u64>,
        mut accept: impl FnMut(u64) -> bool,
    ) -> (Vec<u64>, bool) {
        // Without a bound, the first index is not known either: an enumeration may start at 1.
        let skipped = if self.count.is_some() { Some(0) } else { self.first(image, &mut accept) };
        let Some(skipped) = skipped else { return (Vec::new(), false) };
        let room = next.map_or(MAX_ENTRIES, |next| next.saturating_sub(self.address) / self.size);
        let count = self.count.unwrap_or(self.limit.min(room));
        let targets =
            (skipped..count).map_while(|index| self.entry(image, index).filter(|&target| accept(target)));
        let targets: Vec<u64> = targets.collect();
        let is_whole = self.count == Some(targets.len() as u64);
        (targets, is_whole)
    }

    fn first(&self, image: &Image, mut accept: impl FnMut(u64) -> bool) -> Option<u64> {
        /// A table that begins later than this would be another one.
        const MAX_SKIPPED: u64 = 8;
        (0..=MAX_SKIPPED.min(self.limit)).find(|&index| self.entry(image, index).is_some_and(&mut accept))
    }

    fn entry(&self, image: &Image, index: u64) -> Option<u64> {
        let address = self.address.checked_add(index.checked_mul(self.size)?)?;
        match image.slots().get(&address) {
            Some(Slot::Address(target)) if self.size == 8 => return Some(*target),
            Some(_) => return None,
            None => {}
        }
        let bytes = image.loaded(address, self.size)?;
        let value = match self.size {
            4 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)).cast_unsigned(),
            _ => u64::from_le_bytes(bytes.try_into().ok()?),
        };
        Some(self.base.unwrap_or_default().wrapping_add(value))
    }

    /// The bytes of its first `count` entries.
    pub(super) fn range(&self, count: usize) -> Range<u64> {
        self.address..self.address.saturating_add(self.size * count as u64)
    }
}
