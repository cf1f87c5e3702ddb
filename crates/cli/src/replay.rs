//! `threadbare replay`: runs a clip and compares every event.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use threadbare_executor::Limits;
use threadbare_hunt::replay::{ReplayError, replay};
use threadbare_hunt::{Event, Subject};

use crate::arguments::ReplayOptions;
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::trust::{Builder, TrustedClip};
use crate::{exit, input, output, record, target};

pub fn run(options: &ReplayOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    begin(options, "threadbare replay");
    let clip = TrustedClip::open(options, Builder::Compiler)?;
    let given = match (&options.stdin, &clip.origin().input) {
        (Some(path), _) => Some(input::read(path)?),
        (None, Some(named)) => Some(input::read_again(named, clip.directory(), &options.clip)?),
        (None, None) => None,
    };
    let subject = target::prepare_clip(&clip, given)?;
    follow(&clip, &subject, options, cancelled)
}

/// From now on the replay is reported, also if it is interrupted.
pub fn begin(options: &ReplayOptions, command: &'static str) {
    interrupt::begin(options.output.reporter(command), Due::replay(options.clip.clone()));
}

/// Runs the clip on a program that is ready.
pub fn follow(
    clip: &TrustedClip,
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
    let replay = replay(clip.clip(), options.clip.clone(), subject, &limits, options.times, &mut emit)?;
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
