//! Schedules that are still to be tried, the next first, in bounded memory.

use std::collections::BTreeMap;

/// Items by key, smallest first. When they take too much memory, those with the largest keys are dropped.
#[derive(Debug)]
pub struct Backlog<K, T> {
    items: BTreeMap<K, (u64, T)>,
    bytes: u64,
    most: u64,
    dropped: u64,
}

impl<K: Ord + Clone, T> Backlog<K, T> {
    /// At most `most` bytes.
    pub fn new(most: u64) -> Backlog<K, T> {
        Backlog { items: BTreeMap::new(), bytes: 0, most, dropped: 0 }
    }

    /// Adds an item, which has `shared` bytes outside of itself.
    pub fn push(&mut self, key: K, item: T, shared: u64) {
        let bytes = size_of::<(K, T)>() as u64 + shared;
        self.bytes += bytes;
        self.items.insert(key, (bytes, item));
        while self.bytes > self.most
            && let Some((_, (bytes, _))) = self.items.pop_last()
        {
            self.bytes -= bytes;
            self.dropped += 1;
        }
    }

    /// Takes out the first.
    pub fn pop(&mut self) -> Option<(K, T)> {
        let (key, (bytes, item)) = self.items.pop_first()?;
        self.bytes -= bytes;
        Some((key, item))
    }

    /// The key of the first.
    pub fn first(&self) -> Option<&K> {
        self.items.first_key_value().map(|(key, _)| key)
    }

    pub fn clear(&mut self) {
        self.items.clear();
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

    #[test]
    fn what_comes_last_is_dropped_first() {
        let mut backlog = Backlog::new(100);
        backlog.push(2, 'b', 0);
        backlog.push(1, 'a', 60);
        backlog.push(3, 'c', 20);
        assert_eq!((backlog.pop(), backlog.pop(), backlog.pop()), (Some((1, 'a')), Some((2, 'b')), None));
        assert_eq!(backlog.dropped(), 1);
    }
}
