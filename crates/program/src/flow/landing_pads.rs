//! Where exceptions and panics go on, from the tables of `.gcc_except_table`.
//!
//! The unwind table of a function names its exception table. That lists ranges of calls, each with the code that runs
//! when one of them throws: a handler, or destructors.

use std::ops::Range;

use gimli::{DwEhPe, Reader as _};

use crate::image::{Image, Reader};

/// Calls whose exceptions go on at the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallSites {
    pub(super) calls: Range<u64>,
    pub(super) landing_pad: u64,
}

/// The calls with landing pads in the piece of code with `address`, by address.
pub(super) fn of(image: &Image, address: u64) -> Vec<CallSites> {
    let Some((table, start)) = image.debug_info().frames.exception_table(address) else { return Vec::new() };
    let mut found = Vec::new();
    // A damaged table counts as far as it could be read.
    let _ = read(image, table, start, &mut found);
    found.sort_by_key(|sites| sites.calls.start);
    found
}

fn read(image: &Image, table: u64, function: u64, found: &mut Vec<CallSites>) -> Option<()> {
    let mut at = Cursor::new(image, table)?;
    let pads = match at.encoding()? {
        gimli::DW_EH_PE_omit => function,
        encoding => at.value(encoding)?,
    };
    if at.encoding()? != gimli::DW_EH_PE_omit {
        at.reader.read_uleb128().ok()?;
    }
    let encoding = at.encoding()?;
    let length = usize::try_from(at.reader.read_uleb128().ok()?).ok()?;
    let rest = at.reader.len().checked_sub(length)?;
    while at.reader.len() > rest {
        let (start, length) = (at.value(encoding)?, at.value(encoding)?);
        let landing_pad = at.value(encoding)?;
        // The action says which exceptions are caught. All of them may run code here.
        at.reader.read_uleb128().ok()?;
        if landing_pad != 0 {
            let start = function.wrapping_add(start);
            let calls = start..start.wrapping_add(length);
            found.push(CallSites { calls, landing_pad: pads.wrapping_add(landing_pad) });
        }
    }
    Some(())
}

/// Reads a table, and knows the address of what it reads.
struct Cursor {
    reader: Reader,
    /// The address behind the last byte of `reader`.
    end: u64,
}

impl Cursor {
    fn new(image: &Image, address: u64) -> Option<Cursor> {
        let start = image.file_offset(address)?;
        let length = image.loaded(address, u64::MAX)?.len();
        let reader = Reader::new(image.bytes().clone(), gimli::LittleEndian).range(start..start + length);
        Some(Cursor { reader, end: address + length as u64 })
    }

    fn encoding(&mut self) -> Option<DwEhPe> {
        self.reader.read_u8().ok().map(DwEhPe)
    }

    fn value(&mut self, encoding: DwEhPe) -> Option<u64> {
        let address = self.end.wrapping_sub(self.reader.len() as u64);
        let value = match encoding.format() {
            gimli::DW_EH_PE_absptr | gimli::DW_EH_PE_udata8 | gimli::DW_EH_PE_sdata8 => {
                self.reader.read_u64().ok()?
            }
            gimli::DW_EH_PE_uleb128 => self.reader.read_uleb128().ok()?,
            gimli::DW_EH_PE_sleb128 => self.reader.read_sleb128().ok()?.cast_unsigned(),
            gimli::DW_EH_PE_udata2 => self.reader.read_u16().ok()?.into(),
            gimli::DW_EH_PE_udata4 => self.reader.read_u32().ok()?.into(),
            gimli::DW_EH_PE_sdata4 => i64::from(self.reader.read_i32().ok()?).cast_unsigned(),
            _ => return None,
        };
        match encoding.application() {
            gimli::DW_EH_PE_absptr => Some(value),
            gimli::DW_EH_PE_pcrel => Some(address.wrapping_add(value)),
            _ => None,
        }
    }
}
