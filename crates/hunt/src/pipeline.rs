//! Several strategies that share the runs.

use std::collections::{HashSet, VecDeque};

use threadbare_executor::RunEnd;
use threadbare_search::{Conclusion, Explored, Feedback, Next, Outstanding, Schedule, Strategy, Token};
use threadbare_trace::{Failure, FailureKind};

/// Strategies that take turns. The last one to find something new has more of them.
///
/// Every member is told what comes of every run.
pub struct Pipeline {
    name: &'static str,
    members: Vec<Member>,
    /// The members that have the first runs.
    opening: VecDeque<usize>,
    /// For each run that is not answered yet, the member that asked for it, and the member's own token.
    asked: Outstanding<(usize, Token)>,
    /// The member that was the last to find something new.
    last_finder: Option<usize>,
    /// The failures that were found: kind, message, and address of the code.
    found: HashSet<(FailureKind, String, u64)>,
    conclusions: Vec<Conclusion>,
    finisher: Option<Finisher>,
}

/// A member whose end is the end of the whole search: it tries every class of interleavings.
struct Finisher {
    member: usize,
    /// How many runs all members have together, at most.
    runs: u64,
    has_next_turn: bool,
    has_finished: bool,
    /// A run was so long that there are too many classes, and each takes too long to find.
    is_left_out: bool,
}

struct Member {
    strategy: Box<dyn Strategy>,
    /// By how many runs it is behind its share.
    credit: i64,
}

/// The finisher has so many runs after the opening, whatever is left for it to do: they show how much that is.
const FIRST_RUNS_OF_FINISHER: u64 = 4;
/// It is left out of programs with more events in a run.
const MAX_EVENTS_OF_FINISHER: u64 = 2000;
/// As long as it would need no more than one in so many of the runs that are left, it has every other one.
const PART_OF_FINISHER: u64 = 2;

/// The last finder has so many turns for each turn of another member.
const BONUS: i64 = 3;

impl Pipeline {
    /// Strategies that take turns after an opening, which lists members and how many runs each of them has.
    pub fn new(
        name: &'static str,
        strategies: Vec<Box<dyn Strategy>>,
        opening: &[(usize, usize)],
    ) -> Pipeline {
        Pipeline {
            name,
            members: strategies.into_iter().map(|strategy| Member { strategy, credit: 0 }).collect(),
            opening: opening.iter().flat_map(|&(member, runs)| std::iter::repeat_n(member, runs)).collect(),
            asked: Outstanding::default(),
            last_finder: None,
            found: HashSet::new(),
            conclusions: Vec::new(),
            finisher: None,
        }
    }

    /// The same with this member for small programs: it has every other run as long as it may try everything within `runs`.
    pub fn finishing(mut self, strategy: Box<dyn Strategy>, runs: u64) -> Pipeline {
        let member = self.members.len();
        self.members.push(Member { strategy, credit: 0 });
        let finisher =
            Finisher { member, runs, has_next_turn: true, has_finished: false, is_left_out: false };
        self.finisher = Some(finisher);
        self
    }

    /// Asks the finisher, if it is its turn.
    fn ask_finisher(&mut self) -> Option<Next> {
        let left = self.finisher.as_ref()?.runs.saturating_sub(self.asked.issued());
        let finisher = self.finisher.as_mut().filter(|finisher| !finisher.is_left_out)?;
        finisher.has_next_turn = !finisher.has_next_turn;
        if finisher.has_finished {
            return Some(Next::Exhausted);
        }
        let (member, has_turn) = (finisher.member, !finisher.has_next_turn);
        let explored = self.members[member].strategy.explored()?;
        let needed = explored.left.unwrap_or(0).saturating_mul(PART_OF_FINISHER);
        let has_turn = has_turn && (explored.classes < FIRST_RUNS_OF_FINISHER || needed <= left);
        let next = has_turn.then(|| self.ask_member(member))?;
        match next {
            Next::Run(_) => Some(next),
            Next::Exhausted if self.members[member].strategy.dropped() == 0 => {
                self.finisher.as_mut()?.has_finished = true;
                Some(next)
            }
            Next::Exhausted | Next::Wait => None,
        }
    }

    fn weight(&self, member: usize) -> i64 {
        if self.last_finder == Some(member) { BONUS } else { 1 }
    }

    /// The member whose turn it is among these. On a tie, the first member goes.
    fn whose_turn(&self, able: &[usize]) -> Option<usize> {
        able.iter().copied().max_by_key(|&member| (self.members[member].credit, usize::MAX - member))
    }

    /// Asks a member for a run, and gives the schedule a token of our own.
    fn ask_member(&mut self, member: usize) -> Next {
        match self.members[member].strategy.ask() {
            Next::Run(schedule) => {
                let token = self.asked.issue((member, schedule.token));
                Next::Run(Schedule { token, ..schedule })
            }
            next => next,
        }
    }

    /// `member` has a run. Each member that could have had it gains its share of that run.
    fn charge(&mut self, member: usize, able: &[usize]) {
        for &other in able {
            let weight = self.weight(other);
            self.members[other].credit += weight;
            self.members[member].credit -= weight;
        }
    }

    /// What a member has concluded is told to the others, who may go on from it.
    fn share_conclusions(&mut self, author: usize) {
        let conclusions = self.members[author].strategy.conclusions();
        let others = self.members.iter_mut().enumerate().filter(|(index, _)| *index != author);
        for (_, member) in others {
            conclusions.iter().for_each(|conclusion| member.strategy.take_up(conclusion));
        }
        self.conclusions.extend(conclusions);
    }

    /// The run failed in a way that was not seen before.
    fn is_new(&mut self, ended: &RunEnd) -> bool {
        let Some(Failure { kind, message, at, .. }) = ended.failure() else { return false };
        self.found.insert((*kind, message.clone(), at.pc))
    }
}

impl Strategy for Pipeline {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ask(&mut self) -> Next {
        while let Some(member) = self.opening.pop_front() {
            if let Next::Run(schedule) = self.ask_member(member) {
                return Next::Run(schedule);
            }
        }
        if let Some(next) = self.ask_finisher() {
            return next;
        }
        let finisher = self.finisher.as_ref().map(|finisher| finisher.member);
        let mut able: Vec<usize> =
            (0..self.members.len()).filter(|&member| finisher != Some(member)).collect();
        let mut waits = false;
        while let Some(member) = self.whose_turn(&able) {
            match self.ask_member(member) {
                Next::Run(schedule) => {
                    self.charge(member, &able);
                    return Next::Run(schedule);
                }
                Next::Wait => waits = true,
                Next::Exhausted => {}
            }
            able.retain(|&other| other != member);
        }
        if waits { Next::Wait } else { Next::Exhausted }
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some((asker, token)) = self.asked.answer(token) else { return };
        if self.is_new(&feedback.ended) {
            self.last_finder = Some(asker);
        }
        if let Some(finisher) = &mut self.finisher {
            finisher.is_left_out |= feedback.events > MAX_EVENTS_OF_FINISHER && !finisher.has_finished;
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            if index == asker {
                member.strategy.tell(token, feedback);
            } else {
                member.strategy.observe(feedback);
            }
        }
        self.share_conclusions(asker);
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.members.iter_mut().for_each(|member| member.strategy.observe(feedback));
    }

    fn prefer_short(&mut self, max_turns: u64) {
        self.members.iter_mut().for_each(|member| member.strategy.prefer_short(max_turns));
    }

    fn conclusions(&mut self) -> Vec<Conclusion> {
        std::mem::take(&mut self.conclusions)
    }

    fn is_random(&self) -> bool {
        self.members.iter().any(|member| member.strategy.is_random())
    }

    /// If one member has tried everything, it does not matter what others have given up.
    fn dropped(&self) -> u64 {
        match self.finisher.as_ref().is_some_and(|finisher| finisher.has_finished) {
            true => 0,
            false => self.members.iter().map(|member| member.strategy.dropped()).sum(),
        }
    }

    fn explored(&self) -> Option<Explored> {
        let finisher = self.finisher.as_ref().filter(|finisher| finisher.has_finished)?;
        self.members[finisher.member].strategy.explored()
    }
}

#[cfg(test)]
mod tests {
    use threadbare_executor::CodePlace;
    use threadbare_trace::{End, Outlasting, Plan};

    use super::*;

    /// A strategy with so many runs.
    struct Finite {
        name: &'static str,
        left: u64,
    }

    impl Strategy for Finite {
        fn name(&self) -> &'static str {
            self.name
        }

        fn ask(&mut self) -> Next {
            match self.left.checked_sub(1) {
                Some(left) => {
                    self.left = left;
                    Next::Run(Schedule::new(Token(left), self.name, Plan::default()))
                }
                None => Next::Exhausted,
            }
        }

        fn tell(&mut self, _: Token, _: &Feedback) {}

        fn observe(&mut self, _: &Feedback) {}
    }

    fn pipeline(left: [u64; 3]) -> Pipeline {
        let names = ["a", "b", "c"].into_iter().zip(left);
        let members = names.map(|(name, left)| Box::new(Finite { name, left }) as _).collect();
        Pipeline::new("all", members, &[(0, 3), (1, 2)])
    }

    fn feedback(ended: RunEnd) -> Feedback {
        let (decisions, threads, learnt) = (Vec::new(), Vec::new(), Vec::new());
        let (outlasting, held_sleep) = (Outlasting::NONE, None);
        Feedback {
            decisions,
            threads,
            events: 0,
            learnt,
            ended,
            bound: 0,
            outlasting,
            held_sleep,
            passes: Vec::new(),
            records: Vec::new(),
            pending: Vec::new(),
            recording: None,
        }
    }

    fn failure(message: &str) -> RunEnd {
        End::Failed(Failure::new(FailureKind::Abort, message, CodePlace { pc: 1, ..CodePlace::default() }))
    }

    /// The names of those who get the next runs; what they find is `ended`.
    fn names(pipeline: &mut Pipeline, count: usize, ended: &dyn Fn(&str) -> RunEnd) -> String {
        let next = || match pipeline.ask() {
            Next::Run(schedule) => {
                pipeline.tell(schedule.token, &feedback(ended(schedule.method)));
                Some(schedule.method)
            }
            Next::Wait | Next::Exhausted => None,
        };
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn after_the_opening_all_take_turns() {
        assert_eq!(names(&mut pipeline([100; 3]), 11, &|_| End::Finished), "aaabbabcabc");
    }

    #[test]
    fn who_has_nothing_to_run_is_passed_over_and_is_due_nothing() {
        let mut pipeline = pipeline([2, 100, 5]);
        assert_eq!(names(&mut pipeline, 12, &|_| End::Finished), "aabbbcbcbcbc");
        assert_eq!(names(&mut pipeline, 1000, &|_| End::Finished).len(), 107 - 12);
        assert_eq!(pipeline.ask(), Next::Exhausted);
    }

    #[test]
    fn the_last_finder_has_more_turns_until_another_finds_something_new() {
        let mut pipeline = pipeline([0, 1000, 1000]);
        let found = |by: &'static str, what: &'static str| {
            move |name: &str| if name == by { failure(what) } else { End::Finished }
        };
        names(&mut pipeline, 20, &found("c", "one"));
        let with_bonus = names(&mut pipeline, 40, &found("b", "one"));
        assert_eq!(with_bonus.matches('c').count(), 30, "what is known is no finding: {with_bonus}");
        names(&mut pipeline, 8, &found("b", "two"));
        let later = names(&mut pipeline, 40, &|_| End::Finished);
        assert_eq!(later.matches('b').count(), 30, "{later}");
    }
}
