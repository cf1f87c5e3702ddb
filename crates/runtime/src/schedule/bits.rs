//! A set of small numbers.

use threadbare_wire::members;

#[derive(Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn insert(&mut self, index: usize) {
        if index / 64 >= self.0.len() {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    pub fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        members(&self.0)
    }

    /// The member that so many others come before.
    pub fn nth(&self, mut before: u64) -> Option<usize> {
        for (index, &word) in self.0.iter().enumerate() {
            let count = u64::from(word.count_ones());
            if before < count {
                return members(&[word]).nth(before as usize).map(|bit| index * 64 + bit);
            }
            before -= count;
        }
        None
    }

    /// The members as bits.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The first member after `index`, or else the first of all.
    pub fn after(&self, index: usize) -> Option<usize> {
        self.iter().find(|&member| member > index).or_else(|| self.iter().next())
    }
}
