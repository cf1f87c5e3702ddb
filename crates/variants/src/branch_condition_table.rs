//! The branch-condition table: which combinations of outcomes were tested (section IV.B).

use std::collections::BTreeSet;

/// The truth value of an if-statement (0 or 1), or the number of iterations of a loop.
pub type Outcome = u64;

/// A row for each combination of outcomes of all branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchConditionTable {
    /// The outcomes that each branch may have.
    outcomes: Vec<BTreeSet<Outcome>>,
    tested: BTreeSet<Vec<Outcome>>,
}

impl BranchConditionTable {
    /// For branches that may have these outcomes.
    pub fn new(outcomes: Vec<BTreeSet<Outcome>>) -> BranchConditionTable {
        BranchConditionTable { outcomes, tested: BTreeSet::new() }
    }

    /// An execution had this outcome at each branch. New ones are new rows.
    pub fn test(&mut self, row: &[Outcome]) {
        for (outcomes, &outcome) in self.outcomes.iter_mut().zip(row) {
            outcomes.insert(outcome);
        }
        self.tested.insert(row.to_vec());
    }

    /// The rows that were not tested.
    pub fn untested(&self) -> Vec<Vec<Outcome>> {
        let mut rows: Vec<Vec<Outcome>> = vec![Vec::new()];
        for outcomes in &self.outcomes {
            let longer = |row: &Vec<Outcome>| {
                let row = row.clone();
                outcomes.iter().map(move |&outcome| [row.as_slice(), &[outcome]].concat()).collect::<Vec<_>>()
            };
            rows = rows.iter().flat_map(longer).collect();
        }
        rows.retain(|row| !self.tested.contains(row));
        rows
    }
}
