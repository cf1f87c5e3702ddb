//! The search (sections 3.2 and 3.3 of the paper, Figures 2 and 3).
//!
//! A run is greedy: at each choice the runtime lets the thread go that passes the next location of the sequence, or else
//! the one that is nearest to it ([`Guidance`]). The threads that could have gone instead are states to go back to. When
//! a run is over and nothing has failed, the search goes on from one of them: from any level, which is the number of
//! locations passed, and there from one that is nearest to the next location. No state is gone on from twice.
//!
//! The paper goes on from a state by restoring it. Here a plan forces the turns that led there, and a snapshot makes that
//! cheap.
//!
//! Where this differs from the paper:
//! - A run decides by how far the threads are before they take a step. The paper takes every step, and compares how far
//!   they are after it. In a compiled program to take a step is to run it, so that would be a run for every state.
//! - Where a thread begins, or creates another one away from the locations of the sequence, that is the only successor:
//!   it makes no difference to anybody else when it happens. The paper's model checker reduces the search by partial order
//!   too.
//! - A variable of the sequence stands for the first thread that passes there. Another thread may be needed, so there are
//!   more searches in which variables stand for threads that are drawn at random (see `bindings`).
//! - When the search has had [`RUNS_BY_DISTANCE`] runs, some begin anew and go by the first tier alone, at random. The
//!   nearest thread is not always the one that is needed: another may have to change what a branch depends on.
//! - A search may be given the beginning of an earlier run that came far. One run in [`SHARE_GOING_ON`] goes on from there.
//! - A run goes on to its end though it comes to a state that was visited before. What is generated from there on is not
//!   counted and not gone on from.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use threadbare_search::{
    Conclusion, Decision, Feedback, Knowledge, Next, Outstanding, Schedule, Strategy, Token,
};
use threadbare_trace::hash::mix;
use threadbare_trace::{
    Afterwards, Distance, End, EventKind, Guidance, Plan, Policy, Preference, Random, ThreadIndex, Tracked,
    Turns, Waypoint,
};
use threadbare_wire::GuidedStep;

use crate::backtrack::{Backtrack, State};
use crate::bindings::Bindings;

/// What users know the search by.
pub const NAME: &str = "guide";

/// The states that the paper lets a search go back to, at most.
pub const MAX_BACKTRACK: usize = 100_000;

/// After so many runs, one in [`SHARE_AT_RANDOM`] goes by the first tier alone.
pub const RUNS_BY_DISTANCE: u64 = 32;
pub const SHARE_AT_RANDOM: u64 = 4;

/// One run in so many goes on from an earlier run, if there is one.
pub const SHARE_GOING_ON: u64 = 4;

/// Drives a program through a sequence of locations.
#[derive(Debug)]
pub struct GuidedTest {
    knowledge: Knowledge,
    guidance: Guidance,
    backtrack: Backtrack,
    visited: FxHashSet<u64>,
    random: Random,
    /// The search as it is given is still to begin.
    at_root: bool,
    /// How a run came far before, and the memory that was known to be shared then.
    earlier: Option<(Vec<Turns>, Tracked)>,
    bindings: Bindings,
    asked: Outstanding<Asked>,
    /// How often the search has begun, because more memory is shared than was known.
    beginnings: u64,
    figures: Figures,
    furthest: Option<Course>,
    conclusions: Vec<Conclusion>,
    backtracking: Backtracking,
}

/// The state that a search goes back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backtracking {
    /// One that is nearest to the next location, at any level.
    #[default]
    Nearest,
    /// The last that was generated: depth-first search.
    Deepest,
}

/// What a search has done since it last began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Every successor of a state that was generated, visited or not.
    pub states: u64,
    /// Runs that were made from a backtrack state.
    pub backtracks: u64,
    /// Runs from before the last beginning: all that came of them is what memory is shared.
    pub learning: u64,
    /// Decisions of the last run.
    pub depth: u64,
    /// Runs that passed all locations.
    pub driven: u64,
}

/// How far a run came. Of two that passed as many locations, the one tells more in which a thread could still come to the
/// next, and then the one that was made when more was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Course {
    passed: usize,
    was_near: bool,
    beginning: u64,
}

/// After so many locations, a thread could still come to the next one, by the control flow.
fn was_near(feedback: &Feedback, passed: usize) -> bool {
    let is_near = |step: &GuidedStep| *step != GuidedStep::Distance(Distance::INFINITE);
    let guided = feedback.decisions.iter().rev().filter_map(|decision| decision.guided.as_ref());
    let mut there = guided.take_while(|guided| guided.passed as usize == passed);
    there.any(|guided| guided.steps.iter().any(is_near))
}

/// A run that was asked for.
#[derive(Debug)]
struct Asked {
    plan: Plan,
    waypoints: Arc<[Waypoint]>,
    /// How many of its decisions are forced.
    forced: usize,
    /// Nobody is to go back to its states: it does not know of distances, or of all memory that is shared.
    has_no_states: bool,
    beginning: u64,
}

impl GuidedTest {
    /// Searches by `guidance`, with at most `max_backtrack` states to go back to. All plans begin as `plan`.
    pub fn new(plan: Plan, guidance: Guidance, max_backtrack: usize) -> GuidedTest {
        let random = Random(mix([guidance.seed, plan.seed]));
        GuidedTest {
            knowledge: Knowledge::at_full_length(Plan { decisions: true, ..plan }),
            guidance,
            backtrack: Backtrack::new(max_backtrack),
            visited: FxHashSet::default(),
            random,
            at_root: true,
            earlier: None,
            bindings: Bindings::default(),
            asked: Outstanding::default(),
            beginnings: 0,
            figures: Figures::default(),
            furthest: None,
            conclusions: Vec::new(),
            backtracking: Backtracking::default(),
        }
    }

    /// The same search, which goes back to other states.
    pub fn backtracking(self, backtracking: Backtracking) -> GuidedTest {
        GuidedTest { backtracking, ..self }
    }

    /// The same search, which also goes on from the beginning of an earlier run. The plan is what was known then.
    pub fn going_on_from(self, turns: Vec<Turns>) -> GuidedTest {
        let tracked = self.knowledge.plan.tracked.clone();
        GuidedTest { earlier: (!turns.is_empty()).then_some((turns, tracked)), ..self }
    }

    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// More memory is shared than was known, so there are more decisions than were seen.
    fn begin_again(&mut self) {
        self.backtrack.clear();
        self.visited.clear();
        self.at_root = true;
        self.bindings = Bindings::default();
        self.beginnings += 1;
        self.figures = Figures { learning: self.asked.issued(), ..Figures::default() };
    }

    /// Keeps the states that a run has generated, from the first decision that was not forced on. Forced ones were
    /// generated by the run that they come from.
    fn generate(&mut self, Asked { forced, waypoints, has_no_states, .. }: &Asked, feedback: &Feedback) {
        let picks: Arc<[ThreadIndex]> = feedback.picks().collect();
        self.figures.depth = picks.len() as u64;
        let binding = self.bindings.number(waypoints);
        for (len, decision) in feedback.decisions.iter().enumerate().skip(*forced) {
            let Some(guided) = &decision.guided else { continue };
            let commutes = commutes(decision, waypoints);
            self.figures.states += if commutes { 1 } else { decision.alternatives.len() as u64 };
            // Others may have to come to these states.
            if *has_no_states {
                continue;
            }
            if !self.visited.insert(mix([decision.state, u64::from(guided.passed), binding])) {
                break;
            }
            if commutes {
                continue;
            }
            for (thread, level, distance) in successors(decision) {
                if thread != decision.picked {
                    let waypoints = Arc::clone(waypoints);
                    let state = State { picks: Arc::clone(&picks), len, thread, waypoints };
                    let (level, distance) = match self.backtracking {
                        Backtracking::Nearest => (level, distance),
                        Backtracking::Deepest => (0, u32::MAX - len as u32),
                    };
                    self.backtrack.add(level, distance, state, &mut self.random);
                }
            }
        }
    }

    /// Tells of a run that has come further than any before it.
    fn conclude(&mut self, asked: &Asked, feedback: &Feedback) {
        let passed = feedback.passes.len();
        let course = Course { passed, was_near: was_near(feedback, passed), beginning: asked.beginning };
        if self.furthest.is_some_and(|furthest| course <= furthest) {
            return;
        }
        self.furthest = Some(course);
        // What was tracked when the run was made decides what its turns are.
        let plan = Plan { turns: Turns::of(feedback.picks()), ..asked.plan.clone() };
        let passes = feedback.passing_threads();
        self.conclusions.push(Conclusion::Driven { passes, plan: Box::new(plan) });
    }

    /// A run that begins as an earlier one.
    fn go_on_from(&mut self, turns: Vec<Turns>, tracked: Tracked) -> Next {
        let guidance = Guidance { seed: self.random.next(), ..self.guidance.clone() };
        let (waypoints, forced) = (Arc::clone(&guidance.waypoints), Turns::total(&turns) as usize);
        let policy = Policy::Guided(guidance);
        let plan = Plan { turns, tracked, policy, learn: false, ..self.knowledge.plan.clone() };
        // When more is known to be shared, states are others, and nobody can go on from them.
        let has_no_states = self.knowledge.plan.tracked != plan.tracked;
        let beginning = self.beginnings;
        let asked = Asked { plan: plan.clone(), waypoints, forced, has_no_states, beginning };
        Next::Run(Schedule::new(self.asked.issue(asked), NAME, plan))
    }

    /// If the beginning of the earlier run could not be followed to its end, what was followed is kept.
    fn shorten_earlier(&mut self, asked: &Asked, feedback: &Feedback) {
        if let Some((turns, _)) = &mut self.earlier
            && asked.plan.turns == *turns
            && matches!(feedback.ended, End::Diverged { .. })
        {
            let followed: Vec<ThreadIndex> = feedback.picks().collect();
            *turns = Turns::of(followed.iter().copied().take(followed.len().saturating_sub(1)));
        }
    }

    /// The next state to go on from, and the sequence that it belongs to: the beginning of a search, or one to go back to.
    fn next_state(&mut self) -> Option<(Vec<Turns>, Arc<[Waypoint]>)> {
        if std::mem::take(&mut self.at_root) {
            return Some((Vec::new(), Arc::clone(&self.guidance.waypoints)));
        }
        // Other bindings are worth as many runs as all that is known of those before.
        let is_turn = self.backtrack.is_empty() || self.random.below(2) == 0;
        if is_turn
            && let Some(waypoints) =
                self.bindings.draw(&self.guidance.waypoints, &self.knowledge.threads, &mut self.random)
        {
            return Some((Vec::new(), waypoints));
        }
        let state = self.backtrack.take(&mut self.random)?;
        self.figures.backtracks += 1;
        Some((Turns::of(state.picks()), state.waypoints))
    }
}

/// What the picked thread does makes no difference to what others do before or after it, nor to the sequence.
fn commutes(decision: &Decision, waypoints: &[Waypoint]) -> bool {
    let Some(operation) = decision.operation else { return false };
    let is_at = |waypoint: &Waypoint| waypoint.points.binary_search(&operation.point.pc).is_ok();
    match operation.kind {
        EventKind::Begin => true,
        EventKind::Fork => !waypoints.iter().any(is_at),
        _ => false,
    }
}

/// The successors of a state: who goes, how many locations are passed then, and how far it is to the next one.
fn successors(decision: &Decision) -> impl Iterator<Item = (ThreadIndex, u32, u32)> {
    let guided = decision.guided.iter();
    guided.flat_map(|guided| {
        let steps = decision.alternatives.iter().zip(&guided.steps);
        steps.map(|(&thread, &step)| match step {
            GuidedStep::Passes => (thread, guided.passed + 1, 0),
            GuidedStep::Distance(distance) => (thread, guided.passed, distance),
        })
    })
}

impl Strategy for GuidedTest {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self) -> Next {
        if self.asked.issued().is_multiple_of(SHARE_GOING_ON)
            && let Some((turns, tracked)) = self.earlier.clone()
        {
            return self.go_on_from(turns, tracked);
        }
        let is_first = self.at_root;
        let is_at_random = self.asked.issued() >= RUNS_BY_DISTANCE
            && self.asked.issued().is_multiple_of(SHARE_AT_RANDOM)
            && matches!(self.guidance.preference, Preference::Nearest(_));
        let next = match is_at_random {
            true => Some((Vec::new(), Arc::clone(&self.guidance.waypoints))),
            false => self.next_state(),
        };
        let Some((turns, waypoints)) = next else {
            let is_underway = self.asked.iter().any(|asked| asked.beginning == self.beginnings);
            return if is_underway { Next::Wait } else { Next::Exhausted };
        };
        // At first the thread that passes the last location goes on by itself. That is what a sequence is for most often.
        let afterwards = match self.random.below(2) {
            1 if !is_first => Afterwards::Random,
            _ => Afterwards::RunOn,
        };
        let seed = self.random.next();
        let preference = match is_at_random {
            true => Preference::None,
            false => self.guidance.preference.clone(),
        };
        let guidance = Guidance { seed, afterwards, waypoints: Arc::clone(&waypoints), preference };
        let learn = turns.is_empty() || Knowledge::learns_from_snapshot(self.asked.issued());
        let forced = Turns::total(&turns) as usize;
        let plan = Plan { turns, policy: Policy::Guided(guidance), learn, ..self.knowledge.plan.clone() };
        let beginning = self.beginnings;
        let asked = Asked { plan: plan.clone(), waypoints, forced, has_no_states: is_at_random, beginning };
        Next::Run(Schedule::new(self.asked.issue(asked), NAME, plan))
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        let Some(asked) = self.asked.answer(token) else { return };
        if feedback.ended.failure().is_none() {
            self.conclude(&asked, feedback);
        }
        self.shorten_earlier(&asked, feedback);
        let is_new = self.knowledge.update(feedback);
        // What failed is what was looked for, whatever else the run has shown.
        if is_new && feedback.ended.failure().is_none() {
            self.begin_again();
        } else if asked.beginning == self.beginnings {
            self.figures.driven += u64::from(feedback.passes.len() == self.guidance.waypoints.len());
            self.generate(&asked, feedback);
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        if self.knowledge.update(feedback) {
            self.begin_again();
        }
    }

    fn conclusions(&mut self) -> Vec<Conclusion> {
        std::mem::take(&mut self.conclusions)
    }

    fn dropped(&self) -> u64 {
        self.backtrack.dropped()
    }
}
