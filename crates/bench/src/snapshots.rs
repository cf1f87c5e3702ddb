//! A plan that shares most of its beginning with an earlier one, from the start and from a snapshot.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use threadbare_executor::{Keep, Limits, Target, Worker, learn};
use threadbare_trace::{Plan, Policy, Turns};

use crate::build::{self, INSTRUMENTED};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Additions in each of two threads: two events each.
const ADDITIONS: &str = "2500";
/// Plans that are measured.
const PLANS: u64 = 60;
/// Of the events of the first run, so many hundredths are shared.
const SHARED: u64 = 90;

pub fn run() -> Result<bool> {
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("working");
    let source = build::root().join("crates/bench/programs/working.c");
    build::compile(&source, &program, &[INSTRUMENTED, &["-O1"]].concat())?;
    println!("plans that share {SHARED} % of the events of an earlier run");
    let mut same = true;
    for rounds in ["0", "400", "4000"] {
        same &= measure(&program, rounds)?;
    }
    Ok(same)
}

fn measure(program: &Path, rounds: &str) -> Result<bool> {
    let target = Target {
        program: program.to_owned(),
        arguments: vec![ADDITIONS.into(), rounds.into()],
        ..Target::default()
    };
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let (mut plain, mut keeping) = (Worker::start(&target, &limits)?, Worker::start(&target, &limits)?);
    keeping.keep_snapshots(Some(Keep::default()));
    let mut plan = Plan { policy: Policy::Random { seed: 1 }, ..Plan::default() };
    learn(&mut plain, &mut plan)?;
    let (turns, events) = {
        let run = plain.run(&plan)?;
        (run.turns(), run.events())
    };
    // Twice: before the first run, nothing is known of where snapshots are worth having.
    for _ in 0..2 {
        keeping.run(&plan)?;
    }
    plan.turns = beginning(&turns, SHARED);
    let (mut slow, mut fast, mut same) = (Vec::new(), Vec::new(), 0);
    for seed in 2..2 + PLANS {
        plan.policy = Policy::Random { seed };
        let start = Instant::now();
        let expected = plain.run(&plan)?.bytes().to_vec();
        slow.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let run = keeping.run(&plan)?;
        fast.push(start.elapsed().as_secs_f64());
        same += u64::from(run.bytes() == expected);
    }
    let (slow, fast) = (crate::engine::median(slow), crate::engine::median(fast));
    println!(
        "  {events} events, {rounds:>4} rounds of work between two   from the start {:6.2} ms, from a snapshot \
         {:6.2} ms: {:4.1} times as fast (goal 5)   {same} of {PLANS} traces the same",
        slow * 1e3,
        fast * 1e3,
        slow / fast
    );
    Ok(same == PLANS)
}

/// The first `percent` of the turns.
fn beginning(turns: &[Turns], percent: u64) -> Vec<Turns> {
    let all = Turns::total(turns);
    let mut left = all * percent / 100;
    let mut shared = Vec::new();
    for turns in turns {
        let count = left.min(u64::from(turns.count)) as u32;
        shared.push(Turns { count, ..*turns });
        left -= u64::from(count);
        if left == 0 {
            break;
        }
    }
    shared
}
