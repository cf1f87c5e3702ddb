//! Several strategies, that share the runs.

use std::collections::{HashSet, VecDeque};

use threadbare_executor::Ended;
use threadbare_rank::{Feedback, Next, Strategy};
use threadbare_trace::FailureKind;

/// Strategies that take turns; the one that was the last to find something has more of them.
///
/// What comes of a run is told to all.
pub struct Pipeline {
    name: &'static str,
    members: Vec<Member>,
    /// Whose the first runs are.
    opening: VecDeque<usize>,
    /// Who asked for each of the runs that are not answered yet.
    asked: VecDeque<usize>,
    /// Who was the last to find something.
    last_finder: Option<usize>,
    /// What was found, as far as it tells one failure from another.
    found: HashSet<(FailureKind, String, u64)>,
}

struct Member {
    strategy: Box<dyn Strategy>,
    /// Runs that it is due, in parts of a run.
    credit: i64,
}

/// Turns of the one that found something last, for each of the others'.
const BONUS: i64 = 3;

impl Pipeline {
    /// Strategies that take turns after an opening: whose the first runs are, and how many.
    pub fn new(
        name: &'static str,
        strategies: Vec<Box<dyn Strategy>>,
        opening: &[(usize, usize)],
    ) -> Pipeline {
        Pipeline {
            name,
            members: strategies.into_iter().map(|strategy| Member { strategy, credit: 0 }).collect(),
            opening: opening.iter().flat_map(|&(member, runs)| std::iter::repeat_n(member, runs)).collect(),
            asked: VecDeque::new(),
            last_finder: None,
            found: HashSet::new(),
        }
    }

    fn weight(&self, member: usize) -> i64 {
        if self.last_finder == Some(member) { BONUS } else { 1 }
    }

    /// Whose turn it is among these: of those that are due the same, the first's.
    fn whose_turn(&self, able: &[usize]) -> Option<usize> {
        able.iter().copied().max_by_key(|&member| (self.members[member].credit, usize::MAX - member))
    }

    /// Asks a strategy for a run; what it says if it has none.
    fn ask(&mut self, member: usize) -> Next {
        let next = self.members[member].strategy.next();
        if matches!(next, Next::Run(_)) {
            self.asked.push_back(member);
        }
        next
    }

    /// Everyone who could have run is due a part of the run that `member` is given.
    fn give(&mut self, member: usize, able: &[usize]) {
        for &other in able {
            let weight = self.weight(other);
            self.members[other].credit += weight;
            self.members[member].credit -= weight;
        }
    }

    /// Is this failure one that was not seen before?
    fn is_new(&mut self, ended: &Ended) -> bool {
        let Ended::Failed { kind, message, pc, .. } = ended else { return false };
        self.found.insert((*kind, message.clone(), *pc))
    }
}

impl Strategy for Pipeline {
    fn name(&self) -> &'static str {
        self.name
    }

    fn next(&mut self) -> Next {
        while let Some(member) = self.opening.pop_front() {
            if let Next::Run(schedule) = self.ask(member) {
                return Next::Run(schedule);
            }
        }
        let mut able: Vec<usize> = (0..self.members.len()).collect();
        let mut waits = false;
        while let Some(member) = self.whose_turn(&able) {
            match self.ask(member) {
                Next::Run(schedule) => {
                    self.give(member, &able);
                    return Next::Run(schedule);
                }
                Next::Wait => waits = true,
                Next::Exhausted => {}
            }
            able.retain(|&other| other != member);
        }
        if waits { Next::Wait } else { Next::Exhausted }
    }

    fn take(&mut self, feedback: &Feedback) {
        let Some(asker) = self.asked.pop_front() else { return };
        if self.is_new(&feedback.ended) {
            self.last_finder = Some(asker);
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            if index == asker {
                member.strategy.take(feedback);
            } else {
                member.strategy.overhear(feedback);
            }
        }
    }

    fn overhear(&mut self, feedback: &Feedback) {
        self.members.iter_mut().for_each(|member| member.strategy.overhear(feedback));
    }

    fn prefer(&mut self, most_turns: u64) {
        self.members.iter_mut().for_each(|member| member.strategy.prefer(most_turns));
    }

    fn draws(&self) -> bool {
        self.members.iter().any(|member| member.strategy.draws())
    }

    fn dropped(&self) -> u64 {
        self.members.iter().map(|member| member.strategy.dropped()).sum()
    }
}

#[cfg(test)]
mod tests {
    use threadbare_rank::Schedule;
    use threadbare_trace::Plan;

    use super::*;

    /// Asks for so many runs.
    struct Some {
        name: &'static str,
        left: u64,
    }

    impl Strategy for Some {
        fn name(&self) -> &'static str {
            self.name
        }

        fn next(&mut self) -> Next {
            match self.left.checked_sub(1) {
                Option::Some(left) => {
                    self.left = left;
                    Next::Run(Schedule::new(self.name, Plan::default()))
                }
                None => Next::Exhausted,
            }
        }

        fn take(&mut self, _: &Feedback) {}

        fn overhear(&mut self, _: &Feedback) {}
    }

    fn pipeline(left: [u64; 3]) -> Pipeline {
        let names = ["a", "b", "c"].into_iter().zip(left);
        let members = names.map(|(name, left)| Box::new(Some { name, left }) as _).collect();
        Pipeline::new("all", members, &[(0, 3), (1, 2)])
    }

    fn feedback(ended: Ended) -> Feedback {
        let (decisions, threads, learnt) = (Vec::new(), Vec::new(), Vec::new());
        Feedback { decisions, threads, events: 0, learnt, ended, bound: 0, trace: None }
    }

    fn failure(message: &str) -> Ended {
        Ended::Failed { kind: FailureKind::Abort, message: message.to_owned(), thread: 0, pc: 1 }
    }

    /// The names of those who get the next runs; what they find is `ended`.
    fn names(pipeline: &mut Pipeline, count: usize, ended: &dyn Fn(&str) -> Ended) -> String {
        let next = || match pipeline.next() {
            Next::Run(schedule) => {
                pipeline.take(&feedback(ended(schedule.method)));
                Option::Some(schedule.method)
            }
            Next::Wait | Next::Exhausted => None,
        };
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn after_the_opening_all_take_turns() {
        assert_eq!(names(&mut pipeline([100; 3]), 11, &|_| Ended::Finished), "aaabbabcabc");
    }

    #[test]
    fn who_has_nothing_to_run_is_passed_over_and_is_due_nothing() {
        let mut pipeline = pipeline([2, 100, 5]);
        assert_eq!(names(&mut pipeline, 12, &|_| Ended::Finished), "aabbbcbcbcbc");
        assert_eq!(names(&mut pipeline, 1000, &|_| Ended::Finished).len(), 107 - 12);
        assert_eq!(pipeline.next(), Next::Exhausted);
    }

    #[test]
    fn the_last_finder_has_more_turns_until_another_finds_something_new() {
        let mut pipeline = pipeline([0, 1000, 1000]);
        let found = |by: &'static str, what: &'static str| {
            move |name: &str| if name == by { failure(what) } else { Ended::Finished }
        };
        names(&mut pipeline, 20, &found("c", "one"));
        let with_bonus = names(&mut pipeline, 40, &found("b", "one"));
        assert_eq!(with_bonus.matches('c').count(), 30, "what is known is no finding: {with_bonus}");
        names(&mut pipeline, 8, &found("b", "two"));
        let later = names(&mut pipeline, 40, &|_| Ended::Finished);
        assert_eq!(later.matches('b').count(), 30, "{later}");
    }
}
