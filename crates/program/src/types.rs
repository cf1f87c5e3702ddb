//! Names a byte of a variable, as in `[1].amount`, by walking the types of the debug information.
//!
//! Members of standard library types are not shown, but those of a program's type inside one are: a field of
//! `Mutex<Config>` is shown as a field of the variable. Pointers, numbers and enumerations are leaves.

use std::fmt::Write as _;

use gimli::DwAt;

use crate::debug_info::{Die, EntryId, Index};

/// The deepest nesting of types. Real types are less deep; damaged ones may have no end.
const MAX_DEPTH: usize = 64;

/// The path from a value of type `id` to the byte at `offset` in it; empty for the value itself.
pub(crate) fn path(index: &Index, id: EntryId, offset: u64) -> String {
    let mut walk = Walk { index, id, offset, path: String::new(), hidden: false, elements: false };
    for _ in 0..MAX_DEPTH {
        if walk.descend().is_none() {
            break;
        }
    }
    walk.path
}

/// How many bytes a value of this type takes.
pub(crate) fn size(index: &Index, id: EntryId) -> Option<u64> {
    let mut id = id;
    let mut count = 1_u64;
    for _ in 0..MAX_DEPTH {
        let die = index.entry(id)?;
        if let Some(bytes) = number(&die, gimli::DW_AT_byte_size) {
            return bytes.checked_mul(count);
        }
        match die.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => return count.checked_mul(8),
            gimli::DW_TAG_array_type => {
                for dimension in dimensions(index, id) {
                    count = count.checked_mul(dimension?)?;
                }
            }
            _ => {}
        }
        id = index.type_of(id)?;
    }
    None
}

/// A position on the way down.
struct Walk<'index> {
    index: &'index Index,
    id: EntryId,
    /// Bytes into the value of type `id`.
    offset: u64,
    path: String,
    /// Inside a type of a standard library, whose members are not shown.
    hidden: bool,
    /// At the elements of a `std::array`, whose indices are shown all the same.
    elements: bool,
}

impl Walk<'_> {
    /// One type further down; `None` at a leaf.
    fn descend(&mut self) -> Option<()> {
        let die = self.index.entry(self.id)?;
        match die.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => self.id = self.index.type_of(self.id)?,
            gimli::DW_TAG_array_type => self.enter_array()?,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                self.enter_record()?;
            }
            _ => return None,
        }
        Some(())
    }

    fn enter_array(&mut self) -> Option<()> {
        let element = self.index.type_of(self.id)?;
        let element_size = size(self.index, element).filter(|&size| size > 0)?;
        let dimensions: Vec<Option<u64>> = dimensions(self.index, self.id).collect();
        let mut flat = self.offset / element_size;
        let mut subscripts = vec![0; dimensions.len()];
        for (subscript, dimension) in subscripts.iter_mut().zip(&dimensions).rev() {
            // Only the first dimension may be open, and it takes what the others leave.
            let count = dimension.unwrap_or(u64::MAX);
            *subscript = flat.checked_rem(count)?;
            flat = flat.checked_div(count)?;
        }
        if flat > 0 {
            return None;
        }
        if !self.hidden || self.elements {
            for subscript in subscripts {
                let _ = write!(self.path, "[{subscript}]");
            }
        }
        self.elements = false;
        self.offset %= element_size;
        self.id = element;
        Some(())
    }

    fn enter_record(&mut self) -> Option<()> {
        let name = self.index.name(self.id);
        // Rust's fat pointers are structures by representation only.
        if name.as_deref().is_some_and(|name| name.starts_with('&')) {
            return None;
        }
        let library = self.index.is_library(self.id);
        if library || name.is_some() {
            self.hidden = library;
        }
        let member = find_member(self.index, self.id, self.offset)?;
        if let Some(name) = &member.name {
            self.enter_member(name)?;
        }
        self.offset -= member.start;
        self.id = member.type_id;
        Some(())
    }

    /// Adds the name of a member to the path, or ends the walk at a member that the program did not declare.
    fn enter_member(&mut self, name: &str) -> Option<()> {
        let is_rust = self.index.unit(self.id.unit)?.is_rust;
        if is_rust {
            if !self.hidden {
                let _ = write!(self.path, ".{}", name.strip_prefix("__").unwrap_or(name));
            }
            return Some(());
        }
        self.elements = self.hidden && matches!(name, "_M_elems" | "__elems_");
        if self.hidden {
            // The public members of the C++ library, such as those of `std::pair`, have plain names.
            if !name.starts_with('_') {
                let _ = write!(self.path, ".{name}");
            }
            return Some(());
        }
        if name.starts_with("__") {
            return None;
        }
        let _ = write!(self.path, ".{name}");
        Some(())
    }
}

/// A part of a record: a member, or a base class (which has no name of its own, like an anonymous union).
struct Member {
    name: Option<String>,
    start: u64,
    type_id: EntryId,
}

/// The first member that holds the byte at `offset`, else an array of open length at the end, else a base
/// class. An empty base claims the first byte without using it, so that members go before bases and the
/// largest base before others.
fn find_member(index: &Index, record: EntryId, offset: u64) -> Option<Member> {
    let (mut open, mut bases) = (None, Vec::new());
    for die in children(index, record) {
        let is_base = die.tag() == gimli::DW_TAG_inheritance;
        if !is_base && die.tag() != gimli::DW_TAG_member {
            continue;
        }
        let id = EntryId { unit: record.unit, offset: die.offset() };
        let (Some(start), Some(type_id)) = (member_start(index, record, &die), index.type_of(id)) else {
            continue;
        };
        let Some(inside) = offset.checked_sub(start) else { continue };
        let member = Member { name: index.name(id).filter(|name| !name.is_empty()), start, type_id };
        match member_size(index, &die, type_id) {
            Some(size) if inside < size && is_base => bases.push((size, member)),
            Some(size) if inside < size => return Some(member),
            Some(0) | None if !is_base => open = Some(member),
            _ => {}
        }
    }
    open.or_else(|| bases.into_iter().max_by_key(|(size, _)| *size).map(|(_, base)| base))
}

/// Where a member starts; static members start nowhere. All members of a union start at its start, and say
/// nothing about it.
fn member_start(index: &Index, record: EntryId, die: &Die) -> Option<u64> {
    if let Some(start) = number(die, gimli::DW_AT_data_member_location) {
        return Some(start);
    }
    if let Some(bits) = number(die, gimli::DW_AT_data_bit_offset) {
        return Some(bits / 8);
    }
    let is_union = index.entry(record)?.tag() == gimli::DW_TAG_union_type;
    (is_union && !die.has_attr(gimli::DW_AT_external)).then_some(0)
}

/// The bytes of a member: those of its type, or those that its bits are in.
fn member_size(index: &Index, die: &Die, type_id: EntryId) -> Option<u64> {
    let bits = number(die, gimli::DW_AT_data_bit_offset).zip(number(die, gimli::DW_AT_bit_size));
    match bits {
        Some((start, count)) => Some((start % 8).checked_add(count)?.div_ceil(8)),
        None => size(index, type_id),
    }
}

/// The lengths of an array, outermost first; `None` for an open one.
fn dimensions(index: &Index, array: EntryId) -> impl Iterator<Item = Option<u64>> {
    let ranges = children(index, array).into_iter().filter(|die| die.tag() == gimli::DW_TAG_subrange_type);
    ranges.map(|range| {
        number(&range, gimli::DW_AT_count)
            .or_else(|| number(&range, gimli::DW_AT_upper_bound)?.checked_add(1))
    })
}

/// The entries directly below one.
pub(crate) fn children(index: &Index, id: EntryId) -> Vec<Die> {
    let mut found = Vec::new();
    let Some(unit) = index.unit(id.unit) else { return found };
    let Ok(mut entries) = unit.unit.entries_at_offset(id.offset) else { return found };
    // The first entry is the parent itself, and the second its first child, if it has any.
    let has_children = matches!(entries.next_dfs(), Ok(Some(parent)) if parent.has_children());
    if has_children && let Ok(Some(first)) = entries.next_dfs() {
        found.push(first.clone());
        while let Ok(Some(sibling)) = entries.next_sibling() {
            found.push(sibling.clone());
        }
    }
    found
}

fn number(die: &Die, attribute: DwAt) -> Option<u64> {
    die.attr(attribute)?.udata_value()
}
