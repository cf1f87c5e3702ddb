//! The decisions of a run, as the runtime writes them.

use threadbare_trace::ThreadIndex;

use crate::words::Words;

/// The decisions of a run, one after the other. Each is a few words: how many records were in the log by then, the
/// state of the program, the thread that was picked, and a set of bits with a bit for each thread that could have
/// been picked.
#[derive(Clone, Debug)]
pub struct Decisions<'a>(Words<'a>);

/// A point in a run at which a thread had to be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Records in the log by then.
    pub records: u64,
    /// Two decisions with the same number were made in the same state of the program.
    pub state: u64,
    pub picked: ThreadIndex,
    alternatives: &'a [u64],
}

impl<'a> Decisions<'a> {
    pub fn new(words: &'a [u64]) -> Decisions<'a> {
        Decisions(Words(words))
    }

    /// Words that come before the set of alternatives.
    pub const HEAD: usize = 3;

    /// Those words; the set that follows takes `set` words.
    pub fn head(records: u64, state: u64, picked: ThreadIndex, set: usize) -> [u64; Decisions::HEAD] {
        [records, state, u64::from(picked.number()) | (set as u64) << 32]
    }
}

impl<'a> Iterator for Decisions<'a> {
    type Item = Decision<'a>;

    fn next(&mut self) -> Option<Decision<'a>> {
        let words = &mut self.0;
        let (records, state, last) = (words.next().ok()?, words.next().ok()?, words.next().ok()?);
        let (alternatives, rest) = words.0.split_at_checked((last >> 32) as usize)?;
        words.0 = rest;
        Some(Decision { records, state, picked: ThreadIndex::new(last as u32), alternatives })
    }
}

impl Decision<'_> {
    /// All threads that could have been picked, in order, with the one that was.
    pub fn alternatives(&self) -> impl Iterator<Item = ThreadIndex> {
        members(self.alternatives)
    }
}

/// The members of a set of threads, which has a bit for each, in order.
pub fn members(words: &[u64]) -> impl Iterator<Item = ThreadIndex> {
    words.iter().enumerate().flat_map(|(i, &word)| {
        std::iter::successors((word != 0).then_some(word), |&rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| ThreadIndex::at(i * 64 + rest.trailing_zeros() as usize))
    })
}
