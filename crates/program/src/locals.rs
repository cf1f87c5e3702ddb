//! Names of local variables, by where they are in the frame of their function.

use std::ops::Range;

use gimli::{AttributeValue, Expression, Operation};

use crate::debug_info::{Die, EntryId, Index};
use crate::frame_info::{FRAME_POINTER_BELOW_CFA, RBP, RSP};
use crate::image::Reader;
use crate::types;

/// Scopes may be nested this deep; a damaged file may claim any depth.
const MAX_DEPTH: usize = 64;

/// Where the canonical frame address is at one instruction, in terms of what locations are relative to.
pub(crate) struct FrameLayout {
    /// The instruction, as linked.
    pub(crate) address: u64,
    /// What is added to the stack pointer there to get the canonical frame address.
    pub(crate) from_stack_pointer: Option<i64>,
    /// The frame pointer is used as one, and is not a register like any other.
    pub(crate) has_frame_pointer: bool,
}

impl FrameLayout {
    /// The offset from the canonical frame address of what is `offset` from a register. The frame pointer points
    /// at its own saved value, which lies below the return address.
    fn relative_to_cfa(&self, register: gimli::Register, offset: i64) -> Option<i64> {
        match register {
            RBP if self.has_frame_pointer => offset.checked_sub(FRAME_POINTER_BELOW_CFA),
            RSP => offset.checked_sub(self.from_stack_pointer?),
            _ => None,
        }
    }
}

/// The variable or parameter that holds the byte at `cfa_offset` from the canonical frame address, in the
/// function whose code is at the layout's address, or in one inlined there.
pub(crate) fn name_at(index: &Index, layout: &FrameLayout, cfa_offset: i64) -> Option<String> {
    let function = index.function(layout.address)?;
    let frame_base = frame_base(index, layout, function);
    let search = |any_time| Search { index, layout, cfa_offset, frame_base, any_time }.scope(function, 0);
    search(false).or_else(|| search(true))
}

struct Search<'a> {
    index: &'a Index,
    layout: &'a FrameLayout,
    cfa_offset: i64,
    /// What locations are relative to, itself relative to the canonical frame address.
    frame_base: Option<i64>,
    /// Take a place that a variable is said to have at another address. A debugger, which wants the value,
    /// must not: a call may have changed it. The memory is the variable's all the same.
    any_time: bool,
}

impl Search<'_> {
    /// The match in the innermost scope. Scopes that do not hold the address are passed over: the compiler lets
    /// variables that do not live at the same time share their place.
    fn scope(&self, id: EntryId, depth: usize) -> Option<String> {
        let mut found = None;
        for die in types::children(self.index, id) {
            let child = EntryId { unit: id.unit, offset: die.offset() };
            let inner = match die.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => self.matches(child, &die),
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
                    if depth < MAX_DEPTH && self.covers(id.unit, &die) =>
                {
                    self.scope(child, depth + 1)
                }
                _ => None,
            };
            found = inner.or(found);
        }
        found
    }

    /// The name of a variable, with the path to the byte, if it is that of this variable.
    fn matches(&self, id: EntryId, die: &Die) -> Option<String> {
        let start = self.start(id.unit, die)?;
        let inside = u64::try_from(self.cfa_offset.checked_sub(start)?).ok()?;
        let type_id = self.index.type_of(id)?;
        if inside >= types::size(self.index, type_id)? {
            return None;
        }
        Some(self.index.name(id)? + &types::path(self.index, type_id, inside))
    }

    /// Where a variable is, from the canonical frame address.
    fn start(&self, unit: usize, die: &Die) -> Option<i64> {
        let locations = locations(self.index, unit, die, gimli::DW_AT_location)?;
        let mut valid = locations
            .into_iter()
            .filter(|(range, _)| self.any_time || range.contains(&self.layout.address))
            .map(|(_, expression)| only_operation(self.index, unit, expression));
        valid.find_map(|operation| match operation? {
            Operation::FrameOffset { offset } => self.frame_base?.checked_add(offset),
            Operation::RegisterOffset { register, offset, .. } => {
                self.layout.relative_to_cfa(register, offset)
            }
            _ => None,
        })
    }

    fn covers(&self, unit: usize, die: &Die) -> bool {
        let Some(unit) = self.index.unit(unit) else { return false };
        let Ok(mut ranges) = unit.dwarf.die_ranges(&unit.unit, die) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.layout.address) {
                return true;
            }
        }
        false
    }
}

/// What `DW_AT_frame_base` stands for: gcc uses the canonical frame address itself, LLVM a register.
fn frame_base(index: &Index, layout: &FrameLayout, function: EntryId) -> Option<i64> {
    let die = index.entry(function)?;
    let mut locations = locations(index, function.unit, &die, gimli::DW_AT_frame_base)?.into_iter();
    let (_, expression) = locations.find(|(range, _)| range.contains(&layout.address))?;
    match only_operation(index, function.unit, expression)? {
        Operation::CallFrameCFA => Some(0),
        Operation::Register { register } => layout.relative_to_cfa(register, 0),
        Operation::RegisterOffset { register, offset, .. } => layout.relative_to_cfa(register, offset),
        _ => None,
    }
}

/// The locations that an attribute gives, with the addresses that each is valid for.
fn locations(
    index: &Index,
    unit: usize,
    die: &Die,
    attribute: gimli::DwAt,
) -> Option<Vec<(Range<u64>, Expression<Reader>)>> {
    let value = die.attr_value(attribute)?;
    if let AttributeValue::Exprloc(expression) = value {
        return Some(vec![(0..u64::MAX, expression)]);
    }
    let unit = index.unit(unit)?;
    let mut list = unit.dwarf.attr_locations(&unit.unit, value).ok()??;
    let mut found = Vec::new();
    while let Some(entry) = list.next().ok()? {
        found.push((entry.range.begin..entry.range.end, entry.data));
    }
    Some(found)
}

/// The operation of an expression that has just one. Anything longer is computed, and no place in the frame.
fn only_operation(index: &Index, unit: usize, expression: Expression<Reader>) -> Option<Operation<Reader>> {
    let mut operations = expression.operations(index.unit(unit)?.unit.encoding());
    let first = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(first)
}
