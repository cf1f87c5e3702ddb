//! Numbers, eight bytes each: how plans, extents and decisions travel.

use threadbare_trace::ThreadId;

/// Words did not decode: tool and runtime disagree, which is a fault of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled;

/// Reads the words of a plan, an extent or a decision one after the other.
#[derive(Clone, Debug)]
pub(super) struct Words<'a>(pub(super) &'a [u64]);

impl Words<'_> {
    pub(super) fn next(&mut self) -> Result<u64, Garbled> {
        let (&first, rest) = self.0.split_first().ok_or(Garbled)?;
        self.0 = rest;
        Ok(first)
    }

    /// A count of items that take at least one word each.
    pub(super) fn count(&mut self) -> Result<usize, Garbled> {
        let count = self.next()? as usize;
        if count > self.0.len() { Err(Garbled) } else { Ok(count) }
    }

    pub(super) fn thread(&mut self) -> Result<ThreadId, Garbled> {
        let path: Vec<u32> = (0..self.count()?)
            .map(|_| u32::try_from(self.next()?).map_err(|_| Garbled))
            .collect::<Result<_, _>>()?;
        ThreadId::from_path(&path).ok_or(Garbled)
    }
}

pub(super) fn push_thread(words: &mut Vec<u64>, thread: &ThreadId) {
    words.push(thread.path().len() as u64);
    words.extend(thread.path().iter().map(|&part| u64::from(part)));
}
