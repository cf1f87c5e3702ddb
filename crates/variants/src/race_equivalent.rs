//! The whole method on small programs: which execution-variants are run (Algorithm 4).
//!
//! Executions are numbered. What runs them and derives variants from their traces is the caller's: this is the choice of
//! the next ones, and when to end. On real programs the strategy `race-equivalent` does the same read by read.

use std::collections::BTreeSet;

use crate::branch_condition_table::{BranchConditionTable, Outcome};

/// What is known of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Testing {
    pub table: BranchConditionTable,
    /// By branch: its branch-affect groups.
    pub groups: Vec<Vec<Group>>,
}

/// A branch-affect group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub members: BTreeSet<usize>,
    /// If a member was run.
    pub outcome: Option<Outcome>,
}

/// Why the algorithm ends (step 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All rows of the branch-condition table were tested.
    AllRows,
    /// All branch-affect groups were tested. The rows that are left cannot happen.
    AllGroups,
}

impl Testing {
    /// Steps 2 and 3: the executions to run next.
    pub fn next(&self) -> Result<BTreeSet<usize>, Ended> {
        let untested = self.table.untested();
        if untested.is_empty() {
            return Err(Ended::AllRows);
        }
        let candidates = untested.iter().filter_map(|row| self.candidates(row).first().copied());
        let cases: BTreeSet<usize> = candidates.collect();
        if !cases.is_empty() {
            return Ok(cases);
        }
        let mut groups = self.groups.iter().flatten().filter(|group| group.outcome.is_none());
        let member = groups.find_map(|group| group.members.first().copied());
        member.map(|member| BTreeSet::from([member])).ok_or(Ended::AllGroups)
    }

    /// Step 3.2.2: the executions that have these outcomes, as far as that is known.
    fn candidates(&self, row: &[Outcome]) -> BTreeSet<usize> {
        let with_outcome = |(groups, &outcome): (&Vec<Group>, &Outcome)| -> BTreeSet<usize> {
            let groups = groups.iter().filter(|group| group.outcome == Some(outcome));
            groups.flat_map(|group| &group.members).copied().collect()
        };
        let all = self.groups.iter().zip(row).map(with_outcome);
        all.reduce(|some, others| &some & &others).unwrap_or_default()
    }

    /// Step 4: the execution was run and had this outcome at each branch.
    pub fn ran(&mut self, execution: usize, row: &[Outcome]) {
        self.table.test(row);
        for (groups, &outcome) in self.groups.iter_mut().zip(row) {
            let own = groups.iter_mut().filter(|group| group.members.contains(&execution));
            own.for_each(|group| group.outcome = Some(outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: &[usize]) -> Group {
        Group { members: members.iter().copied().collect(), outcome: None }
    }

    /// The groups of figure 11, before anything was run.
    fn fig_11() -> Testing {
        let truth = BTreeSet::from([0, 1]);
        Testing {
            table: BranchConditionTable::new(vec![truth.clone(), truth]),
            groups: vec![
                vec![group(&[1, 2, 3]), group(&[5]), group(&[4])],
                vec![group(&[1, 2, 4]), group(&[3, 5])],
            ],
        }
    }

    /// V4 and V2 are not run: all rows are tested before.
    #[test]
    fn tables_iii_and_iv_run_four_of_six_variants() {
        let mut testing = fig_11();
        testing.ran(1, &[1, 1]);
        // No variant is known to be in an untested row, so one of an untested group is run.
        assert_eq!(testing.next(), Ok(BTreeSet::from([5])));
        testing.ran(5, &[0, 0]);
        testing.groups[0][1].members.insert(6);
        testing.groups[1][0].members.insert(6);
        // Figure 12: one of them is the only candidate for each of the two rows that are left.
        assert_eq!(testing.next(), Ok(BTreeSet::from([3, 6])));
        testing.ran(3, &[1, 0]);
        testing.ran(6, &[0, 1]);
        assert_eq!(testing.next(), Err(Ended::AllRows));
    }

    #[test]
    fn rows_that_cannot_happen_are_not_waited_for() {
        let truth = BTreeSet::from([0, 1]);
        let table = BranchConditionTable::new(vec![truth]);
        let mut testing = Testing { table, groups: vec![vec![group(&[1]), group(&[2])]] };
        testing.ran(1, &[1]);
        assert_eq!(testing.next(), Ok(BTreeSet::from([2])));
        testing.ran(2, &[1]);
        assert_eq!(testing.next(), Err(Ended::AllGroups));
    }
}
