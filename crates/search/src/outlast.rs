//! A search that lets every sleep last at first, and later lets short ones be outlasted.
//!
//! Two threads that are kept apart by a sleep meet if the one that does not sleep is held up for longer. Machines do
//! that: a thread that is preempted loses a millisecond or more. Nobody would thank us for schedules in which a thread
//! is held up for longer than that, because tests sleep to let others go first, so only sleeps of up to
//! [`LONGEST`] are outlasted, one in a run and then two. Such schedules come behind all others: when the search
//! without them has nothing left to try, or has had [`RUNS_BEFORE`] runs, and then they have one run in [`SHARE`].

use threadbare_trace::Outlasting;

use crate::{Conclusion, Explored, Feedback, Next, Outstanding, Schedule, Settings, Strategy, Token};

/// Sleeps that last longer are never outlasted, in nanoseconds.
pub const LONGEST: u64 = 1_000_000;
/// How many sleeps of a run may be outlasted, one stage of the search after the other.
const STAGES: [u32; 2] = [1, 2];
/// A stage that has no end of its own has so many runs before the next.
const RUNS_OF_STAGE: u64 = 200;
/// Runs without outlasted sleeps that come first, as long as there are any.
pub const RUNS_BEFORE: u64 = 100;
/// One run in so many has outlasted sleeps after that.
pub const SHARE: u64 = 4;

/// Makes a strategy.
pub type Make = Box<dyn Fn(Settings) -> Box<dyn Strategy> + Send>;

/// A strategy, and behind it another that lets sleeps be outlasted, where there are any that matter.
pub struct ThenOutlast {
    first: Box<dyn Strategy>,
    /// Makes the strategies of the stages.
    make: Make,
    settings: Settings,
    later: Option<Box<dyn Strategy>>,
    stage: usize,
    runs_of_stage: u64,
    asked: Outstanding<Asked>,
    /// A sleep that could have been outlasted lasted while others could run.
    has_held: bool,
}

/// A schedule that was asked for: its strategy's own token, and the stage that it belongs to.
struct Asked {
    token: Token,
    /// `None` for the search without outlasted sleeps.
    stage: Option<usize>,
}

impl ThenOutlast {
    /// The search that `first` makes, and behind it those of `later`.
    pub fn new(first: Make, later: Make, settings: Settings) -> ThenOutlast {
        ThenOutlast {
            first: first(settings.clone()),
            make: later,
            settings,
            later: None,
            stage: 0,
            runs_of_stage: 0,
            asked: Outstanding::default(),
            has_held: false,
        }
    }

    fn is_due(&self) -> bool {
        let issued = self.asked.issued();
        self.has_held && issued >= RUNS_BEFORE && issued.is_multiple_of(SHARE)
    }

    fn issue(&mut self, schedule: Schedule, stage: Option<usize>) -> Next {
        let token = self.asked.issue(Asked { token: schedule.token, stage });
        Next::Run(Schedule { token, ..schedule })
    }

    fn ask_first(&mut self) -> Next {
        match self.first.ask() {
            Next::Run(schedule) => self.issue(schedule, None),
            next => next,
        }
    }

    /// A schedule with outlasted sleeps.
    fn ask_later(&mut self) -> Next {
        while let Some(&sleeps) = STAGES.get(self.stage).filter(|_| self.has_held) {
            let is_over = self.runs_of_stage >= RUNS_OF_STAGE && self.stage + 1 < STAGES.len();
            if !is_over {
                let later = self.later.get_or_insert_with(|| {
                    let mut settings = self.settings.clone();
                    settings.plan.outlasting = Outlasting { sleeps, longest: LONGEST };
                    (self.make)(settings)
                });
                match later.ask() {
                    Next::Run(schedule) => {
                        self.runs_of_stage += 1;
                        return self.issue(schedule, Some(self.stage));
                    }
                    Next::Wait => return Next::Wait,
                    Next::Exhausted => {}
                }
            }
            (self.later, self.stage, self.runs_of_stage) = (None, self.stage + 1, 0);
        }
        Next::Exhausted
    }

    /// Takes in what all of its strategies want to know.
    fn note(&mut self, feedback: &Feedback) {
        self.settings.plan.tracked.extend(feedback.learnt.iter().cloned());
        self.has_held |= feedback.held_sleep.is_some_and(|nanoseconds| nanoseconds <= LONGEST);
    }
}

impl Strategy for ThenOutlast {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn ask(&mut self) -> Next {
        if self.is_due()
            && let Next::Run(schedule) = self.ask_later()
        {
            return Next::Run(schedule);
        }
        match self.ask_first() {
            Next::Exhausted => self.ask_later(),
            next => next,
        }
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some(Asked { token, stage }) = self.asked.answer(token) else { return };
        self.note(feedback);
        match &mut self.later {
            Some(later) if stage == Some(self.stage) => later.tell(token, feedback),
            Some(later) => later.observe(feedback),
            None => {}
        }
        match stage {
            None => self.first.tell(token, feedback),
            Some(_) => self.first.observe(feedback),
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.note(feedback);
        self.first.observe(feedback);
        self.later.iter_mut().for_each(|later| later.observe(feedback));
    }

    fn prefer_short(&mut self, max_turns: u64) {
        self.first.prefer_short(max_turns);
        self.later.iter_mut().for_each(|later| later.prefer_short(max_turns));
    }

    fn conclusions(&mut self) -> Vec<Conclusion> {
        let later = self.later.iter_mut().flat_map(|later| later.conclusions());
        self.first.conclusions().into_iter().chain(later).collect()
    }

    fn is_random(&self) -> bool {
        self.first.is_random()
    }

    fn dropped(&self) -> u64 {
        self.first.dropped() + self.later.as_ref().map_or(0, |later| later.dropped())
    }

    fn explored(&self) -> Option<Explored> {
        self.first.explored()
    }
}

#[cfg(test)]
mod tests {
    use threadbare_trace::{End, Plan};

    use super::*;
    use crate::general::Sampler;

    fn feedback(held_sleep: Option<u64>) -> Feedback {
        Feedback {
            decisions: Vec::new(),
            threads: Vec::new(),
            events: 0,
            learnt: Vec::new(),
            ended: End::Finished,
            bound: 0,
            outlasting: Outlasting::NONE,
            held_sleep,
            passes: Vec::new(),
            records: Vec::new(),
            pending: Vec::new(),
            recording: None,
        }
    }

    /// So many runs, and then nothing.
    struct Finite(u64);

    impl Strategy for Finite {
        fn name(&self) -> &'static str {
            "finite"
        }

        fn ask(&mut self) -> Next {
            self.0 = match self.0.checked_sub(1) {
                Some(left) => left,
                None => return Next::Exhausted,
            };
            Next::Run(Schedule::new(Token(self.0), "finite", Plan::default()))
        }

        fn tell(&mut self, _: Token, _: &Feedback) {}

        fn observe(&mut self, _: &Feedback) {}
    }

    fn three(_: Settings) -> Box<dyn Strategy> {
        Box::new(Finite(3))
    }

    fn endless(settings: Settings) -> Box<dyn Strategy> {
        Box::new(Sampler::new("endless", settings, |_, random| threadbare_trace::Policy::Random {
            seed: random.next(),
        }))
    }

    /// How many sleeps each of the next runs may outlast, when runs hold back a sleep of this length.
    fn runs(mut search: ThenOutlast, held_sleep: Option<u64>, count: usize) -> Vec<u32> {
        let next = || match search.ask() {
            Next::Run(schedule) => {
                search.tell(schedule.token, &feedback(held_sleep));
                Some(schedule.plan.outlasting.sleeps)
            }
            Next::Wait | Next::Exhausted => None,
        };
        std::iter::from_fn(next).take(count).collect()
    }

    /// Protects searches of programs that do not sleep, or sleep for long: nothing changes for them.
    #[test]
    fn what_cannot_be_outlasted_changes_nothing() {
        for held in [None, Some(LONGEST + 1)] {
            let search = ThenOutlast::new(Box::new(three), Box::new(endless), Settings::new(Plan::default()));
            assert_eq!(runs(search, held, 10), [0, 0, 0]);
        }
    }

    /// Protects the order: a search that comes to its end goes on with one outlasted sleep in a run, then with two.
    #[test]
    fn outlasted_sleeps_come_when_the_rest_is_done() {
        let search = ThenOutlast::new(Box::new(three), Box::new(endless), Settings::new(Plan::default()));
        let runs = runs(search, Some(LONGEST), 300);
        assert_eq!((&runs[..3], runs[3], runs[299]), (&[0, 0, 0][..], 1, 2));
    }

    /// A search without an end keeps most of its runs.
    #[test]
    fn outlasted_sleeps_have_a_share_of_an_endless_search() {
        let search = ThenOutlast::new(Box::new(endless), Box::new(endless), Settings::new(Plan::default()));
        let runs = runs(search, Some(1), 200);
        assert!(runs[..RUNS_BEFORE as usize].iter().all(|&sleeps| sleeps == 0));
        assert_eq!(runs.iter().filter(|&&sleeps| sleeps == 1).count() as u64, (200 - RUNS_BEFORE) / SHARE);
    }
}
