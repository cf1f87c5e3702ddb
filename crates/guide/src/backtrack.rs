//! The states that the search can go back to (Figure 3 of the paper, `backtrack` and `get_backtrack_state`).

use std::collections::BTreeMap;
use std::sync::Arc;

use threadbare_trace::{Random, ThreadIndex, Waypoint};

/// A state that was generated and not gone on from: a schedule so far, and the thread that goes next.
#[derive(Clone, Debug)]
pub struct State {
    pub picks: Arc<[ThreadIndex]>,
    pub len: usize,
    pub thread: ThreadIndex,
    /// The sequence that the search goes through.
    pub waypoints: Arc<[Waypoint]>,
}

impl State {
    /// The threads that were picked on the way to it.
    pub fn picks(&self) -> impl Iterator<Item = ThreadIndex> {
        self.picks[..self.len].iter().copied().chain([self.thread])
    }
}

/// The states at each level, which is how many locations of the sequence were passed. At each level they are sorted by
/// their distance to the next location, and at random where that is the same.
#[derive(Debug)]
pub struct Backtrack {
    levels: BTreeMap<u32, BTreeMap<(u32, u64, u64), State>>,
    len: usize,
    bound: usize,
    added: u64,
    dropped: u64,
}

impl Backtrack {
    /// Holds `bound` states at most.
    pub fn new(bound: usize) -> Backtrack {
        Backtrack { levels: BTreeMap::new(), len: 0, bound, added: 0, dropped: 0 }
    }

    pub fn add(&mut self, level: u32, distance: u32, state: State, random: &mut Random) {
        self.added += 1;
        let key = (distance, random.next(), self.added);
        self.levels.entry(level).or_default().insert(key, state);
        self.len += 1;
        if self.len > self.bound {
            self.drop_farthest();
        }
    }

    /// Takes out a state: any level, and there one with the least distance.
    pub fn take(&mut self, random: &mut Random) -> Option<State> {
        let count = self.levels.len() as u64;
        let nth = if count == 0 { return None } else { random.below(count) };
        let level = *self.levels.keys().nth(nth as usize)?;
        let states = self.levels.get_mut(&level)?;
        let (_, state) = states.pop_first()?;
        if states.is_empty() {
            self.levels.remove(&level);
        }
        self.len -= 1;
        Some(state)
    }

    /// Gives up the state that is farthest from its next location, at the level that has the most.
    fn drop_farthest(&mut self) {
        let fullest = self.levels.iter_mut().max_by_key(|(_, states)| states.len());
        if let Some((_, states)) = fullest {
            states.pop_last();
            self.len -= 1;
            self.dropped += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn clear(&mut self) {
        self.levels.clear();
        self.len = 0;
    }

    /// States that were given up because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(thread: u32) -> State {
        State { picks: Arc::new([]), len: 0, thread: ThreadIndex::new(thread), waypoints: Arc::new([]) }
    }

    /// The nearest state of a level comes first.
    #[test]
    fn the_nearest_state_is_taken() {
        let (mut backtrack, mut random) = (Backtrack::new(10), Random(1));
        for (distance, thread) in [(7, 1), (3, 2), (5, 3)] {
            backtrack.add(0, distance, state(thread), &mut random);
        }
        let taken: Vec<u32> =
            std::iter::from_fn(|| backtrack.take(&mut random)).map(|state| state.thread.number()).collect();
        assert_eq!(taken, [2, 3, 1]);
    }

    /// Each level has its turn, however few states it has.
    #[test]
    fn every_level_is_taken_from() {
        let (mut backtrack, mut random) = (Backtrack::new(1000), Random(1));
        for _ in 0..100 {
            backtrack.add(0, 1, state(0), &mut random);
        }
        backtrack.add(3, 9, state(3), &mut random);
        let threads = (0..20).filter_map(|_| backtrack.take(&mut random)).map(|state| state.thread.number());
        assert!(threads.into_iter().any(|thread| thread == 3));
    }

    /// There are never more states than the bound, and what was given up is the farthest and is counted.
    #[test]
    fn the_bound_is_kept() {
        let (mut backtrack, mut random) = (Backtrack::new(2), Random(1));
        for (distance, thread) in [(7, 1), (3, 2), (5, 3)] {
            backtrack.add(0, distance, state(thread), &mut random);
        }
        assert_eq!(backtrack.dropped(), 1);
        let taken: Vec<u32> =
            std::iter::from_fn(|| backtrack.take(&mut random)).map(|state| state.thread.number()).collect();
        assert_eq!(taken, [2, 3]);
    }
}
