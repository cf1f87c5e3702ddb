//! `threadbare replay`: a clip, followed event by event.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use threadbare_executor::{Divergence, Ended, Limits, Origin, Worker, compare, is_as_promised, resolve};
use threadbare_formats::Clip;
use threadbare_trace::Trace;

use crate::arguments::ReplayOptions;
use crate::exit;
use crate::output::{self, say};
use crate::problem::Problem;
use crate::target::{self, Ready};
use crate::{input, record, screen};

/// What a replay came to. Serialises to its line of `--json`.
#[derive(Serialize)]
struct Replay {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    clip: String,
    runs: u64,
    /// Runs that ended as the clip says.
    reproduced: u64,
    /// The first event that was not as the clip says, if any.
    diverged_at: Option<usize>,
}

pub fn run(options: &ReplayOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
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
    let ready = target::prepare_origin(origin, given)?;
    follow(&clip, &ready, options, cancelled)
}

pub fn read(path: &Path) -> Result<Clip, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::file("read", path, error))?;
    Clip::read(&bytes)
        .map_err(|error| Problem::file("read", path, error).help("clips are written by `threadbare hunt`"))
}

/// Runs the clip on a program that is ready.
pub fn follow(
    clip: &Clip,
    ready: &Ready,
    options: &ReplayOptions,
    cancelled: &Arc<AtomicBool>,
) -> Result<u8, Problem> {
    let limits = Limits {
        time: Duration::from_secs(options.time_limit),
        cancelled: Arc::clone(cancelled),
        ..Limits::default()
    };
    let mut worker = Worker::start(&ready.target, &limits)?;
    let plan = resolve(clip, worker.program()).map_err(|lost| {
        Problem::new(format!("the clip no longer fits: in step {}, {lost}", lost.step + 1))
            .help("the program has changed since; hunt again")
    })?;
    let mut replay = Replay {
        kind_of_line: "replay",
        clip: options.clip.display().to_string(),
        runs: 0,
        reproduced: 0,
        diverged_at: None,
    };
    let mut first: Option<Trace> = None;
    let mut before: Option<(Vec<u8>, Ended)> = None;
    let mut as_before = false;
    for _ in 0..options.times {
        let run = worker.run(&plan)?;
        replay.runs += 1;
        // Byte for byte what the run before was: so is what is to be said of it.
        if before.as_ref().is_some_and(|(bytes, ended)| run.bytes() == bytes && run.ended() == ended) {
            replay.reproduced += u64::from(as_before);
            continue;
        }
        before = Some((run.bytes().to_vec(), run.ended().clone()));
        let trace = run.trace();
        let divergence = compare(clip, worker.program(), &trace);
        as_before = divergence.is_none() && is_as_promised(clip, &trace);
        replay.reproduced += u64::from(as_before);
        if let (Some(divergence), None) = (&divergence, replay.diverged_at) {
            replay.diverged_at = Some(divergence.event);
            if !options.json {
                print_divergence(divergence, clip, &trace)?;
            }
        }
        first.get_or_insert(trace);
    }
    if let (Some(path), Some(trace)) = (&options.trace, &first) {
        record::write(trace, path)?;
    }
    report(options, &replay, first.as_ref())?;
    Ok(match (replay.diverged_at, replay.reproduced) {
        (Some(_), _) => exit::COULD_NOT_RUN,
        (None, 0) => exit::NOTHING_FOUND,
        (None, _) => exit::FOUND,
    })
}

fn print_divergence(divergence: &Divergence, clip: &Clip, trace: &Trace) -> Result<(), Problem> {
    say!("the clip no longer fits: the run diverges at event {}", divergence.event)?;
    match &divergence.expected {
        Some(expected) => say!("  the clip has  {expected}"),
        None => say!("  the clip has  no more events"),
    }?;
    match &divergence.actual {
        Some(actual) => say!("  the run has   {actual}"),
        None => say!("  the run has   no more events: {}", screen::ending(trace)),
    }?;
    if is_as_promised(clip, trace) {
        say!("  the failure still happens")?;
    }
    Ok(())
}

fn report(options: &ReplayOptions, replay: &Replay, first: Option<&Trace>) -> Result<(), Problem> {
    if options.json {
        return output::print_json(replay);
    }
    match first {
        Some(trace) if replay.diverged_at.is_none() => say!("{}", screen::view(trace))?,
        _ => {}
    }
    say!("reproduced in {} of {} runs", replay.reproduced, replay.runs)
}
