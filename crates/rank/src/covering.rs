//! Orders of threads such that any `t` of them occur in each of their orders: sequence covering arrays.
//!
//! For t = 2 any order and its reverse will do. For more, orders are made greedily: threads are inserted one after
//! the other, each where it brings about the most arrangements that no earlier order has, and each order is
//! followed by its reverse. What that takes grows with the t-th power of the number of threads, so many threads are
//! first given few colours, in several ways, such that any t threads have different colours in one of them; an
//! array for the colours then gives one for the threads.

use threadbare_trace::Random;

/// Threads, highest priority first, by their positions in the list of all threads. They are plain numbers here, since an
/// arrangement is counted by them as digits and a colour takes the place of a thread.
pub type Sequence = Vec<u32>;

/// Arrangements that are kept track of at a time, at most.
const MAX_ARRANGEMENTS: u64 = 4 << 20;

/// Orders of `threads` threads in which any `t` of them occur in each of their orders.
pub fn covering_array(threads: u32, t: u32) -> Vec<Sequence> {
    let t = t.min(threads);
    let rising: Sequence = (0..threads).collect();
    if t < 2 {
        return vec![rising];
    }
    if t == 2 {
        let falling = rising.iter().rev().copied().collect();
        return vec![rising, falling];
    }
    if u64::from(threads).checked_pow(t).is_some_and(|arrangements| arrangements <= MAX_ARRANGEMENTS) {
        greedy(threads, t)
    } else {
        by_colours(threads, t)
    }
}

/// Which arrangements of `t` threads no order has yet: a bit for each, by its digits in base `threads`.
struct Uncovered {
    threads: u32,
    t: u32,
    bits: Vec<u64>,
    count: u64,
}

impl Uncovered {
    fn all(threads: u32, t: u32) -> Uncovered {
        let size = u64::from(threads).pow(t);
        let bits = vec![0; size.div_ceil(64) as usize];
        let mut uncovered = Uncovered { threads, t, bits, count: 0 };
        for place in 0..size {
            let arrangement = uncovered.arrangement(place);
            if (1..arrangement.len()).all(|i| !arrangement[..i].contains(&arrangement[i])) {
                uncovered.bits[place as usize / 64] |= 1 << (place % 64);
                uncovered.count += 1;
            }
        }
        uncovered
    }

    fn place(&self, arrangement: impl Iterator<Item = u32>) -> u64 {
        arrangement.fold(0, |place, thread| place * u64::from(self.threads) + u64::from(thread))
    }

    fn arrangement(&self, place: u64) -> Sequence {
        let digit = |i: u32| (place / u64::from(self.threads).pow(i) % u64::from(self.threads)) as u32;
        (0..self.t).rev().map(digit).collect()
    }

    fn contains(&self, place: u64) -> bool {
        self.bits[place as usize / 64] >> (place % 64) & 1 == 1
    }

    /// One that is there, if any is.
    fn any(&self, random: &mut Random) -> Option<Sequence> {
        let start = random.below(self.bits.len() as u64) as usize;
        let words = (start..self.bits.len()).chain(0..start);
        let word = words.into_iter().find(|&word| self.bits[word] != 0)?;
        Some(self.arrangement(word as u64 * 64 + u64::from(self.bits[word].trailing_zeros())))
    }

    /// Takes out everything that `order` has; says whether that was anything.
    fn cover(&mut self, order: &[u32]) -> bool {
        let before = self.count;
        for_each_choice(order.len(), self.t as usize, |chosen| {
            let place = self.place(chosen.iter().map(|&at| order[at]));
            if self.contains(place) {
                self.bits[place as usize / 64] &= !(1 << (place % 64));
                self.count -= 1;
            }
        });
        self.count < before
    }

    /// For each position in `order`, how many arrangements come about by inserting `thread` there.
    fn gains(&self, order: &[u32], thread: u32) -> Vec<u64> {
        // Only between which of the others the thread stands matters: what that brings goes to a range of positions.
        let mut changes = vec![0i64; order.len() + 2];
        for_each_choice(order.len(), self.t as usize - 1, |others| {
            for slot in 0..=others.len() {
                let before = others[..slot].iter().map(|&at| order[at]);
                let after = others[slot..].iter().map(|&at| order[at]);
                if self.contains(self.place(before.chain([thread]).chain(after))) {
                    let first = slot.checked_sub(1).map_or(0, |left| others[left] + 1);
                    let last = others.get(slot).copied().unwrap_or(order.len());
                    changes[first] += 1;
                    changes[last + 1] -= 1;
                }
            }
        });
        let mut gain = 0;
        let gains = changes[..=order.len()].iter().map(|change| {
            gain += change;
            gain as u64
        });
        gains.collect()
    }
}

/// Calls `visit` with every choice of `count` of the first `of` numbers, rising.
fn for_each_choice(of: usize, count: usize, mut visit: impl FnMut(&[usize])) {
    if of < count {
        return;
    }
    let mut chosen: Vec<usize> = (0..count).collect();
    loop {
        visit(&chosen);
        let has_room = |&i: &usize| chosen[i] < of - count + i;
        let Some(last) = (0..count).rev().find(has_room) else { return };
        chosen[last] += 1;
        for i in last + 1..count {
            chosen[i] = chosen[i - 1] + 1;
        }
    }
}

fn greedy(threads: u32, t: u32) -> Vec<Sequence> {
    let mut uncovered = Uncovered::all(threads, t);
    let mut random = Random(u64::from(threads) << 8 | u64::from(t));
    let mut orders = Vec::new();
    let mut next: Option<Sequence> = Some((0..threads).collect());
    while let Some(order) = next {
        let reverse: Sequence = order.iter().rev().copied().collect();
        for order in [order, reverse] {
            if uncovered.cover(&order) {
                orders.push(order);
            }
        }
        next = best_order(&uncovered, &mut random);
    }
    orders
}

/// Few threads are worth several tries.
const TRIES: usize = 8;
const FEW: u64 = 16 << 10;

/// An order that brings much; `None` when nothing is missing.
fn best_order(uncovered: &Uncovered, random: &mut Random) -> Option<Sequence> {
    let tries = if uncovered.count < FEW { TRIES } else { 1 };
    let made = (0..tries).filter_map(|_| insert_all(uncovered, random));
    made.max_by_key(|(gain, _)| *gain).map(|(_, order)| order)
}

/// Begins with an arrangement that is missing, and inserts the other threads in a random order, each where it
/// brings most. Gives what that brings in all.
fn insert_all(uncovered: &Uncovered, random: &mut Random) -> Option<(u64, Sequence)> {
    let mut order = uncovered.any(random)?;
    let mut total = 1;
    let mut rest: Sequence = (0..uncovered.threads).filter(|thread| !order.contains(thread)).collect();
    while !rest.is_empty() {
        let thread = rest.swap_remove(random.below(rest.len() as u64) as usize);
        let gains = uncovered.gains(&order, thread);
        let best = gains.iter().copied().max().unwrap_or(0);
        let places: Vec<usize> = (0..gains.len()).filter(|&place| gains[place] == best).collect();
        order.insert(places[random.below(places.len() as u64) as usize], thread);
        total += best;
    }
    Some((total, order))
}

/// Threads are the lines over a prime field, a colour is a line's value at a point. Two lines meet in at most one
/// point, so of as many points as `t` threads have pairs, and one, there is a point where no two of them meet.
fn by_colours(threads: u32, t: u32) -> Vec<Sequence> {
    let points = t * (t - 1) / 2 + 1;
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let field =
        (points.max(2)..).filter(is_prime).find(|&p| p.saturating_mul(p) >= threads).unwrap_or(threads);
    let colours = covering_array(field, t);
    let colour = |thread: u32, point: u32| (thread / field * point + thread % field) % field;
    let mut orders = Vec::new();
    for point in 0..points {
        for sequence in &colours {
            let mut place = vec![0; field as usize];
            sequence.iter().enumerate().for_each(|(at, &colour)| place[colour as usize] = at);
            let mut order: Sequence = (0..threads).collect();
            order.sort_by_key(|&thread| place[colour(thread, point) as usize]);
            orders.push(order);
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Looks for every arrangement of every `t` threads, one by one.
    fn assert_covers(orders: &[Sequence], threads: u32, t: u32) {
        let mut seen: HashSet<Sequence> = HashSet::new();
        for order in orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..threads), "{order:?} is no order of {threads} threads");
            for_each_choice(order.len(), t as usize, |chosen| {
                seen.insert(chosen.iter().map(|&at| order[at]).collect());
            });
        }
        let arrangements: u64 = (0..u64::from(t)).map(|i| u64::from(threads) - i).product();
        assert_eq!(seen.len() as u64, arrangements, "{threads} threads, t = {t}");
    }

    #[test]
    fn any_threads_occur_in_each_of_their_orders() {
        for t in 2..=4 {
            for threads in t..=12 {
                assert_covers(&covering_array(threads, t), threads, t);
            }
        }
    }

    #[test]
    fn many_threads_are_covered_through_colours() {
        for (threads, t) in [(9, 3), (25, 3), (40, 3)] {
            assert_covers(&by_colours(threads, t), threads, t);
        }
    }

    #[test]
    fn two_orders_do_for_pairs() {
        assert_eq!(covering_array(4, 2), [[0, 1, 2, 3], [3, 2, 1, 0]]);
        assert_eq!(covering_array(200, 2).len(), 2);
        assert_eq!(covering_array(1, 2), [[0]]);
    }

    /// A greedy array as the literature has it takes 8, 10, 12, 12, 12, 14, 14, 16 orders for 5 to 12 threads at t = 3.
    #[test]
    fn sizes_stay_close_to_known_ones() {
        let sizes = |t, threads: std::ops::RangeInclusive<u32>| -> Vec<usize> {
            threads.map(|threads| covering_array(threads, t).len()).collect()
        };
        assert_eq!(sizes(3, 3..=12), [6, 8, 10, 10, 12, 12, 14, 14, 16, 16]);
        assert_eq!(sizes(4, 4..=12), [24, 28, 40, 40, 46, 54, 60, 64, 68]);
    }
}
