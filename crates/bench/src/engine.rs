//! What runs, switches and accesses cost.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use threadbare_executor::{Limits, Target, Worker, learn};
use threadbare_trace::{End, Plan, Policy};

use crate::build::{self, INSTRUMENTED};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs in one measurement of executions.
const RUNS: u64 = 1500;
/// Operations in one measurement of their cost.
const OPERATIONS: u64 = 400_000;
/// Measurements taken in turn; the median of each counts.
const ROUNDS: usize = 7;

pub fn run() -> Result<bool> {
    let directory = tempfile::tempdir()?;
    executions(directory.path())?;
    operations(directory.path())?;
    Ok(true)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn worker(program: &Path, arguments: &[&str]) -> Result<Worker> {
    let target = Target {
        program: program.to_owned(),
        arguments: arguments.iter().map(Into::into).collect(),
        ..Target::default()
    };
    Ok(Worker::start(&target, &Limits { time: Duration::from_secs(60), ..Limits::default() })?)
}

/// A plan that knows what is shared.
fn learnt_plan(worker: &mut Worker) -> Result<Plan> {
    let mut plan = Plan { max_events: 10_000_000, ..Plan::default() };
    learn(worker, &mut plan)?;
    Ok(plan)
}

/// Executions a second of `count` workers side by side, on random schedules.
fn rate(program: &Path, count: usize) -> Result<f64> {
    let make = || -> Result<(Worker, Plan)> {
        let mut worker = worker(program, &[])?;
        let plan = learnt_plan(&mut worker)?;
        Ok((worker, plan))
    };
    let barrier = std::sync::Barrier::new(count);
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| -> std::result::Result<Duration, String> {
                    let made = make().map_err(|error| error.to_string());
                    barrier.wait();
                    let (mut worker, mut plan) = made?;
                    let start = Instant::now();
                    for seed in 0..RUNS {
                        plan.policy = Policy::Random { seed };
                        let run = worker.run(&plan).map_err(|error| error.to_string())?;
                        if *run.ended() != End::Finished {
                            return Err(format!("unexpected end: {:?}", run.ended()));
                        }
                    }
                    Ok(start.elapsed())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<std::result::Result<_, _>>()
    })?;
    let longest = times.into_iter().max().unwrap_or_default();
    Ok(count as f64 * RUNS as f64 / longest.as_secs_f64())
}

fn executions(directory: &Path) -> Result<()> {
    let source = build::root().join("crates/bench/programs/three.c");
    let (bare, tested) = (directory.join("bare"), directory.join("tested"));
    build::compile(&source, &bare, &["-O1"])?;
    build::compile(&source, &tested, &[INSTRUMENTED, &["-O1"]].concat())?;
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let status = Command::new(&bare).arg(RUNS.to_string()).status()?;
        if !status.success() {
            return Err("the bare program failed".into());
        }
        rates[0].push(RUNS as f64 / start.elapsed().as_secs_f64());
        rates[1].push(rate(&tested, 1)?);
        rates[2].push(rate(&tested, 2)?);
    }
    let [bare, one, two] = rates.map(median);
    println!("executions of a program with three threads");
    println!("  bare fork and run, uninstrumented   {bare:8.0} /s");
    println!(
        "  one worker                          {one:8.0} /s   ratio {:.2} (goal 0.50 or better)",
        one / bare
    );
    println!("  two workers                         {two:8.0} /s   ratio {:.2} to one worker", two / one);
    Ok(())
}

/// Seconds of the fastest of a few runs: what it costs when nothing disturbs it.
fn seconds(worker: &mut Worker, plan: &Plan) -> Result<(f64, u64)> {
    let (mut best, mut events) = (f64::MAX, 0);
    for _ in 0..3 {
        let start = Instant::now();
        let run = worker.run(plan)?;
        best = best.min(start.elapsed().as_secs_f64());
        events = run.events();
        if *run.ended() != End::Finished {
            return Err(format!("unexpected end: {:?}", run.ended()).into());
        }
    }
    Ok((best, events))
}

/// Nanoseconds for each of `OPERATIONS` operations named `what`, less what a run without any costs. Also the
/// events that there were.
fn cost(program: &Path, what: &str) -> Result<(f64, u64)> {
    let mut none = worker(program, &[what, "0"])?;
    let mut many = worker(program, &[what, &OPERATIONS.to_string()])?;
    let (plan_none, plan_many) = (learnt_plan(&mut none)?, learnt_plan(&mut many)?);
    let (base, _) = seconds(&mut none, &plan_none)?;
    let (full, events) = seconds(&mut many, &plan_many)?;
    Ok(((full - base) * 1e9 / OPERATIONS as f64, events))
}

/// Nanoseconds of a private access in the same program without instrumentation.
fn bare_cost(program: &Path) -> Result<f64> {
    const TIMES: u64 = 100;
    let time = |count: u64| -> Result<f64> {
        let mut best = f64::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            Command::new(program).args(["private", &count.to_string()]).status()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    };
    Ok((time(OPERATIONS * TIMES)? - time(0)?) * 1e9 / (OPERATIONS * TIMES) as f64)
}

fn operations(directory: &Path) -> Result<()> {
    let source = build::root().join("crates/bench/programs/loops.c");
    let (bare, tested) = (directory.join("loops-bare"), directory.join("loops"));
    build::compile(&source, &bare, &["-O1"])?;
    build::compile(&source, &tested, &[INSTRUMENTED, &["-O1"]].concat())?;
    let (mut private, mut shared, mut switch, mut native) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        native.push(bare_cost(&bare)?);
        private.push(cost(&tested, "private")?.0);
        let (nanoseconds, events) = cost(&tested, "shared")?;
        if events < OPERATIONS {
            return Err("accesses to shared memory were not recorded".into());
        }
        shared.push(nanoseconds);
        // Two threads yield to each other: as many switches as both make calls.
        switch.push(cost(&tested, "yield")?.0 / 2.0);
    }
    let (native, private, shared, switch) = (median(native), median(private), median(shared), median(switch));
    println!("costs, in nanoseconds");
    println!("  access, uninstrumented              {native:8.1}");
    println!("  access to memory that is not shared {private:8.1}      (goal 5)");
    println!(
        "  access to shared memory             {shared:8.1}      (goal 60)   {:.0} times a private one",
        shared / private
    );
    println!(
        "  switch, with its event              {switch:8.1}      (goal 200)  {:.0} times a private access",
        switch / private
    );
    Ok(())
}
