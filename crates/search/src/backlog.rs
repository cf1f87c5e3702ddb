//! Schedules that are still to be tried, the next first, in bounded memory.

use std::collections::BTreeMap;

/// A queue of items, ordered by key, smallest first.
///
/// The items that one run leads to are kept together as a batch, since most of them are never reached. When the queue
/// takes too much memory, the later half of every batch is dropped, and then the last batches.
#[derive(Debug)]
pub struct Backlog<K, T> {
    /// By the key of their first item.
    batches: BTreeMap<K, Batch<K, T>>,
    bytes: u64,
    max_bytes: u64,
    dropped: u64,
}

#[derive(Debug)]
struct Batch<K, T> {
    first: T,
    /// The next one last.
    rest: Vec<(K, T)>,
    /// Bytes outside of the items.
    shared: u64,
}

impl<K: Ord + Clone, T> Backlog<K, T> {
    const ITEM: u64 = size_of::<(K, T)>() as u64;

    /// An empty backlog, for at most `max_bytes` of items.
    pub fn new(max_bytes: u64) -> Backlog<K, T> {
        Backlog { batches: BTreeMap::new(), bytes: 0, max_bytes, dropped: 0 }
    }

    pub fn push(&mut self, key: K, item: T) {
        self.extend(vec![(key, item)], 0);
    }

    /// Adds items that share so many bytes outside of themselves.
    pub fn extend(&mut self, mut items: Vec<(K, T)>, shared: u64) {
        items.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        items.shrink_to_fit();
        self.bytes += Self::ITEM * items.len() as u64 + shared;
        self.insert(items, shared);
        self.make_room();
    }

    fn insert(&mut self, mut items: Vec<(K, T)>, shared: u64) {
        match items.pop() {
            Some((key, first)) => {
                // One item needs no room for others.
                let rest = if items.is_empty() { Vec::new() } else { items };
                self.batches.insert(key, Batch { first, rest, shared });
            }
            None => self.bytes -= shared,
        }
    }

    fn make_room(&mut self) {
        let mut are_single = false;
        while self.bytes > self.max_bytes && !are_single {
            are_single = true;
            for Batch { rest, .. } in self.batches.values_mut().filter(|batch| !batch.rest.is_empty()) {
                let dropped = rest.drain(..rest.len().div_ceil(2)).len() as u64;
                rest.shrink_to_fit();
                self.bytes -= Self::ITEM * dropped;
                self.dropped += dropped;
                are_single = false;
            }
        }
        while self.bytes > self.max_bytes
            && let Some((_, batch)) = self.batches.pop_last()
        {
            self.bytes -= Self::ITEM + batch.shared;
            self.dropped += 1;
        }
    }

    /// Takes out the first.
    pub fn pop(&mut self) -> Option<(K, T)> {
        self.pop_wanted(|_| true)
    }

    /// Takes out the first item of the first batch whose first item is `wanted`. If there is no such batch, takes out the
    /// first item of all.
    pub fn pop_wanted(&mut self, wanted: impl Fn(&T) -> bool) -> Option<(K, T)> {
        let (key, _) =
            self.batches.iter().find(|(_, batch)| wanted(&batch.first)).or(self.batches.iter().next())?;
        let key = key.clone();
        let batch = self.batches.remove(&key)?;
        self.bytes -= Self::ITEM;
        self.insert(batch.rest, batch.shared);
        Some((key, batch.first))
    }

    /// The key of the first.
    pub fn first(&self) -> Option<&K> {
        self.batches.first_key_value().map(|(key, _)| key)
    }

    pub fn clear(&mut self) {
        self.batches.clear();
        self.bytes = 0;
    }

    /// Items that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popped<T>(mut backlog: Backlog<u32, T>) -> Vec<T> {
        std::iter::from_fn(|| backlog.pop()).map(|(_, item)| item).collect()
    }

    #[test]
    fn batches_are_merged() {
        let mut backlog = Backlog::new(1000);
        backlog.extend(vec![(7, 'g'), (1, 'a'), (4, 'd')], 10);
        backlog.push(3, 'c');
        backlog.extend(vec![(2, 'b'), (6, 'f'), (5, 'e')], 10);
        backlog.extend(Vec::new(), 10);
        assert_eq!(backlog.first(), Some(&1));
        let bytes = 7 * Backlog::<u32, char>::ITEM + 20;
        assert_eq!((backlog.bytes, backlog.dropped()), (bytes, 0));
        while let Some((key, item)) = backlog.pop() {
            assert_eq!(char::from_u32(u32::from('a') + key - 1), Some(item));
        }
        assert_eq!(backlog.bytes, 0);
    }

    #[test]
    fn what_is_wanted_comes_before_others() {
        let mut backlog = Backlog::new(1000);
        backlog.extend(vec![(1, 10), (4, 40)], 0);
        backlog.extend(vec![(2, 21), (3, 31)], 0);
        let mut pop = || backlog.pop_wanted(|item| item % 2 == 1).map(|(_, item)| item);
        assert_eq!([pop(), pop(), pop(), pop(), pop()], [Some(21), Some(31), Some(10), Some(40), None]);
    }

    #[test]
    fn what_comes_last_is_dropped_first() {
        let mut backlog = Backlog::new(100);
        backlog.push(2, 'b');
        backlog.extend(vec![(1, 'a')], 70);
        backlog.extend(vec![(3, 'c')], 10);
        assert_eq!((backlog.dropped(), popped(backlog)), (1, vec!['a', 'b']));
    }

    #[test]
    fn of_a_batch_the_end_is_dropped() {
        let mut backlog = Backlog::new(10 * Backlog::<u32, u32>::ITEM);
        backlog.extend((0..12).map(|item| (item, item)).collect(), 0);
        backlog.extend((20..26).map(|item| (item, item)).collect(), 0);
        assert_eq!(backlog.dropped(), 12);
        assert_eq!(popped(backlog), [0, 1, 2, 20, 21, 22]);
    }
}
