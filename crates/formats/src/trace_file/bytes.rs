//! The numbers, texts and lists that a trace file is made of.

use super::FormatError;

pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// An index as its difference from another.
pub fn put_index_near(out: &mut Vec<u8>, index: u32, near: u32) {
    put_signed(out, i64::from(index) - i64::from(near));
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads a file front to back. What a method was called to read is named in `expected`, for the error.
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Starts at `offset`, which is at most the number of bytes.
    pub fn new(bytes: &'a [u8], offset: usize) -> Reader<'a> {
        Reader { bytes, offset }
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    pub fn byte(&mut self, expected: &'static str) -> Result<u8, FormatError> {
        let offset = self.offset;
        let byte = *self.bytes.get(offset).ok_or(FormatError::Truncated { offset, expected })?;
        self.offset += 1;
        Ok(byte)
    }

    /// A byte that tells cases apart, from 0 to `last`.
    pub fn tag(&mut self, expected: &'static str, last: u8) -> Result<u8, FormatError> {
        self.known(expected, |tag| (tag <= last).then_some(tag))
    }

    /// A byte that stands for one of the things that `from_byte` knows.
    pub fn known<T>(
        &mut self,
        expected: &'static str,
        from_byte: impl Fn(u8) -> Option<T>,
    ) -> Result<T, FormatError> {
        let offset = self.offset;
        let found = self.byte(expected)?;
        from_byte(found).ok_or(FormatError::Unexpected { offset, expected, found: found.into() })
    }

    pub fn number(&mut self, expected: &'static str) -> Result<u64, FormatError> {
        let offset = self.offset;
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte(expected)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(FormatError::Unexpected { offset, expected, found: number })
    }

    /// A number of 32 bits.
    pub fn small(&mut self, expected: &'static str) -> Result<u32, FormatError> {
        let offset = self.offset;
        let number = self.number(expected)?;
        u32::try_from(number).map_err(|_| FormatError::Unexpected { offset, expected, found: number })
    }

    pub fn signed(&mut self, expected: &'static str) -> Result<i64, FormatError> {
        let number = self.number(expected)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A signed number of 32 bits.
    pub fn small_signed(&mut self, expected: &'static str) -> Result<i32, FormatError> {
        let offset = self.offset;
        let number = self.signed(expected)?;
        i32::try_from(number).map_err(|_| FormatError::Unexpected { offset, expected, found: number as u64 })
    }

    /// An index into a table of `entries`.
    pub fn index(&mut self, expected: &'static str, entries: usize) -> Result<u32, FormatError> {
        let offset = self.offset;
        let number = self.number(expected)?;
        u32::try_from(number)
            .ok()
            .filter(|&index| (index as usize) < entries)
            .ok_or(FormatError::OutOfRange { offset, expected, entries })
    }

    /// An index into a table of `entries`, written as its difference from `near`.
    pub fn index_near(
        &mut self,
        expected: &'static str,
        near: u32,
        entries: usize,
    ) -> Result<u32, FormatError> {
        let offset = self.offset;
        let difference = self.signed(expected)?;
        i64::from(near)
            .checked_add(difference)
            .and_then(|index| u32::try_from(index).ok())
            .filter(|&index| (index as usize) < entries)
            .ok_or(FormatError::OutOfRange { offset, expected, entries })
    }

    pub fn text(&mut self, expected: &'static str) -> Result<String, FormatError> {
        let offset = self.offset;
        let len = self.number(expected)?;
        let len = usize::try_from(len)
            .ok()
            .filter(|&len| len <= self.remaining())
            .ok_or(FormatError::Truncated { offset, expected })?;
        let bytes = &self.bytes[self.offset..self.offset + len];
        let text = str::from_utf8(bytes).map_err(|_| FormatError::NotUtf8 { offset, expected })?;
        self.offset += len;
        Ok(text.to_owned())
    }

    /// A count, and that many of what `item` reads, each of which takes `least` bytes or more.
    pub fn list<T>(
        &mut self,
        expected: &'static str,
        least: usize,
        mut item: impl FnMut(&mut Reader<'a>) -> Result<T, FormatError>,
    ) -> Result<Vec<T>, FormatError> {
        let offset = self.offset;
        let count = self.number(expected)?;
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count <= self.remaining() / least)
            .ok_or(FormatError::Truncated { offset, expected })?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), FormatError> {
        if self.remaining() > 0 { Err(FormatError::Excess { offset: self.offset }) } else { Ok(()) }
    }
}
