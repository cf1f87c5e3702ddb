//! A set of threads.

use threadbare_trace::ThreadIndex;
use threadbare_wire::members;

#[derive(Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn insert(&mut self, thread: ThreadIndex) {
        let index = thread.index();
        if index / 64 >= self.0.len() {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub fn remove(&mut self, thread: ThreadIndex) {
        let index = thread.index();
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    pub fn contains(&self, thread: ThreadIndex) -> bool {
        let index = thread.index();
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = ThreadIndex> + '_ {
        members(&self.0)
    }

    /// The member that so many others come before.
    pub fn nth(&self, mut before: u64) -> Option<ThreadIndex> {
        for (index, &word) in self.0.iter().enumerate() {
            let count = u64::from(word.count_ones());
            if before < count {
                return members(&[word])
                    .nth(before as usize)
                    .map(|bit| ThreadIndex::at(index * 64 + bit.index()));
            }
            before -= count;
        }
        None
    }

    /// The members as bits.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    pub fn first(&self) -> Option<ThreadIndex> {
        self.iter().next()
    }

    /// The first member after `thread`, or else the first of all.
    pub fn after(&self, thread: ThreadIndex) -> Option<ThreadIndex> {
        self.iter().find(|&member| member > thread).or_else(|| self.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(members: &[u32]) -> Bits {
        let mut bits = Bits::default();
        members.iter().for_each(|&member| bits.insert(thread(member)));
        bits
    }

    fn thread(number: u32) -> ThreadIndex {
        ThreadIndex::new(number)
    }

    fn numbers(bits: &Bits) -> Vec<u32> {
        bits.iter().map(ThreadIndex::number).collect()
    }

    /// Programs have more threads than a word has bits.
    #[test]
    fn members_beyond_the_first_word() {
        let mut bits = bits(&[0, 63, 64, 200]);
        assert!(bits.contains(thread(64)) && !bits.contains(thread(65)) && !bits.contains(thread(100_000)));
        assert_eq!((bits.len(), numbers(&bits)), (4, vec![0, 63, 64, 200]));
        bits.remove(thread(64));
        bits.remove(thread(100_000));
        assert_eq!(numbers(&bits), [0, 63, 200]);
        assert_eq!(bits.words().len(), 4);
    }

    /// A random schedule draws the n-th of the ready threads: each number must name another thread.
    #[test]
    fn the_nth_member() {
        let bits = bits(&[3, 70, 71, 130]);
        let members: Vec<Option<u32>> = (0..5).map(|n| bits.nth(n).map(ThreadIndex::number)).collect();
        assert_eq!(members, [Some(3), Some(70), Some(71), Some(130), None]);
    }

    /// Threads that give way do so in turn, from the last to the first again.
    #[test]
    fn the_member_after_another() {
        let bits = bits(&[3, 70]);
        let after = |number| bits.after(thread(number)).map(ThreadIndex::number);
        assert_eq!([after(3), after(70), after(71)], [Some(70), Some(3), Some(3)]);
        assert_eq!(Bits::default().after(thread(0)), None);
    }

    /// A set that has been emptied is as empty as a new one.
    #[test]
    fn emptiness() {
        let mut bits = bits(&[100]);
        assert!(!bits.is_empty());
        bits.remove(thread(100));
        assert!(bits.is_empty() && Bits::default().is_empty());
    }
}
