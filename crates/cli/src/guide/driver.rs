//! The attempts at one sequence: as it is, by way of stores that a branch depends on, and with other things from outside.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use threadbare_executor::{FailureKey, Worker};
use threadbare_guide::{Obstacle, Remedy};
use threadbare_hunt::{
    Budget, Event, GuideConfig, Guided, HuntConfig, HuntError, StrategyChoice, Subject, Summary, Verdict,
    run as run_session,
};
use threadbare_program::Program;
use threadbare_trace::{Plan, Trace, Waypoint};

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

/// A program that was started.
struct Started<'a> {
    subject: &'a Subject,
    worker: Worker,
    /// Only its first event matters, which says where the main thread is by then.
    start: Trace,
}

/// What an attempt may take of the budget: at the start, for what was not tried before, and for what is tried once more.
const FIRST: (u32, u32) = (1, 8);
const NEW: (u32, u32) = (1, 64);
const AGAIN: (u32, u32) = (1, 32);
/// The runs of an attempt, at least.
const MIN_RUNS: u64 = 8;
/// How many places are added to a sequence.
const MAX_ADDED: usize = 24;
/// One attempt in so many is at the sequence that was found first and not tried yet.
const OLDEST: usize = 3;
/// What was tried comes behind what misses so many waypoints more, for each time.
const COST_OF_A_TRY: usize = 3;

/// Tries sequences on one program.
pub struct Driver<'a, C> {
    started: Vec<Started<'a>>,
    /// Each with the number of its program in `started`.
    variants: Vec<(usize, Variant<'a>)>,
    options: &'a SequenceOptions,
    /// Makes the configuration of a session.
    config: C,
    /// The findings that were reported, by clip: several attempts find the same.
    reported: HashSet<PathBuf>,
    /// The failures that have nothing to do with the sequence.
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

/// How far the runs of an attempt came. Of two that came as far, the one says more that knows what was in the way.
fn rank(guided: &Guided) -> (Verdict, usize, Reverse<usize>, bool) {
    (guided.verdict, guided.own_passed(), Reverse(left(guided)), guided.obstacle.is_some())
}

/// How many waypoints the furthest run did not pass.
fn left(guided: &Guided) -> usize {
    guided.waypoints.len() - guided.passed()
}

/// A sequence that is to be tried.
struct Way {
    guide: GuideConfig,
    /// What was in the way of the sequence that it comes from.
    obstacle: Option<Obstacle>,
    /// How often it was tried before.
    tries: usize,
    /// How many waypoints are likely to be missed. Fewer are better.
    cost: usize,
}

/// The sequences that are to be tried on one variant, in the order in which they were found.
#[derive(Default)]
struct Ways {
    open: Vec<Way>,
    /// All that were ever found, with how many places are watched.
    known: HashSet<(Arc<[Waypoint]>, usize)>,
    taken: usize,
}

impl Ways {
    /// Adds those that are new. The first is to be tried first.
    fn extend(&mut self, ways: Vec<Way>) {
        for way in ways.into_iter().rev() {
            let GuideConfig { guidance, watched, .. } = &way.guide;
            if self.known.insert((Arc::clone(&guidance.waypoints), watched.len())) {
                self.open.push(way);
            }
        }
    }

    /// The one that misses least, and of these the last that was found; now and then the first that was not tried yet.
    fn take(&mut self) -> Option<Way> {
        self.taken += 1;
        if self.taken.is_multiple_of(OLDEST)
            && let Some(first) = self.open.iter().position(|way| way.tries == 0)
        {
            return Some(self.open.remove(first));
        }
        let ways = self.open.iter().enumerate();
        let (position, _) = ways.min_by_key(|(number, way)| (way.cost, Reverse(*number)))?;
        Some(self.open.remove(position))
    }
}

/// What a sequence may take on one variant.
struct Allowance {
    budget: Budget,
    runs_left: Option<u64>,
    /// When its time is up.
    deadline: Option<Instant>,
}

impl Allowance {
    fn new(budget: Budget) -> Allowance {
        let deadline = budget.time.map(|time| Instant::now() + time);
        Allowance { budget, runs_left: budget.runs, deadline }
    }

    /// All that is left; `None` if nothing is.
    fn rest(&self) -> Option<Budget> {
        let time = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let is_over = self.runs_left == Some(0) || time.is_some_and(|time| time.is_zero());
        (!is_over).then_some(Budget { runs: self.runs_left, time })
    }

    /// A part of it, and no more than is left; `None` if nothing is left.
    fn share(&self, share: (u32, u32)) -> Option<Budget> {
        let (rest, part) = (self.rest()?, self.budget.share(share));
        let runs = part.runs.zip(rest.runs).map(|(part, rest)| part.max(MIN_RUNS).min(rest));
        let time = part.time.zip(rest.time).map(|(part, rest)| part.min(rest));
        Some(Budget { runs, time })
    }

    fn made(&mut self, runs: u64) {
        self.runs_left = self.runs_left.map(|left| left.saturating_sub(runs));
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
        let mut started: Vec<Started<'_>> = Vec::new();
        let mut numbered = Vec::new();
        for variant in variants {
            let subject = variant.subject;
            if !started.last().is_some_and(|last| std::ptr::eq(last.subject, subject)) {
                let mut worker = Worker::start(&subject.target, &limits)?;
                let start = worker.run(&Plan { max_events: 1, ..Plan::default() })?.trace();
                started.push(Started { subject, worker, start });
            }
            numbered.push((started.len() - 1, variant));
        }
        let (reported, asides) = (HashSet::new(), Vec::new());
        Ok(Driver { started, variants: numbered, options, config, reported, asides })
    }

    /// How many findings were reported.
    pub fn reported(&self) -> usize {
        self.reported.len()
    }

    /// How to drive each program through a sequence.
    pub fn prepare(&self, task: &Task) -> Result<Vec<GuideConfig>, Problem> {
        let guide = |started: &Started<'_>| {
            guide_config(started.worker.program(), &started.start, task, self.options)
        };
        self.started.iter().map(guide).collect()
    }

    /// Tries a sequence on each variant in turn, until a run fails.
    pub fn try_sequence(&mut self, guides: &[GuideConfig]) -> Result<Answer, Problem> {
        let mut attempts = Attempts::default();
        self.asides.clear();
        let budget = (self.config)(StrategyChoice::Hunt).budget.share((1, self.variants.len() as u32));
        for number in 0..self.variants.len() {
            let guide = guides[self.variants[number].0].clone();
            self.try_variant(number, guide, Allowance::new(budget), &mut attempts)?;
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

    /// Tries a sequence for a short time. Then tries it with each remedy for what was in the way, and so on from there, until
    /// the budget is spent. When a run has passed all locations, the rest is for one that fails.
    fn try_variant(
        &mut self,
        number: usize,
        guide: GuideConfig,
        mut allowance: Allowance,
        attempts: &mut Attempts,
    ) -> Result<(), Problem> {
        let mut ways = Ways::default();
        ways.extend(vec![Way { guide, obstacle: None, tries: 0, cost: 0 }]);
        while !attempts.is_over()
            && let Some(mut way) = ways.take()
        {
            let share = match way.tries {
                0 if ways.taken == 1 => FIRST,
                0 => NEW,
                _ => AGAIN,
            };
            way.guide = way.guide.measured(self.program(number));
            way.guide.guidance.seed += 1;
            let Some(came) = self.attempt(number, &way.guide, share, &mut allowance, attempts)? else {
                break;
            };
            if came.verdict != Verdict::NotShown {
                let rest = (1, 1);
                self.attempt(number, &way.guide, rest, &mut allowance, attempts)?;
                break;
            }
            // What has changed nothing is not worth more demands.
            let is_same =
                |found: &Obstacle| way.obstacle.as_ref().is_some_and(|obstacle| obstacle.is_same(found));
            if !came.obstacle.as_ref().is_some_and(is_same) {
                ways.extend(self.remedied(number, &way.guide, &came));
            }
            way.tries += 1;
            way.cost = left(&came) + COST_OF_A_TRY * way.tries;
            ways.open.push(way);
        }
        Ok(())
    }

    fn program(&self, number: usize) -> &Program {
        self.started[self.variants[number].0].worker.program()
    }

    /// The sequence with each of the remedies for what was in the way.
    fn remedied(&self, number: usize, guide: &GuideConfig, came: &Guided) -> Vec<Way> {
        let added = guide.waypoints.iter().filter(|waypoint| waypoint.is_added).count();
        if added > MAX_ADDED {
            return Vec::new();
        }
        let program = self.program(number);
        let known = &came.known;
        let way = |remedy: &Remedy| {
            let guide = guide.with(remedy, &came.passes, program);
            Way {
                guide: GuideConfig { known: known.clone(), ..guide },
                obstacle: came.obstacle.clone(),
                tries: 0,
                cost: left(came) + remedy.unseen,
            }
        };
        came.remedies.iter().map(way).collect()
    }

    /// Makes one session; `None` if there is no time for one.
    fn attempt(
        &mut self,
        number: usize,
        guide: &GuideConfig,
        share: (u32, u32),
        allowance: &mut Allowance,
        attempts: &mut Attempts,
    ) -> Result<Option<Guided>, Problem> {
        let Some(budget) = allowance.share(share) else { return Ok(None) };
        let (_, variant) = &self.variants[number];
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
        allowance.made(summary.runs.max(1));
        self.asides.extend(guided.asides.iter().cloned());
        attempts.add(Answer { guided: guided.clone(), summary }, problem);
        Ok(Some(guided))
    }
}
