//! A clip, followed event by event.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use threadbare_executor::{Limits, RunEnd, RunError, StartError, Worker};
use threadbare_formats::Clip;
use threadbare_trace::Trace;

pub use crate::clip::Divergence;
use crate::clip::{Unresolved, compare, is_as_promised, resolve};
use crate::{Emit, Event, Subject};

/// What a replay came to.
pub struct Replay {
    pub clip: PathBuf,
    pub runs: u64,
    /// Runs that ended as the clip says.
    pub reproduced: u64,
    /// The first event (from 1) that was not as the clip says, if any.
    pub diverged_at: Option<usize>,
    /// The first run.
    pub trace: Option<Arc<Trace>>,
    /// It was told to stop.
    pub interrupted: bool,
}

impl Replay {
    /// No run was made yet.
    pub fn new(clip: PathBuf) -> Replay {
        Replay { clip, runs: 0, reproduced: 0, diverged_at: None, trace: None, interrupted: false }
    }
}

/// Why a clip could not be followed.
#[derive(Debug, Error)]
pub enum ReplayError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the clip no longer fits: in step {}, {}", .0.step + 1, .0)]
    NoLongerFits(#[from] Unresolved),
    #[error("cannot report: {0}")]
    Report(#[source] std::io::Error),
}

/// Runs `clip`, which stands in the file `path`, so many times on the subject.
pub fn replay(
    clip: &Clip,
    path: PathBuf,
    subject: &Subject,
    limits: &Limits,
    times: u64,
    emit: &mut Emit<'_>,
) -> Result<Replay, ReplayError> {
    let mut worker = Worker::start(&subject.target, limits)?;
    let plan = resolve(clip, worker.program())?;
    let mut replay = Replay::new(path);
    let mut before: Option<(Vec<u8>, RunEnd)> = None;
    let mut was_as_promised = false;
    for _ in 0..times {
        let run = match worker.run(&plan) {
            Err(RunError::Cancelled) => {
                replay.interrupted = true;
                break;
            }
            run => run?,
        };
        replay.runs += 1;
        // Byte for byte the run before: what is to be said of it is the same.
        if before.as_ref().is_some_and(|(bytes, ended)| run.bytes() == bytes && run.ended() == ended) {
            replay.reproduced += u64::from(was_as_promised);
            continue;
        }
        before = Some((run.bytes().to_vec(), run.ended().clone()));
        let trace = run.trace();
        let divergence = compare(clip, worker.program(), &trace);
        let still_fails = is_as_promised(clip, &trace);
        was_as_promised = divergence.is_none() && still_fails;
        replay.reproduced += u64::from(was_as_promised);
        if let (Some(divergence), None) = (&divergence, replay.diverged_at) {
            replay.diverged_at = Some(divergence.event);
            let event = Event::Diverged { divergence, ended: &trace.end_text(), still_fails };
            emit(event).map_err(ReplayError::Report)?;
        }
        replay.trace.get_or_insert(Arc::new(trace));
    }
    emit(Event::Replayed(&replay)).map_err(ReplayError::Report)?;
    Ok(replay)
}
