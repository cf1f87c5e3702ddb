//! Drives the program through what others have predicted and could not show.
//!
//! A prediction comes with schedules, which follow a trace event by event. If a thread goes another way there, the schedule
//! leads nowhere. A guided test is less strict: it only wants the decisive places to be passed in their order.

use std::collections::VecDeque;

use threadbare_search::{
    Conclusion, Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token,
};
use threadbare_trace::{Afterwards, Guidance, Preference, Waypoint};

use crate::guided_test::{GuidedTest, NAME};

/// Runs for each sequence, at most.
const RUNS: u64 = 8;
/// Sequences that wait, at most. Those that come later are left to the other members of a hunt.
const MAX_WAITING: usize = 1000;
/// States that a search may go back to: it has few runs.
const MAX_BACKTRACK: usize = 1000;

/// Says which thread goes when none stands before the next of these places.
pub type Prefer = Box<dyn Fn(&[Waypoint]) -> Preference + Send>;

/// Guided tests, one after another.
pub struct FollowUp {
    knowledge: Knowledge,
    prefer: Prefer,
    waiting: VecDeque<Vec<Waypoint>>,
    current: Option<Current>,
    /// For each run that is not answered yet, the sequence that it belongs to, and the token of its search.
    asked: Outstanding<(u64, Token)>,
    /// Sequences that were begun.
    begun: u64,
}

/// A sequence that is being tried.
struct Current {
    number: u64,
    test: GuidedTest,
    waypoints: usize,
    runs_left: u64,
}

impl FollowUp {
    pub fn new(settings: Settings, prefer: Prefer) -> FollowUp {
        FollowUp {
            knowledge: Knowledge::new(settings.plan),
            prefer,
            waiting: VecDeque::new(),
            current: None,
            asked: Outstanding::default(),
            begun: 0,
        }
    }

    /// The sequence to be tried now.
    fn current(&mut self) -> Option<&mut Current> {
        if self.current.as_ref().is_none_or(|current| current.runs_left == 0) {
            self.current = None;
            let waypoints = self.waiting.pop_front()?;
            self.begun += 1;
            let preference = (self.prefer)(&waypoints);
            let len = waypoints.len();
            let guidance = Guidance {
                seed: self.begun,
                waypoints: waypoints.into(),
                preference,
                afterwards: Afterwards::RunOn,
            };
            let test = GuidedTest::new(self.knowledge.plan.clone(), guidance, MAX_BACKTRACK);
            self.current = Some(Current { number: self.begun, test, waypoints: len, runs_left: RUNS });
        }
        self.current.as_mut()
    }
}

impl Strategy for FollowUp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self) -> Next {
        while let Some(current) = self.current() {
            match current.test.ask() {
                Next::Run(schedule) => {
                    current.runs_left -= 1;
                    let token = (current.number, schedule.token);
                    return Next::Run(Schedule { token: self.asked.issue(token), ..schedule });
                }
                Next::Wait => return Next::Wait,
                Next::Exhausted => current.runs_left = 0,
            }
        }
        Next::Exhausted
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let asked = self.asked.answer(token);
        if let Some((number, token)) = asked
            && let Some(current) = self.current.as_mut().filter(|current| current.number == number)
        {
            current.test.tell(token, feedback);
            if feedback.passes.len() == current.waypoints {
                current.runs_left = 0;
            }
        }
        self.knowledge.update(feedback);
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.knowledge.update(feedback);
        if let Some(current) = &mut self.current {
            current.test.observe(feedback);
        }
    }

    fn take_up(&mut self, conclusion: &Conclusion) {
        if let Conclusion::NotShown { waypoints } = conclusion
            && self.waiting.len() < MAX_WAITING
        {
            self.waiting.push_back(waypoints.clone());
        }
    }
}
