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

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(members: &[usize]) -> Bits {
        let mut bits = Bits::default();
        members.iter().for_each(|&member| bits.insert(member));
        bits
    }

    /// Programs have more threads than a word has bits.
    #[test]
    fn members_beyond_the_first_word() {
        let mut bits = bits(&[0, 63, 64, 200]);
        assert!(bits.contains(64) && !bits.contains(65) && !bits.contains(100_000));
        assert_eq!((bits.len(), bits.iter().collect::<Vec<_>>()), (4, vec![0, 63, 64, 200]));
        bits.remove(64);
        bits.remove(100_000);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 200]);
        assert_eq!(bits.words().len(), 4);
    }

    /// A random schedule draws the n-th of the ready threads: each number must name another thread.
    #[test]
    fn the_nth_member() {
        let bits = bits(&[3, 70, 71, 130]);
        let members: Vec<Option<usize>> = (0..5).map(|n| bits.nth(n)).collect();
        assert_eq!(members, [Some(3), Some(70), Some(71), Some(130), None]);
    }

    /// Threads that give way do so in turn, from the last to the first again.
    #[test]
    fn the_member_after_another() {
        let bits = bits(&[3, 70]);
        assert_eq!([bits.after(3), bits.after(70), bits.after(usize::MAX)], [Some(70), Some(3), Some(3)]);
        assert_eq!(Bits::default().after(0), None);
    }

    /// A set that has been emptied is as empty as a new one.
    #[test]
    fn emptiness() {
        let mut bits = bits(&[100]);
        assert!(!bits.is_empty());
        bits.remove(100);
        assert!(bits.is_empty() && Bits::default().is_empty());
    }
}
