//! `threadbare replay`: runs a clip and compares every event.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use threadbare_executor::Limits;
use threadbare_formats::Clip;
use threadbare_hunt::clip::Origin;
use threadbare_hunt::replay::{ReplayError, replay};
use threadbare_hunt::{Event, Subject};

use crate::arguments::ReplayOptions;
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::{exit, input, output, record, target};

pub fn run(options: &ReplayOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    begin(options, "threadbare replay");
    let clip = read(&options.clip)?;
    let named = options.target.as_ref().map(|target| target.to_string_lossy().into_owned());
    let origin = Origin {
        target: named.unwrap_or_else(|| clip.target.clone()),
        compiler_arguments: clip.compiler_arguments.clone(),
        arguments: clip.arguments.clone(),
        input: clip.input.clone(),
    };
    let given = match (&options.stdin, &clip.input) {
        (Some(path), _) => Some(input::read(path)?),
        (None, Some(named)) => Some(input::read_again(named, &options.clip)?),
        (None, None) => None,
    };
    let subject = target::prepare_origin(origin, given)?;
    follow(&clip, &subject, options, cancelled)
}

pub fn read(path: &Path) -> Result<Clip, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::file("read", path, error))?;
    Clip::read(&bytes)
        .map_err(|error| Problem::file("read", path, error).help("clips are written by `threadbare hunt`"))
}

/// From now on the replay is reported, also if it is interrupted.
pub fn begin(options: &ReplayOptions, command: &'static str) {
    interrupt::begin(options.output.reporter(command), Due::replay(options.clip.clone()));
}

/// Runs the clip on a program that is ready.
pub fn follow(
    clip: &Clip,
    subject: &Subject,
    options: &ReplayOptions,
    cancelled: &Arc<AtomicBool>,
) -> Result<u8, Problem> {
    let limits = Limits {
        time: Duration::from_secs(options.time_limit),
        cancelled: Arc::clone(cancelled),
        ..Limits::default()
    };
    let mut emit = |event: Event<'_>| interrupt::report(&event);
    let replay = replay(clip, options.clip.clone(), subject, &limits, options.times, &mut emit)?;
    if let (Some(path), Some(trace)) = (&options.trace, &replay.trace) {
        record::write(trace, path)?;
    }
    Ok(match (replay.diverged_at, replay.reproduced) {
        (Some(_), _) => exit::COULD_NOT_RUN,
        (None, 0) if replay.interrupted => exit::INTERRUPTED,
        (None, 0) => exit::NOTHING_FOUND,
        (None, _) => exit::FOUND,
    })
}

impl From<ReplayError> for Problem {
    fn from(error: ReplayError) -> Problem {
        let message = error.to_string();
        match error {
            ReplayError::Start(error) => error.into(),
            ReplayError::Run(error) => error.into(),
            ReplayError::Report(error) => output::problem(error),
            ReplayError::NoLongerFits(_) => {
                Problem::new(message).help("the program has changed since; hunt again")
            }
        }
    }
}
