//! The attempts at one sequence: as it is, by way of stores that a branch depends on, and with other things from outside.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use threadbare_executor::{FailureKey, Worker};
use threadbare_guide::{Detour, Obstacle, PutOff};
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

/// A program that was started.
struct Started<'a> {
    subject: &'a Subject,
    worker: Worker,
    /// Only its first event matters, which says where the main thread is by then.
    start: Trace,
}

/// The budget has so many parts.
const PARTS: u32 = 32;
/// The parts for the sequence as it is, at the start.
const FIRST: u32 = 4;
/// The parts for a way around a branch that was not tried before.
const NEW: u32 = 2;
/// The parts for a way that is tried once more.
const AGAIN: u32 = 4;
/// The parts that are kept for the best way, at the end.
const LAST: u32 = 8;
/// How many stores are tried at a branch.
const MAX_STORES: usize = 4;
/// How many stores are added to a sequence.
const MAX_ADDED: usize = 6;

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

/// How far the runs of an attempt came: what is left counts, because a sequence may be longer by a store. Of two that came
/// as far, the one says more that knows what was in the way.
fn rank(guided: &Guided) -> (Verdict, Reverse<usize>, bool) {
    (guided.verdict, Reverse(guided.waypoints.len() - guided.passed()), guided.obstacle.is_some())
}

/// A sequence with one more place on the way.
struct Way {
    guide: GuideConfig,
    /// What was in the way of the sequence without it.
    obstacle: Obstacle,
    /// It was tried before.
    is_again: bool,
    /// Waypoints that were passed then, or without the place.
    passed: usize,
}

/// Takes out the way that came furthest: if there are several, the last one that is new.
fn furthest(open: &mut Vec<Way>) -> Option<Way> {
    let ways = open.iter().enumerate();
    let (position, _) = ways.max_by_key(|(_, way)| (way.passed, !way.is_again))?;
    Some(open.remove(position))
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
        let Some(first) = first else { return Ok(()) };
        let mut open = self.ways(number, &guide, &first);
        let (mut best, mut parts) = (guide, PARTS - FIRST);
        while attempts.verdict() == Verdict::NotShown && !attempts.is_over() && parts > LAST {
            let Some(way) = furthest(&mut open) else { break };
            let part = if way.is_again { AGAIN } else { NEW };
            parts -= part;
            let Some(came) = self.attempt(number, &way.guide, allowance.share((part, PARTS)), attempts)?
            else {
                break;
            };
            if !came.obstacle.as_ref().is_some_and(|found| way.obstacle.is_same(found)) {
                open.extend(self.ways(number, &way.guide, &came));
            }
            if came.verdict != Verdict::NotShown {
                best = way.guide.clone();
            }
            if !way.is_again {
                open.push(Way { is_again: true, passed: came.passed(), ..way });
            }
        }
        if !attempts.is_over() {
            self.attempt(number, &best, allowance.share((parts, PARTS)), attempts)?;
        }
        Ok(())
    }

    /// The sequences with one more place on the way, or with an operation put off, so that the branch in the way may go the
    /// other way. The last is to be tried first.
    fn ways(&self, number: usize, guide: &GuideConfig, came: &Guided) -> Vec<Way> {
        let Some(obstacle) = came.obstacle.as_ref().filter(|_| guide.added.len() < MAX_ADDED) else {
            return Vec::new();
        };
        // The sequence has such a store, but the branch was come to before it.
        let is_early = |store: &Detour| {
            store.passed < came.passed() - guide.behind && guide.added.contains(&store.place)
        };
        let is_early = obstacle.stores.iter().any(is_early);
        let program: &Program = self.started[self.variants[number].0].worker.program();
        let is_new = |detour: &&Detour| !guide.added.contains(&detour.place);
        // What was only added for the sake of a branch need not come after the read.
        let is_own = |detour: &&Detour| {
            let stores = &guide.guidance.waypoints[detour.passed].points;
            !guide.added.iter().any(|added| stores[..] == [*added])
        };
        let reads_first = obstacle.reads_first.iter().filter(is_own);
        let detours = reads_first.chain(obstacle.stores.iter().take(MAX_STORES));
        let detours = detours.filter(is_new).filter(|_| !is_early);
        let by_way_of = detours.map(|&detour| guide.by_way_of(detour, program));
        let is_free = |put_off: &&PutOff| !guide.added.contains(&put_off.kept_back.before);
        let put_off = obstacle.put_off.iter().take(MAX_STORES).filter(is_free);
        let putting_off = put_off.map(|put_off| guide.putting_off(put_off));
        let way = |guide: GuideConfig| Way {
            guide,
            obstacle: obstacle.clone(),
            is_again: false,
            passed: came.passed(),
        };
        let mut ways: Vec<Way> = putting_off.chain(by_way_of).map(way).collect();
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
        self.asides.extend(guided.asides.iter().cloned());
        attempts.add(Answer { guided: guided.clone(), summary }, problem);
        Ok(Some(guided))
    }
}
