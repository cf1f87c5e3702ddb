//! The frame of a function, cut into cells.
//!
//! The cuts are where accesses begin and end, so that an access at a known place covers whole cells. There are no gaps:
//! memory that only callees touch belongs to a cell too.

use std::ops::Range;

use super::code::Code;
use super::pointer::{Base, Place, Pointer};
use super::tracking::Tracking;

/// A copy of a large array may claim any size. No frame is larger.
const MAX_SIZE: i64 = 1 << 32;

pub(super) struct Cells {
    /// The offsets at which cells begin; the last one is the end.
    bounds: Vec<i64>,
}

impl Cells {
    pub(super) fn of(code: &Code, tracking: &Tracking) -> Cells {
        let mut bounds = vec![0, 8];
        for place in tracking.places.iter().flatten() {
            if let Place::Frame { offset, size } = *place {
                bounds.extend([offset, offset.saturating_add(size.into())]);
            }
        }
        for (passed, summary) in tracking.calls.iter().zip(&code.calls) {
            let (Some(passed), Some(summary)) = (passed, summary) else { continue };
            for pointer in passed.registers {
                if let Pointer::At(Base::Frame, offset) = pointer {
                    bounds.extend([offset, offset.saturating_add(1)]);
                }
            }
            for write in &summary.writes {
                let pointer = passed.registers[usize::from(write.register)];
                if let (Pointer::At(Base::Frame, offset), Some((skip, size))) =
                    (pointer, summary.range(write, &passed.registers))
                {
                    let start = offset.saturating_add(skip);
                    bounds.extend([start, start.saturating_add(i64::from(size).min(MAX_SIZE))]);
                }
            }
        }
        bounds.sort_unstable();
        bounds.dedup();
        Cells { bounds }
    }

    pub(super) fn count(&self) -> usize {
        self.bounds.len() - 1
    }

    pub(super) fn extent(&self, cell: usize) -> Range<i64> {
        self.bounds[cell]..self.bounds[cell + 1]
    }

    /// The cells that have a byte of a range.
    pub(super) fn touching(&self, offset: i64, size: u32) -> Range<usize> {
        let end = offset.saturating_add(size.into());
        let first = self.bounds.partition_point(|bound| *bound <= offset).saturating_sub(1);
        let last = self.bounds.partition_point(|bound| *bound < end).min(self.count());
        if last <= first || self.bounds[first] >= end || self.extent(last - 1).end <= offset {
            return 0..0;
        }
        first..last
    }

    /// The cells that may be reached from an address of the frame, at a distance that is not known: all of the frame,
    /// because a pointer may be to the end of an array. Arguments on the stack are above the frame, and apart from it.
    pub(super) fn around(&self, offset: i64) -> Range<usize> {
        let top = self.bounds.partition_point(|bound| *bound < 0);
        if offset < 0 { 0..top } else { top..self.count() }
    }
}
