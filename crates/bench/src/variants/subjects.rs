//! Every subject that is small enough to exhaust: test cases of the three criteria, and whether a race is lost.

use std::time::Duration;

use threadbare_executor::{Limits, Target, Worker};

use super::{Criterion, Result, explore};
use crate::rank::compile;
use crate::subjects::all;

pub fn run(names: &[String], max_runs: u64) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!(
        "\n{:<18} {:>13} {:>8} {:>16} {:>7} {:>6} {:>5}",
        "subject", "reachability", "tpair", "race-equivalent", "groups", "races", "lost"
    );
    let mut good = true;
    for subject in all()?.values().filter(|subject| names.is_empty() || names.contains(&subject.name)) {
        let program = compile(&subject.name, directory.path(), &[])?;
        let limits = Limits { time: Duration::from_secs(2), ..Limits::default() };
        let Ok(mut worker) = Worker::start(&Target { program, ..Target::default() }, &limits) else {
            continue;
        };
        let all = explore(&mut worker, Criterion::Reachability, max_runs)?;
        if !all.ended {
            println!("{:<18} {:>13}", subject.name, all.text());
            continue;
        }
        let pairs = explore(&mut worker, Criterion::ThreadPairs, max_runs)?;
        let own = explore(&mut worker, Criterion::RaceEquivalence { branches_only: false }, max_runs)?;
        let lost = all.races.difference(&own.races).count();
        good &= lost == 0;
        println!(
            "{:<18} {:>13} {:>8} {:>16} {:>7} {:>6} {lost:>5}{}",
            subject.name,
            all.text(),
            pairs.text(),
            own.text(),
            own.classes,
            all.races.len(),
            if all.failed && !own.failed { "  without the failure" } else { "" },
        );
    }
    Ok(good)
}
