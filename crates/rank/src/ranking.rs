//! The ranking (section 3.1): tuples (c, v, t, l), and the order in which they are searched.

use rustc_hash::FxHashMap;
use threadbare_search::{Tuple, Variables};

/// What a schedule takes, and so which tuples have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Demand {
    pub preemptions: u32,
    /// The variables whose accesses it preempts at, in order.
    pub variables: Vec<u64>,
    pub repeats: u32,
}

impl Demand {
    /// What a schedule demands that is also preempted before an access to `variable`, if it is one, which a thread
    /// comes to for the `repeats`-th time.
    pub fn and(&self, variable: Option<u64>, repeats: u32) -> Demand {
        let mut variables = self.variables.clone();
        if let Some(variable) = variable
            && let Err(at) = variables.binary_search(&variable)
        {
            variables.insert(at, variable);
        }
        Demand { preemptions: self.preemptions + 1, variables, repeats: self.repeats.max(repeats) }
    }

    /// The same in numbers, under an order for so many threads.
    pub fn counts_and(&self, variable: Option<u64>, repeats: u32, threads: u32) -> Counts {
        let counts = self.counts(threads);
        let is_new = variable.is_some_and(|variable| self.variables.binary_search(&variable).is_err());
        Counts {
            preemptions: counts.preemptions + 1,
            variables: counts.variables + u32::from(is_new),
            repeats: counts.repeats.max(repeats),
            ..counts
        }
    }

    pub fn counts(&self, threads: u32) -> Counts {
        let &Demand { preemptions, repeats, .. } = self;
        Counts { preemptions, variables: self.variables.len() as u32, threads, repeats }
    }
}

/// The tuple has schedules with this demand.
fn admits(tuple: &Tuple, demand: &Counts) -> bool {
    let enough = match tuple.v {
        Variables::Some(v) => demand.variables <= v,
        Variables::All => true,
    };
    enough && tuple.c >= demand.preemptions && tuple.t >= demand.threads && tuple.l >= demand.repeats
}

/// A demand in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    pub preemptions: u32,
    pub variables: u32,
    pub threads: u32,
    pub repeats: u32,
}

/// The order of tuples: the user's, or the paper's and what follows from it.
pub struct Ranking {
    tuples: Vec<Tuple>,
    /// Blocks of the paper's order that are in `tuples`; `None` for an order that has an end.
    blocks: Option<u32>,
    known: FxHashMap<Counts, Option<usize>>,
}

impl Ranking {
    pub fn new(given: Option<Vec<Tuple>>) -> Ranking {
        let blocks = if given.is_some() { None } else { Some(0) };
        Ranking { tuples: given.unwrap_or_default(), blocks, known: FxHashMap::default() }
    }

    pub fn tuple(&self, place: usize) -> Tuple {
        self.tuples[place]
    }

    /// The place of the first tuple that has schedules with this demand; `None` when none has.
    pub fn place(&mut self, demand: Counts) -> Option<usize> {
        // The paper's tuples have powers of two only.
        let repeats = if self.blocks.is_some() { demand.repeats.next_power_of_two() } else { demand.repeats };
        let counts = Counts { repeats, ..demand };
        if let Some(&place) = self.known.get(&counts) {
            return place;
        }
        let mut from = 0;
        let place = loop {
            if let Some(at) = self.tuples[from..].iter().position(|tuple| admits(tuple, &counts)) {
                break Some(from + at);
            }
            from = self.tuples.len();
            let Some(blocks) = &mut self.blocks else { break None };
            *blocks += 1;
            self.tuples.extend(block(*blocks));
        };
        self.known.insert(counts, place);
        place
    }
}

/// The `number`-th block (from 1): its round with each loop taken once, then the round before the last with loops
/// taken twice, the one before the last of that four times, and so on.
fn block(number: u32) -> impl Iterator<Item = Tuple> {
    let rounds = (1..=number).rev().step_by(2).zip(0..31);
    rounds.flat_map(|(number, doubled)| round(number, 1 << doubled))
}

/// The tuples that come with bound `c`. The paper lists the first two rounds and the beginning of the third: first
/// the new bound with two threads and at most one variable, then smaller bounds with one thread more than before, and
/// last the new bound with everything.
fn round(c: u32, l: u32) -> Vec<Tuple> {
    use Variables::{All, Some};
    if c == 1 {
        return vec![Tuple::new(0, Some(0), 2, l), Tuple::new(1, Some(0), 2, l), Tuple::new(1, All, 2, l)];
    }
    let t = c + 1;
    let mut tuples =
        vec![Tuple::new(c, Some(0), 2, l), Tuple::new(c, Some(1), 2, l), Tuple::new(0, Some(0), t, l)];
    tuples.extend((1..c).map(|smaller| Tuple::new(smaller, All, t, l)));
    tuples.push(Tuple::new(c, All, 2, l));
    tuples.extend((3..=t).flat_map(|t| [Tuple::new(c, Some(1), t, l), Tuple::new(c, All, t, l)]));
    tuples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_begins_as_the_paper_lists_it() {
        let paper = "(0,0,2,1) (1,0,2,1) (1,all,2,1) (2,0,2,1) (2,1,2,1) (0,0,3,1) (1,all,3,1) (2,all,2,1) \
                     (2,1,3,1) (2,all,3,1) (3,0,2,1)";
        let tuples = (1..).flat_map(block).take(11).map(|tuple| tuple.to_string());
        assert_eq!(tuples.collect::<Vec<_>>().join(" "), paper);
    }

    #[test]
    fn a_demand_stands_where_the_first_tuple_has_it() {
        let mut ranking = Ranking::new(None);
        let mut first = |preemptions, variables: &[u64], threads, repeats| {
            let demand = Demand { preemptions, variables: variables.to_vec(), repeats };
            let place = ranking.place(demand.counts(threads)).expect("the paper's order has no end");
            ranking.tuple(place).to_string()
        };
        assert_eq!(first(0, &[], 2, 1), "(0,0,2,1)");
        assert_eq!(first(1, &[7], 2, 1), "(1,all,2,1)");
        assert_eq!(first(2, &[7], 2, 1), "(2,1,2,1)");
        assert_eq!(first(2, &[7, 8], 2, 1), "(2,all,2,1)");
        assert_eq!(first(1, &[], 3, 1), "(1,all,3,1)");
        assert_eq!(first(1, &[7], 2, 2), "(1,all,2,2)");
        assert_eq!(first(0, &[], 2, 1000), "(0,0,2,1024)");
    }

    #[test]
    fn demands_are_counted_as_they_grow() {
        let mut demand = Demand { repeats: 1, ..Demand::default() };
        for (variable, repeats) in [(Some(7), 1), (None, 3), (Some(5), 2), (Some(7), 1)] {
            let counts = demand.counts_and(variable, repeats, 2);
            demand = demand.and(variable, repeats);
            assert_eq!(demand.counts(2), counts);
        }
        assert_eq!(demand, Demand { preemptions: 4, variables: vec![5, 7], repeats: 3 });
    }

    #[test]
    fn a_users_order_ends() {
        let mut ranking = Ranking::new(Some(vec!["(0,0,3,1)".parse().expect("a tuple")]));
        let demand = Demand { repeats: 1, ..Demand::default() };
        assert_eq!(ranking.place(demand.counts(2)), Some(0));
        assert_eq!(ranking.place(demand.counts_and(None, 1, 2)), None);
    }
}
