//! What came of an attempt to drive the program through a sequence of locations.

use std::path::PathBuf;
use std::time::Duration;

use threadbare_executor::{FailureKey, RunError, Worker};
use threadbare_guide::{Diagnosis, GuidedTest, Journey, MAX_BACKTRACK, Obstacle, Remedy, Verdict, diagnose};
use threadbare_program::Program;
use threadbare_trace::hash::short_fingerprint;
use threadbare_trace::{
    Demand, Guidance, Plan, Policy, Preference, ThreadId, Tracked, Turns, Watched, Waypoint, WhichThread,
};

use crate::{HuntConfig, SourceLine, Subject, atomic_write, clip};

/// A sequence, and how the program is to be driven through it.
#[derive(Clone, Debug)]
pub struct GuideConfig {
    /// The name of the sequence; empty if it has none.
    pub name: String,
    pub guidance: Guidance,
    /// Places at which a run is made to stop (see [`Plan::watched`]).
    pub watched: Vec<Watched>,
    /// Each waypoint of the sequence, in words.
    pub waypoints: Vec<Described>,
    /// Why some locations of a report are not among them.
    pub left_out: Vec<String>,
    /// So many of them were passed before the first thread. The guidance has the others only.
    pub behind: usize,
    /// Memory that is known to be shared.
    pub known: Tracked,
    /// How a run began that came far, with this memory known.
    pub beginning: Vec<Turns>,
    /// States that the search may go back to, at most.
    pub max_backtrack: usize,
    /// Files and lines. If there are any, a failure there is what is looked for, however the run came there. Otherwise it is
    /// any failure of a run that passed all waypoints.
    pub fails_at: Vec<(String, u32)>,
    /// Failures aside from the sequence that were reported before.
    pub known_asides: Vec<FailureKey>,
}

/// A waypoint in words.
#[derive(Clone, Debug)]
pub struct Described {
    pub text: String,
    /// It was added to what the user has named.
    pub is_added: bool,
}

impl GuideConfig {
    pub fn new(guidance: Guidance, watched: Vec<Watched>, waypoints: Vec<String>) -> GuideConfig {
        let described = |text| Described { text, is_added: false };
        GuideConfig {
            name: String::new(),
            guidance,
            watched,
            waypoints: waypoints.into_iter().map(described).collect(),
            left_out: Vec::new(),
            behind: 0,
            known: Tracked::default(),
            beginning: Vec::new(),
            max_backtrack: MAX_BACKTRACK,
            fails_at: Vec::new(),
            known_asides: Vec::new(),
        }
    }

    /// The same with the distances to all waypoints. They take time in a large program, so they are not found out before the
    /// sequence is tried.
    pub fn measured(mut self, program: &Program) -> GuideConfig {
        let Guidance { waypoints, preference, .. } = &mut self.guidance;
        if let Preference::Nearest(tables) = preference
            && tables.len() < waypoints.len()
        {
            *tables = program.distances(waypoints);
        }
        self
    }

    /// The same sequence with more demands, to be [measured](GuideConfig::measured). `passes` are the threads that passed the first waypoints in the run that the
    /// remedy is for.
    pub fn with(&self, remedy: &Remedy, passes: &[ThreadId], program: &Program) -> GuideConfig {
        let mut waypoints = self.guidance.waypoints.to_vec();
        if names_any(remedy, passes) {
            bind(&mut waypoints, passes);
        }
        // Those that have to arrive together stay together.
        let is_inside = |at: usize| {
            at > 0
                && matches!(waypoints[at].demand, Demand::Arrive(_))
                && waypoints[at - 1].demand == waypoints[at].demand
        };
        let mut at = remedy.passed;
        while at < waypoints.len() && is_inside(at) {
            at -= 1;
        }
        // Who stays where it is both before and after, stays there in between.
        let around = match at.checked_sub(1) {
            Some(before) => waypoints[before].kept_back.clone(),
            None => Vec::new(),
        };
        let stays = waypoints.get(at).map_or(&[][..], |next| &next.kept_back);
        let kept_back: Vec<_> =
            stays.iter().filter(|kept| at == 0 || around.contains(kept)).cloned().collect();
        let added = remedy
            .through
            .iter()
            .map(|waypoint| Waypoint { kept_back: kept_back.clone(), ..waypoint.clone() });
        waypoints.splice(at..at, added);
        if let Some(put_off) = &remedy.put_off {
            for waypoint in &mut waypoints[put_off.until.clone()] {
                waypoint.kept_back.push(put_off.kept_back.clone());
            }
        }
        let place = |waypoint: &Waypoint| {
            let location = program.location(waypoint.points[0]);
            Described { text: format!("{location}, which a branch depends on"), is_added: true }
        };
        let mut described = self.waypoints.clone();
        let there = self.behind + at;
        described.splice(there..there, remedy.through.iter().map(place));
        let guidance = Guidance { waypoints: waypoints.into(), ..self.guidance.clone() };
        let mut watched = self.watched.clone();
        for &place in &remedy.watched {
            let stop = program.stop_at(place).watched();
            watched.extend(stop.filter(|stop| matches!(stop, Watched::Access(_)) && !watched.contains(stop)));
        }
        let beginning = remedy.beginning.clone();
        GuideConfig { guidance, waypoints: described, watched, beginning, ..self.clone() }
    }

    pub(crate) fn make(&self, plan: Plan) -> GuidedTest {
        let plan = Plan { watched: self.watched.clone(), tracked: self.known.clone(), ..plan };
        GuidedTest::new(plan, self.guidance.clone(), self.max_backtrack).going_on_from(self.beginning.clone())
    }
}

/// The remedy is about a thread that passed a waypoint.
fn names_any(remedy: &Remedy, passes: &[ThreadId]) -> bool {
    let is_named = |waypoint: &Waypoint| match &waypoint.thread {
        WhichThread::Id(id) => passes.contains(id),
        WhichThread::Any | WhichThread::Variable(_) => false,
    };
    let put_off = remedy.put_off.as_ref().map(|put_off| &put_off.kept_back.thread);
    remedy.through.iter().any(is_named) || put_off.is_some_and(|thread| passes.contains(thread))
}

/// Lets variables stand for the threads that they stood for in a run.
fn bind(waypoints: &mut [Waypoint], passes: &[ThreadId]) {
    let bound: Vec<(WhichThread, ThreadId)> = waypoints
        .iter()
        .zip(passes)
        .filter(|(waypoint, _)| matches!(waypoint.thread, WhichThread::Variable(_)))
        .map(|(waypoint, thread)| (waypoint.thread.clone(), thread.clone()))
        .collect();
    for waypoint in waypoints {
        if let Some((_, thread)) = bound.iter().find(|(variable, _)| *variable == waypoint.thread) {
            waypoint.thread = WhichThread::Id(thread.clone());
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Guided {
    /// The name of the sequence; empty if it has none.
    pub name: String,
    pub verdict: Verdict,
    /// What the program read from outside, if there was a choice; else empty.
    pub variant: String,
    pub waypoints: Vec<Passed>,
    /// Why some locations of a report are not among them.
    pub left_out: Vec<String>,
    /// The run that passed all locations: one that failed, if there is one.
    pub clip: Option<PathBuf>,
    /// Why no run was made, if none was.
    pub not_tried: Option<String>,
    /// What kept the furthest run from the next location, if that could be found out.
    pub obstacle: Option<Obstacle>,
    /// What may be done about it.
    pub remedies: Vec<Remedy>,
    /// Memory that was seen to be shared.
    pub known: Tracked,
    /// The threads that passed waypoints of the guidance in the furthest run.
    pub passes: Vec<ThreadId>,
    /// Failures that were reported, of runs that had not passed the sequence.
    pub asides: Vec<FailureKey>,
}

impl Guided {
    /// No run was made, for this reason.
    pub fn not_tried(name: String, reason: String) -> Guided {
        Guided {
            name,
            verdict: Verdict::NotShown,
            variant: String::new(),
            waypoints: Vec::new(),
            left_out: Vec::new(),
            clip: None,
            not_tried: Some(reason),
            obstacle: None,
            remedies: Vec::new(),
            known: Tracked::default(),
            passes: Vec::new(),
            asides: Vec::new(),
        }
    }

    /// How many waypoints the furthest run passed.
    pub fn passed(&self) -> usize {
        self.waypoints.iter().filter(|waypoint| waypoint.thread.is_some()).count()
    }

    /// How many of the user's locations the furthest run passed.
    pub fn own_passed(&self) -> usize {
        self.waypoints.iter().filter(|waypoint| !waypoint.is_added && waypoint.thread.is_some()).count()
    }

    /// The first location that the furthest run did not pass.
    pub fn missing(&self) -> Option<&Passed> {
        self.waypoints.iter().find(|waypoint| waypoint.thread.is_none())
    }
}

/// A waypoint, and the thread that passed it in the run that came furthest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    pub text: String,
    /// It was added to what the user has named.
    pub is_added: bool,
    pub thread: Option<String>,
}

/// What a look at the run that came furthest has shown.
#[derive(Debug, Default)]
struct Look {
    /// Where its schedule is kept, if it passed all.
    clip: Option<PathBuf>,
    /// What kept it from the next waypoint, if it did not.
    diagnosis: Diagnosis,
}

/// How far the runs of a guided session have come.
#[derive(Clone, Debug)]
pub struct Course<'a> {
    guide: &'a GuideConfig,
    /// The threads that passed waypoints in the run that came furthest. One that fails counts if it passed all.
    passes: Vec<ThreadId>,
    /// The plan of that run.
    plan: Option<Plan>,
    /// How a run failed that went through the sequence.
    failure: Option<FailureKey>,
    /// Failures of other runs that are reported.
    asides: Vec<FailureKey>,
}

/// When a session is over, the run that came furthest is still looked at.
const TIME_FOR_A_LOOK: Duration = Duration::from_secs(2);

impl<'a> Course<'a> {
    pub fn new(guide: &'a GuideConfig) -> Course<'a> {
        Course { guide, passes: Vec::new(), plan: None, failure: None, asides: Vec::new() }
    }

    /// Waypoints that a run is to pass.
    pub fn waypoints(&self) -> usize {
        self.guide.guidance.waypoints.len()
    }

    /// Waypoints that a run is to pass before it fails.
    pub fn waypoints_before_failure(&self) -> usize {
        if self.guide.fails_at.is_empty() { self.waypoints() } else { 0 }
    }

    /// A failure at these lines is what is looked for.
    pub fn is_meant(&self, lines: &[SourceLine]) -> bool {
        let fails_at = &self.guide.fails_at;
        let is_there =
            |line: &SourceLine| fails_at.iter().any(|(file, at)| *file == line.file && *at == line.line);
        fails_at.is_empty() || lines.iter().any(is_there)
    }

    pub fn came_further(&mut self, passes: Vec<ThreadId>, plan: Plan) {
        if !self.is_real() {
            (self.passes, self.plan) = (passes, Some(plan));
        }
    }

    /// A run failed that had passed all waypoints.
    pub fn failed(&mut self, failure: &FailureKey, passes: Vec<ThreadId>) {
        (self.failure, self.passes) = (Some(failure.clone()), passes);
    }

    pub fn is_real(&self) -> bool {
        self.failure.is_some()
    }

    /// How a run failed that had passed all waypoints.
    pub fn failure(&self) -> Option<&FailureKey> {
        self.failure.as_ref()
    }

    /// A run failed that had not passed all waypoints.
    pub fn failed_aside(&mut self, failure: FailureKey) {
        self.asides.push(failure);
    }

    /// An earlier session has reported it.
    pub fn is_known_aside(&self, failure: &FailureKey) -> bool {
        self.guide.known_asides.contains(failure)
    }

    /// What came of the sequence.
    pub fn report(&self, worker: &mut Worker, subject: &Subject, config: &HuntConfig) -> Guided {
        let guide = self.guide;
        let verdict = match self.passes.len() == self.waypoints() {
            _ if self.is_real() => Verdict::Real,
            true => Verdict::Reached,
            false => Verdict::NotShown,
        };
        let limits = worker.limits().clone();
        if limits.is_over() {
            worker.set_limits(limits.beyond(TIME_FOR_A_LOOK));
        }
        // Without a look the verdict is the same.
        let look = self.look_again(worker, subject, config).unwrap_or_default();
        worker.set_limits(limits);
        let main = std::iter::repeat_n("0, before the first thread".to_owned(), guide.behind);
        let mut passes = main.chain(self.passes.iter().map(ThreadId::to_string));
        let passed = |Described { text, is_added }: &Described| Passed {
            text: text.clone(),
            is_added: *is_added,
            thread: passes.next(),
        };
        let waypoints = guide.waypoints.iter().map(passed).collect();
        let Look { clip, diagnosis: Diagnosis { obstacle, remedies } } = look;
        Guided {
            name: guide.name.clone(),
            verdict,
            variant: String::new(),
            waypoints,
            left_out: guide.left_out.clone(),
            clip,
            not_tried: None,
            obstacle,
            remedies,
            known: self.plan.as_ref().map_or_else(|| guide.known.clone(), |plan| plan.tracked.clone()),
            passes: self.passes.clone(),
            asides: self.asides.clone(),
        }
    }

    /// Makes the furthest run again, for its clip or for what was in its way.
    fn look_again(
        &self,
        worker: &mut Worker,
        subject: &Subject,
        config: &HuntConfig,
    ) -> Result<Look, RunError> {
        let Some(plan) = self.plan.as_ref().filter(|_| !self.is_real()) else { return Ok(Look::default()) };
        let plan = Plan { decisions: true, learn: false, ..plan.clone() };
        let run = worker.run(&plan)?;
        let waypoints = &self.guide.guidance.waypoints;
        if self.passes.len() < waypoints.len() {
            let (passes, picks) = (run.passes(), run.picks());
            let trace = run.trace();
            let journey = Journey { trace: &trace, waypoints, passes: &passes, picks: &picks };
            return Ok(Look { clip: None, diagnosis: diagnose(worker.program(), &journey) });
        }
        let forced = Plan {
            steps: run.steps(),
            turns: Vec::new(),
            strict: true,
            policy: Policy::RunToBlock,
            decisions: false,
            ..plan
        };
        let trace = worker.run(&forced)?.trace();
        let text = clip::clip(worker.program(), &forced, &trace, &subject.origin).to_string();
        let path = clip::path(&config.out, &subject.name, "reached", short_fingerprint(text.as_bytes()));
        let write = || {
            subject.save_input()?;
            atomic_write::write_into(&path, |out| write!(out, "{text}"))
        };
        Ok(Look { clip: write().is_ok().then_some(path), diagnosis: Diagnosis::default() })
    }
}
