//! From a trace to predictions, each with a schedule: the steps of the paper in their order.

use std::sync::Arc;

use threadbare_trace::{EventIndex, Trace};

use crate::AnomalyKind;
use crate::deadlock;
use crate::pattern::Pattern;
use crate::search::{self, Candidate, Found};
use threadbare_search::reorder::closure::{Closure, first_together};
use threadbare_search::reorder::dependence::Prefix;
use threadbare_search::reorder::error::TraceError;
use threadbare_search::reorder::history::History;
use threadbare_search::reorder::reads::Reads;
use threadbare_search::reorder::region::Tier;
use threadbare_search::reorder::schedule::{Generator, Reordering, Target};
use threadbare_search::reorder::witness::{Checker, Verdict};

/// An anomaly that another schedule of the same run would have had.
#[derive(Clone, Debug)]
pub struct Prediction {
    pub kind: AnomalyKind,
    /// The name of the pattern; empty for a deadlock.
    pub pattern: String,
    /// The weakest reason to take accesses for one unit of work; `None` where there is no such unit.
    pub tier: Option<Tier>,
    /// One event for each event of the pattern, in its order. For a deadlock the acquisitions that wait.
    pub events: Vec<EventIndex>,
    /// For how many combinations of threads and variables, or of locks, it was found.
    pub count: u64,
    pub verdict: Verdict,
    pub target: Target,
    /// Ends with the anomaly.
    pub schedule: Reordering,
}

impl Prediction {
    /// What makes it the same as one predicted from another run of the program: its kind and its source lines.
    pub fn identity(&self, history: &History) -> String {
        let place = |&event: &EventIndex| {
            let location = history.trace().location(history.event(event).location);
            location.frames.first().map_or_else(String::new, |frame| format!("{}:{}", frame.file, frame.line))
        };
        let mut places: Vec<String> = self.events.iter().map(place).collect();
        // Which comes first makes no difference to a race or a cycle of locks.
        let unordered = matches!(self.kind, AnomalyKind::DataRace | AnomalyKind::Deadlock);
        if unordered {
            places.sort();
        }
        let pattern = if unordered { "" } else { &self.pattern };
        format!("{}|{pattern}|{:?}|{}", self.kind.name(), self.tier, places.join("|"))
    }
}

/// What was found, and what was found to be false without a run.
#[derive(Debug)]
pub struct Predictions {
    /// Those that are witnessed first, then by kind and lines.
    pub list: Vec<Prediction>,
    /// Candidates of the search for which there is no schedule.
    pub infeasible: Vec<AnomalyKind>,
}

/// Predicts from one trace.
pub fn predict(trace: impl Into<Arc<Trace>>, patterns: &[Pattern]) -> Result<Predictions, TraceError> {
    Ok(Predictor::new(History::new(trace)?).predict(patterns))
}

/// All that predictions from one trace need.
pub struct Predictor {
    history: Arc<History>,
    closure: Closure,
    generator: Generator,
    checker: Checker,
}

/// Places in a gap between two accesses at which a sound schedule is tried.
const MAX_PAUSES: usize = 8;

impl Predictor {
    pub fn new(history: History) -> Predictor {
        let history = Arc::new(history);
        let reads = Arc::new(Reads::of(&history));
        Predictor {
            closure: Closure::of(&history),
            generator: Generator::new(Arc::clone(&history), Arc::clone(&reads)),
            checker: Checker::new(Arc::clone(&history), reads),
            history,
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn predict(&self, patterns: &[Pattern]) -> Predictions {
        let found = search::search(&self.history, patterns);
        let mut list = Vec::new();
        let mut infeasible = Vec::new();
        for (identity, candidate) in &found.candidates {
            match self.access_anomaly(&found, candidate, &patterns[candidate.pattern]) {
                Some(prediction) => list.push(prediction),
                None => infeasible.push(identity.kind),
            }
        }
        for candidate in deadlock::search(&self.history).into_values() {
            match self.deadlock(&candidate) {
                Some(prediction) => list.push(prediction),
                None => infeasible.push(AnomalyKind::Deadlock),
            }
        }
        list.sort_by_key(|prediction| prediction.verdict);
        Predictions { list, infeasible }
    }

    fn access_anomaly(&self, found: &Found, candidate: &Candidate, pattern: &Pattern) -> Option<Prediction> {
        let race = pattern.kind == AnomalyKind::DataRace;
        let target =
            |events: &[EventIndex]| if race { Target::race(events) } else { Target::sequence(events) };
        let sound =
            if race { self.sound_race(found, candidate) } else { self.sound_sequence(candidate, pattern) };
        let (events, verdict, schedule) = sound.or_else(|| {
            candidate.representatives.iter().find_map(|events| {
                let events = if race { self.reversed(events) } else { events.clone() };
                let (schedule, verdict) = self.schedule(&target(&events))?;
                Some((events, verdict, schedule))
            })
        })?;
        Some(Prediction {
            kind: pattern.kind,
            pattern: pattern.name.clone(),
            tier: candidate.tier,
            target: target(&events),
            events,
            count: candidate.count,
            verdict,
            schedule,
        })
    }

    /// The two events of a race in the order that they did not have in the trace: the other was seen.
    fn reversed(&self, events: &[EventIndex]) -> Vec<EventIndex> {
        let mut events = events.to_vec();
        events.sort_unstable();
        events.reverse();
        events
    }

    /// A schedule, if there is one: of all ways to make one the first that is certain, or the first.
    pub fn schedule(&self, target: &Target) -> Option<(Reordering, Verdict)> {
        let mut possible = None;
        for schedule in self.generator.schedules(target) {
            let checked = self.checked(schedule, target);
            if matches!(checked, Some((_, Verdict::Witnessed))) {
                return checked;
            }
            possible = possible.or(checked);
        }
        possible
    }

    /// A schedule that keeps what happened up to `prefix`.
    fn schedule_after(&self, prefix: &Prefix, target: &Target) -> Option<(Reordering, Verdict)> {
        self.checked(self.generator.generate_after(prefix, target)?, target)
    }

    fn checked(&self, schedule: Reordering, target: &Target) -> Option<(Reordering, Verdict)> {
        let verdict = self.checker.check(&schedule, target);
        debug_assert!(verdict.is_ok(), "generated a schedule that is {verdict:?}");
        Some((schedule, verdict.ok()?))
    }

    /// A race that is certain: both accesses can be next at the same time.
    fn sound_race(
        &self,
        found: &Found,
        candidate: &Candidate,
    ) -> Option<(Vec<EventIndex>, Verdict, Reordering)> {
        candidate.sides.iter().find_map(|&[one, other]| {
            let lists = [found.events(one), found.events(other)];
            let (events, prefix) = first_together(&self.closure, &self.history, &lists)?;
            let events = self.reversed(&events);
            let (schedule, verdict) = self.schedule_after(&prefix, &Target::race(&events))?;
            Some((events, verdict, schedule))
        })
    }

    /// A violation that is certain, if there is one: up to where the first unit pauses and the others begin, all is
    /// as it was.
    fn sound_sequence(
        &self,
        candidate: &Candidate,
        pattern: &Pattern,
    ) -> Option<(Vec<EventIndex>, Verdict, Reordering)> {
        candidate.representatives.iter().find_map(|events| {
            let target = Target::sequence(events);
            let pauses = self.pauses(events, pattern);
            let firsts = first_of_others(events, pattern);
            pauses.into_iter().find_map(|pause| {
                let stand: Vec<EventIndex> = std::iter::once(pause).chain(firsts.iter().copied()).collect();
                let prefix = self.closure.next_together(&self.history, &stand)?;
                let (schedule, verdict) = self.schedule_after(&prefix, &target)?;
                (verdict == Verdict::Witnessed).then_some((events.clone(), verdict, schedule))
            })
        })
    }

    /// Where the first side can pause when the others first get their turn: before its next event of the pattern, or
    /// before an acquisition or release on the way there.
    fn pauses(&self, events: &[EventIndex], pattern: &Pattern) -> Vec<EventIndex> {
        let first = pattern.order[0];
        let block = pattern.order.iter().take_while(|&&side| side == first).count();
        let next = pattern.order.iter().skip(block).position(|&side| side == first);
        let Some(next) = next.map(|at| events[block + at]) else { return Vec::new() };
        let (history, last) = (&self.history, events[block - 1]);
        let thread = history.thread(next);
        let locks = history.lock_events(thread, history.local(last), history.local(next));
        let locks = locks.iter().rev().map(|&local| history.events_of(thread)[local.index()]);
        std::iter::once(next).chain(locks).take(MAX_PAUSES).collect()
    }

    fn deadlock(&self, candidate: &deadlock::Candidate) -> Option<Prediction> {
        let lists: Vec<&[EventIndex]> = candidate.instances.iter().map(Vec::as_slice).collect();
        let sound = first_together(&self.closure, &self.history, &lists).and_then(|(events, prefix)| {
            let (schedule, verdict) = self.schedule_after(&prefix, &Target::deadlock(&events))?;
            Some((events, schedule, verdict))
        });
        let (events, schedule, verdict) = sound.or_else(|| {
            let (schedule, verdict) = self.schedule(&Target::deadlock(&candidate.representative))?;
            Some((candidate.representative.clone(), schedule, verdict))
        })?;
        Some(Prediction {
            kind: AnomalyKind::Deadlock,
            pattern: String::new(),
            tier: None,
            target: Target::deadlock(&events),
            events,
            count: candidate.count,
            verdict,
            schedule,
        })
    }
}

/// The first event of each side but the first side.
fn first_of_others(events: &[EventIndex], pattern: &Pattern) -> Vec<EventIndex> {
    let sides = 0..pattern.sides.len();
    let first = |side: usize| pattern.order.iter().position(|&of| of == side).map(|at| events[at]);
    sides.filter(|&side| side != pattern.order[0]).filter_map(first).collect()
}
