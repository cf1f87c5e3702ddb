//! A run that was stopped though others of the same program end: is it a hang?
//!
//! Such a run is made again up to where it was stopped, and goes on from there with far more events and a random
//! schedule, which is fair. If it ends, it was only long. If it ends in a deadlock or a livelock, that is a finding.
//! Otherwise nobody knows, and a clip of it is kept for the user to look at.

use std::path::{Path, PathBuf};

use threadbare_executor::{FailureKey, RunError, Worker};
use threadbare_formats::Clip;
use threadbare_trace::hash::short_fingerprint;
use threadbare_trace::{End, Plan, Policy, Trace};

use crate::pool::Outcome;
use crate::{Subject, atomic_write, clip};

/// A run is suspicious if it had so many times the events of the longest run that ended.
const FAR_LONGER: u64 = 8;
/// It is then allowed so many times the events that it had.
const FAR_MORE: u64 = 10;
/// But no more than this.
const MAX_EVENTS: u64 = 10_000_000;
/// How many runs of a session are looked at.
const MAX_LOOKS: u32 = 2;
/// So many events of a run that does not end are enough to see what it does.
const SHOWN: u64 = 20_000;

/// Watches for runs that should have ended.
#[derive(Default)]
pub struct Watch {
    /// The most events of a run that ended; `None` if none did.
    longest: Option<u64>,
    looks: u32,
}

impl Watch {
    /// Whether this run should be looked at again.
    pub fn is_suspicious(&mut self, outcome: &Outcome) -> bool {
        let events = outcome.feedback.events;
        match outcome.ended() {
            End::Finished | End::Failed(_) => {
                self.longest = Some(self.longest.unwrap_or(0).max(events));
                return false;
            }
            End::EventBound | End::TimeLimit { .. } => {}
            _ => return false,
        }
        let is_longer =
            self.longest.is_some_and(|longest| events >= longest.max(1).saturating_mul(FAR_LONGER));
        let is_suspicious = is_longer && self.looks < MAX_LOOKS;
        self.looks += u32::from(is_suspicious);
        is_suspicious
    }
}

/// What became of a run that was made again with far more events.
pub enum Continued {
    /// It came to its end, so it was only long.
    Ended,
    /// It failed, under this plan.
    Failed(FailureKey, Box<Plan>),
    /// It was stopped again.
    Unfinished(Unfinished),
}

/// A run that did not end however long it was let.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The events that it had in the end.
    pub events: u64,
    /// Where the beginning of its schedule is kept.
    pub clip: Option<PathBuf>,
}

/// Makes the run of `plan` again and lets it go on, with at least `max_events`.
pub fn go_on(worker: &mut Worker, plan: &Plan, max_events: u64) -> Result<Continued, RunError> {
    let run = worker.run(plan)?;
    let (steps, events) = (run.steps(), run.events());
    let far = Plan {
        steps,
        turns: Vec::new(),
        decisions: false,
        learn: false,
        policy: Policy::Random { seed: plan.seed },
        max_events: events.saturating_mul(FAR_MORE).max(max_events).min(MAX_EVENTS.max(max_events)),
        ..plan.clone()
    };
    let run = worker.run(&far)?;
    Ok(match run.ended() {
        End::EventBound | End::TimeLimit { .. } => {
            Continued::Unfinished(Unfinished { events: run.events(), clip: None })
        }
        _ => match run.failure() {
            Some(failure) => Continued::Failed(failure, Box::new(Plan { steps: run.steps(), ..far })),
            None => Continued::Ended,
        },
    })
}

/// Writes a clip of how the run of `plan` begins, into `directory`. Returns its path.
pub fn save(worker: &mut Worker, plan: &Plan, subject: &Subject, directory: &Path) -> Option<PathBuf> {
    let run = worker.run(&Plan { max_events: plan.max_events.min(SHOWN), ..plan.clone() }).ok()?;
    let shown = Plan { steps: run.steps(), turns: Vec::new(), max_events: SHOWN, ..plan.clone() };
    let trace: Trace = worker.run(&shown).ok()?.trace();
    subject.save_input().ok()?;
    let clip: Clip = clip::clip(worker.program(), &shown, &trace, &subject.origin);
    let text = clip.to_string();
    let path = clip::path(directory, &subject.name, "unfinished", short_fingerprint(text.as_bytes()));
    atomic_write::write_into(&path, |out| write!(out, "{text}")).ok()?;
    Some(path)
}
