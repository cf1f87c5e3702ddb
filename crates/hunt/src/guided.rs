//! What came of an attempt to drive the program through a sequence of locations.

use std::path::PathBuf;
use std::time::Duration;

use threadbare_executor::{FailureKey, RunError, Worker};
use threadbare_guide::{Detour, GuidedTest, MAX_BACKTRACK, Obstacle, PutOff, Verdict, obstacle};
use threadbare_program::Program;
use threadbare_trace::hash::short_fingerprint;
use threadbare_trace::{
    Demand, EventIndex, Guidance, Plan, Policy, Preference, ThreadId, Watched, Waypoint, WhichThread,
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
    /// Each waypoint of the sequence in the user's words.
    pub waypoints: Vec<String>,
    /// Why some locations of a report are not among them.
    pub left_out: Vec<String>,
    /// So many of them were passed before the first thread. The guidance has the others only.
    pub behind: usize,
    /// The places among them that were added because a branch depends on them.
    pub added: Vec<u64>,
    /// States that the search may go back to, at most.
    pub max_backtrack: usize,
    /// Files and lines. If there are any, a failure there is what is looked for, however the run came there. Otherwise it is
    /// any failure of a run that passed all waypoints.
    pub fails_at: Vec<(String, u32)>,
    /// Failures aside from the sequence that were reported before.
    pub known_asides: Vec<FailureKey>,
}

impl GuideConfig {
    pub fn new(guidance: Guidance, watched: Vec<Watched>, waypoints: Vec<String>) -> GuideConfig {
        GuideConfig {
            name: String::new(),
            guidance,
            watched,
            waypoints,
            left_out: Vec::new(),
            behind: 0,
            added: Vec::new(),
            max_backtrack: MAX_BACKTRACK,
            fails_at: Vec::new(),
            known_asides: Vec::new(),
        }
    }

    /// The same sequence with one more place on the way.
    pub fn by_way_of(&self, Detour { place, passed }: Detour, program: &Program) -> GuideConfig {
        let mut extended = self.clone();
        let mut waypoints = self.guidance.waypoints.to_vec();
        let waypoint = Waypoint::new(vec![place], WhichThread::Any, Demand::Pass);
        waypoints.insert(passed, waypoint);
        let text = format!("{}, which a branch depends on", program.location(place));
        extended.waypoints.insert(self.behind + passed, text);
        extended.guidance.waypoints = waypoints.into();
        extended.added.push(place);
        if let Preference::Nearest(_) = self.guidance.preference {
            extended.guidance.preference =
                Preference::Nearest(program.distances(&extended.guidance.waypoints));
        }
        extended
    }

    /// The same sequence with an operation put off.
    pub fn putting_off(&self, put_off: &PutOff) -> GuideConfig {
        let mut waypoints = self.guidance.waypoints.to_vec();
        for waypoint in &mut waypoints[put_off.until.clone()] {
            waypoint.kept_back.push(put_off.kept_back.clone());
        }
        let guidance = Guidance { waypoints: waypoints.into(), ..self.guidance.clone() };
        let added = self.added.iter().copied().chain([put_off.kept_back.before]).collect();
        GuideConfig { guidance, added, ..self.clone() }
    }

    pub(crate) fn make(&self, plan: Plan) -> GuidedTest {
        let plan = Plan { watched: self.watched.clone(), ..plan };
        GuidedTest::new(plan, self.guidance.clone(), self.max_backtrack)
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
            asides: Vec::new(),
        }
    }

    /// How many waypoints the furthest run passed.
    pub fn passed(&self) -> usize {
        self.waypoints.iter().filter(|waypoint| waypoint.thread.is_some()).count()
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
    pub thread: Option<String>,
}

/// What a look at the run that came furthest has shown.
#[derive(Debug, Default)]
struct Look {
    /// Where its schedule is kept, if it passed all.
    clip: Option<PathBuf>,
    /// What kept it from the next waypoint, if it did not.
    obstacle: Option<Obstacle>,
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
        let waypoints = guide.waypoints.iter();
        let waypoints = waypoints.map(|text| Passed { text: text.clone(), thread: passes.next() }).collect();
        let Look { clip, obstacle } = look;
        Guided {
            name: guide.name.clone(),
            verdict,
            variant: String::new(),
            waypoints,
            left_out: guide.left_out.clone(),
            clip,
            not_tried: None,
            obstacle,
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
        let plan = Plan { decisions: false, learn: false, ..plan.clone() };
        let run = worker.run(&plan)?;
        if let Some(next) = self.guide.guidance.waypoints.get(self.passes.len()) {
            let passes: Vec<EventIndex> = run.passes().into_iter().map(|(_, event)| event).collect();
            let trace = run.trace();
            return Ok(Look { clip: None, obstacle: obstacle(worker.program(), &trace, next, &passes) });
        }
        let forced =
            Plan { steps: run.steps(), turns: Vec::new(), strict: true, policy: Policy::RunToBlock, ..plan };
        let trace = worker.run(&forced)?.trace();
        let text = clip::clip(worker.program(), &forced, &trace, &subject.origin).to_string();
        let path = clip::path(&config.out, &subject.name, "reached", short_fingerprint(text.as_bytes()));
        let write = || {
            subject.save_input()?;
            atomic_write::write_into(&path, |out| write!(out, "{text}"))
        };
        Ok(Look { clip: write().is_ok().then_some(path), obstacle: None })
    }
}
