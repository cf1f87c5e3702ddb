//! A length of time in two bytes, as precise as people are when they write one.

use std::fmt;

/// A length of time: a number of nanoseconds, microseconds, milliseconds or seconds, up to [`Span::MAX_COUNT`] of them.
/// It is the finest unit that has room for the number, so `500 µs` and `1500 ms` are kept as they are. More than three
/// digits are rounded: a program that waits until five seconds after it looked at a clock waits a little less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    unit: u16,
    count: u16,
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("µs", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];
/// In the two bytes, the number is below the unit.
const COUNT_BITS: u32 = 14;

impl Span {
    pub const MAX_COUNT: u16 = (1 << COUNT_BITS) - 1;

    pub fn of_nanoseconds(nanoseconds: u64) -> Span {
        let digit = 10u64.pow(nanoseconds.checked_ilog10().unwrap_or(0).saturating_sub(2));
        let nanoseconds =
            (nanoseconds / digit + u64::from(nanoseconds % digit >= digit.div_ceil(2))).saturating_mul(digit);
        let count =
            |unit: u64| u16::try_from(nanoseconds / unit).ok().filter(|&count| count <= Span::MAX_COUNT);
        let fitting = UNITS.iter().zip(0..).find_map(|(&(_, unit), number)| Some((number, count(unit)?)));
        let (unit, count) = fitting.unwrap_or((3, Span::MAX_COUNT));
        Span { unit, count }
    }

    pub fn nanoseconds(self) -> u64 {
        u64::from(self.count) * UNITS[usize::from(self.unit)].1
    }

    pub fn to_bits(self) -> u16 {
        self.unit << COUNT_BITS | self.count
    }

    pub fn from_bits(bits: u16) -> Span {
        Span { unit: bits >> COUNT_BITS, count: bits & Span::MAX_COUNT }
    }
}

impl fmt::Display for Span {
    /// In the coarsest unit that leaves no fraction: `5 s`, `1500 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.nanoseconds();
        let is_whole = |(_, unit): &&(&str, u64)| nanoseconds.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().rev().find(is_whole).unwrap_or(&UNITS[0]);
        write!(f, "{} {name}", nanoseconds / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_as_people_write_them() {
        for (nanoseconds, text) in [
            (500_000, "500 µs"),
            (1_000_000, "1 ms"),
            (1_500_000_000, "1500 ms"),
            (5_000_000_000, "5 s"),
            (0, "0 s"),
            (999, "999 ns"),
            (4_999_997_123, "5 s"),
            (1_234_567, "1230 µs"),
            (u64::MAX, "16383 s"),
        ] {
            let span = Span::of_nanoseconds(nanoseconds);
            assert_eq!(span.to_string(), text);
            assert_eq!(Span::from_bits(span.to_bits()), span);
        }
    }
}
