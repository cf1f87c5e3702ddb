//! `threadbare record`: one run, kept.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_executor::{RunError, Worker};
use threadbare_trace::{Plan, Policy, Trace, format};

use crate::arguments::{RecordOptions, Schedule};
use crate::exit;
use crate::problem::Problem;
use crate::{screen, target};

/// Runs that find out what is shared, before the one that is kept.
pub const LEARNING_RUNS: u64 = 4;

pub fn run(options: &RecordOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let ready = target::prepare(&options.program)?;
    let limits = target::limits(&options.program.limits, cancelled);
    let mut worker = Worker::start(&ready.target, &limits)?;
    let mut plan = Plan {
        max_events: options.program.limits.max_events,
        seed: options.program.seed,
        functions: options.functions,
        ..Plan::default()
    };
    learn(&mut worker, &mut plan)?;
    plan.policy = policy(options.schedule, options.program.seed);
    let run = worker.run(&plan)?;
    print!("{}", run.output(u64::MAX));
    let trace = run.trace();
    write(&trace, &options.out)?;
    println!(
        "{}: {} events, {} threads, {}",
        options.out.display(),
        trace.events.len(),
        trace.threads.len(),
        screen::ending(&trace)
    );
    let failed = matches!(trace.end, threadbare_trace::End::Failed { .. });
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

/// Finds out what memory is shared, from a few runs.
pub fn learn(worker: &mut Worker, plan: &mut Plan) -> Result<(), RunError> {
    for number in 0..LEARNING_RUNS {
        let policy = if number == 0 {
            Policy::RunToBlock
        } else {
            Policy::Random { seed: plan.seed.wrapping_add(number) }
        };
        let learning = Plan { policy, learn: true, ..plan.clone() };
        let learnt = worker.run(&learning)?.learnt();
        plan.tracked.extend(learnt);
    }
    Ok(())
}

/// Writes a trace file.
pub fn write(trace: &Trace, path: &Path) -> Result<(), Problem> {
    let written = File::create(path).map(BufWriter::new).and_then(|mut file| {
        format::write(trace, &mut file)?;
        file.flush()
    });
    written.map_err(|error| Problem::file("write", path, error))
}
