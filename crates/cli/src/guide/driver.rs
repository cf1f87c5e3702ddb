//! The attempts at one sequence: as it is, by way of stores that a branch depends on, and with other things from outside.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use threadbare_executor::{FailureKey, Worker};
use threadbare_hunt::{
    Budget, Event, GuideConfig, Guided, HuntConfig, HuntError, StrategyChoice, Subject, Summary, Verdict,
    run as run_session,
};
use threadbare_program::Program;
use threadbare_trace::{Plan, Trace};

use super::guide_config;
use super::tasks::Task;
use crate::arguments::SequenceOptions;
use crate::interrupt;
use crate::problem::Problem;

/// A program as it is started, with all that it reads from outside.
pub struct Variant<'a> {
    pub subject: &'a Subject,
    /// What is special about it; empty if there is only one.
    pub name: String,
    /// Added to the seed, which is what the program's randomness comes from.
    pub seed: u64,
}

/// A variant that was started.
struct Started<'a> {
    variant: Variant<'a>,
    worker: Worker,
    /// Only its first event matters, which says where the main thread is by then.
    start: Trace,
}

/// How many sequences with a store in them are tried.
const MAX_WAYS: u32 = 8;
/// How many stores are tried at a branch.
const MAX_STORES: usize = 4;
/// How many stores are added to a sequence.
const MAX_ADDED: usize = 6;

/// Tries sequences on one program.
pub struct Driver<'a, C> {
    started: Vec<Started<'a>>,
    options: &'a SequenceOptions,
    /// Makes the configuration of a session.
    config: C,
    /// The findings that were reported, by clip: several attempts find the same.
    reported: HashSet<PathBuf>,
    /// The failures among them that have nothing to do with the sequence.
    asides: Vec<FailureKey>,
}

/// What came of a sequence.
pub struct Answer {
    pub guided: Guided,
    /// All sessions together.
    pub summary: Summary,
}

/// The best of the sessions so far, and all together.
#[derive(Default)]
struct Attempts {
    answer: Option<Answer>,
    /// Why nothing is known of the program, as long as that is so.
    problem: Option<HuntError>,
}

impl Attempts {
    fn add(&mut self, Answer { guided, mut summary }: Answer, problem: Option<HuntError>) {
        let is_first = self.answer.is_none();
        self.problem = problem.filter(|_| is_first || self.problem.is_some());
        let mut best = guided;
        if let Some(earlier) = self.answer.take() {
            if rank(&earlier.guided) >= rank(&best) {
                best = earlier.guided;
            }
            summary.add_earlier(earlier.summary);
        }
        self.answer = Some(Answer { guided: best, summary });
    }

    fn verdict(&self) -> Verdict {
        self.answer.as_ref().map_or(Verdict::NotShown, |answer| answer.guided.verdict)
    }

    /// No further attempt is to be made.
    fn is_over(&self) -> bool {
        let is_interrupted = self.answer.as_ref().is_some_and(|answer| answer.summary.interrupted);
        self.verdict() == Verdict::Real || is_interrupted
    }
}

/// How far the runs of an attempt came: what is left counts, because a sequence may be longer by a store. Of two that came
/// as far, the one says more that knows what was in the way.
fn rank(guided: &Guided) -> (Verdict, Reverse<usize>, bool) {
    (guided.verdict, Reverse(guided.waypoints.len() - guided.passed()), guided.obstacle.is_some())
}

/// What a sequence may take on one variant.
#[derive(Clone, Copy)]
struct Allowance {
    budget: Budget,
    /// When its time is up.
    deadline: Option<Instant>,
}

impl Allowance {
    /// A part of it, and no more than is left; `None` if nothing is left.
    fn share(self, share: (u32, u32)) -> Option<Budget> {
        let budget = self.budget.share(share);
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = match (budget.time, left) {
            (Some(time), Some(left)) => Some(time.min(left)),
            (time, _) => time,
        };
        (time.is_none_or(|time| !time.is_zero())).then_some(Budget { time, ..budget })
    }
}

impl<'a, C: Fn(StrategyChoice) -> HuntConfig> Driver<'a, C> {
    /// Starts the variants. There is at least one.
    pub fn new(
        variants: Vec<Variant<'a>>,
        options: &'a SequenceOptions,
        config: C,
    ) -> Result<Driver<'a, C>, Problem> {
        let limits = config(StrategyChoice::Hunt).limits;
        let mut started = Vec::new();
        for variant in variants {
            let mut worker = Worker::start(&variant.subject.target, &limits)?;
            let start = worker.run(&Plan { max_events: 1, ..Plan::default() })?.trace();
            started.push(Started { variant, worker, start });
        }
        Ok(Driver { started, options, config, reported: HashSet::new(), asides: Vec::new() })
    }

    /// How many findings were reported.
    pub fn reported(&self) -> usize {
        self.reported.len()
    }

    /// How to drive each variant through a sequence.
    pub fn prepare(&self, task: &Task) -> Result<Vec<GuideConfig>, Problem> {
        let guide = |started: &Started<'_>| {
            guide_config(started.worker.program(), &started.start, task, self.options)
        };
        self.started.iter().map(guide).collect()
    }

    /// Tries a sequence on each variant in turn, until a run fails.
    pub fn try_sequence(&mut self, guides: Vec<GuideConfig>) -> Result<Answer, Problem> {
        let mut attempts = Attempts::default();
        let budget = (self.config)(StrategyChoice::Hunt).budget.share((1, guides.len() as u32));
        for (number, guide) in guides.into_iter().enumerate() {
            let deadline = budget.time.map(|time| Instant::now() + time);
            self.try_variant(number, guide, Allowance { budget, deadline }, &mut attempts)?;
            if attempts.is_over() {
                break;
            }
        }
        match (attempts.answer, attempts.problem) {
            (_, Some(problem)) => Err(problem.into()),
            (Some(answer), None) => Ok(answer),
            (None, None) => Err(Problem::new("there was no time for a run").help("raise --budget")),
        }
    }

    /// Tries a sequence, first for a short time. If a branch is in the way that depends on what others store, tries again by
    /// way of each such store, and so on from there. Then tries for the rest of the budget what came furthest.
    fn try_variant(
        &mut self,
        number: usize,
        guide: GuideConfig,
        allowance: Allowance,
        attempts: &mut Attempts,
    ) -> Result<(), Problem> {
        let first = self.attempt(number, &guide, allowance.share((1, 8)), attempts)?;
        let mut open = first.map_or_else(Vec::new, |first| self.ways(number, &guide, &first, guide.waypoints.len()));
        let mut best = guide.clone();
        let mut tried = 0;
        while tried < MAX_WAYS
            && attempts.verdict() == Verdict::NotShown
            && !attempts.is_over()
            && let Some(way) = open.pop()
        {
            tried += 1;
            let share = allowance.share((1, 2 * MAX_WAYS));
            let Some(came) = self.attempt(number, &way, share, attempts)? else { break };
            if came.verdict != Verdict::NotShown {
                best = way.clone();
            }
            open.extend(self.ways(number, &way, &came, guide.waypoints.len()));
        }
        if !attempts.is_over() {
            let rest = allowance.share((7 * MAX_WAYS - 4 * tried, 8 * MAX_WAYS));
            self.attempt(number, &best, rest, attempts)?;
        }
        Ok(())
    }

    /// The sequences that go by way of a store that the branch in the way depends on. The last is to be tried first.
    fn ways(&self, number: usize, guide: &GuideConfig, came: &Guided, len: usize) -> Vec<GuideConfig> {
        let Some(obstacle) = came.obstacle.as_ref().filter(|_| guide.waypoints.len() < len + MAX_ADDED) else {
            return Vec::new();
        };
        let program: &Program = self.started[number].worker.program();
        let passed = came.passed() - guide.behind;
        // A store that was just done has not helped.
        let before = passed.checked_sub(1).map(|last| &guide.guidance.waypoints[last].points);
        let stores = obstacle.stores.iter().filter(|&&store| before.is_none_or(|points| points[..] != [store]));
        let mut ways: Vec<GuideConfig> =
            stores.take(MAX_STORES).map(|&store| guide.by_way_of(store, passed, program)).collect();
        ways.reverse();
        ways
    }

    /// Makes one session; `None` if there is no time for one.
    fn attempt(
        &mut self,
        number: usize,
        guide: &GuideConfig,
        budget: Option<Budget>,
        attempts: &mut Attempts,
    ) -> Result<Option<Guided>, Problem> {
        let Some(budget) = budget else { return Ok(None) };
        let variant = &self.started[number].variant;
        let guide = GuideConfig { known_asides: self.asides.clone(), ..guide.clone() };
        let session = (self.config)(StrategyChoice::Guide(guide));
        let seed = session.seed.wrapping_add(variant.seed);
        let config = HuntConfig { budget, seed, ..session };
        let (mut outcome, mut figures): (Option<Guided>, Option<Summary>) = (None, None);
        let reported = &mut self.reported;
        let mut emit = |event: Event<'_>| match event {
            Event::Guided(guided) => {
                outcome = Some(Guided { variant: variant.name.clone(), ..guided.clone() });
                Ok(())
            }
            Event::Finished(summary) => {
                figures = Some(summary.clone());
                Ok(())
            }
            Event::Found(finding) if !finding.clip.iter().all(|clip| reported.insert(clip.clone())) => Ok(()),
            event => interrupt::report(&event),
        };
        // That no run ended says something of this session only: another one may have more time.
        let problem = match run_session(variant.subject, &config, &mut emit) {
            Ok(_) => None,
            Err(problem @ HuntError::NothingEnded { .. }) => Some(problem),
            Err(problem) => return Err(problem.into()),
        };
        let (Some(guided), Some(summary)) = (outcome, figures) else { return Ok(None) };
        self.asides.extend(guided.asides.iter().cloned());
        attempts.add(Answer { guided: guided.clone(), summary }, problem);
        Ok(Some(guided))
    }
}
