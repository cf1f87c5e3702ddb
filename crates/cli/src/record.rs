//! `threadbare record`: records one run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_executor::{Worker, learn};
use threadbare_formats::trace_file;
use threadbare_hunt::ending::stopped_at;
use threadbare_hunt::{Event, atomic_write};
use threadbare_trace::{Plan, Policy, Trace};

use crate::arguments::{RecordOptions, Schedule};
use crate::exit;
use crate::interrupt::{self, Due};
use crate::output;
use crate::problem::Problem;
use crate::target;

pub fn run(options: &RecordOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let ready = target::prepare(&options.program.target, &options.program.launch, Path::new(""))?;
    let run = &options.program.launch.run;
    let limits = target::limits(run, cancelled);
    let mut worker = Worker::start(&ready.target, &limits)?;
    let mut plan = Plan {
        max_events: run.max_events,
        seed: run.seed,
        spurious: options.program.spurious_wakeups,
        functions: options.functions,
        ..Plan::default()
    };
    learn(&mut worker, &mut plan)?;
    plan.policy = policy(options.schedule, run.seed);
    let run = worker.run(&plan)?;
    interrupt::begin(threadbare_report::text("threadbare replay"), Due::Nothing);
    interrupt::report(&Event::Output(&run.output(u64::MAX))).map_err(output::problem)?;
    let (trace, ended) = (run.trace(), run.ended().clone());
    write(&trace, &options.out)?;
    let stopped_at = stopped_at(&ended, &trace.threads, worker.program());
    let recorded = Event::Recorded { file: &options.out, trace: &trace, stopped_at: stopped_at.as_deref() };
    interrupt::report(&recorded).map_err(output::problem)?;
    let failed = trace.end.failure().is_some();
    Ok(if failed { exit::FOUND } else { exit::NOTHING_FOUND })
}

/// The policy that the user asks for.
pub fn policy(schedule: Schedule, seed: u64) -> Policy {
    match schedule {
        Schedule::RunToBlock => Policy::RunToBlock,
        Schedule::Random => Policy::Random { seed },
        Schedule::Priorities => Policy::Priorities { seed, changes: Vec::new() },
    }
}

/// Writes a trace file.
pub fn write(trace: &Trace, path: &Path) -> Result<(), Problem> {
    let written = atomic_write::write(path, |mut out| trace_file::write(trace, &mut out));
    written.map_err(|error| Problem::file("write", path, error))
}
