//! The paper's Table V: test cases, next to the paper's.
//!
//! The loops of netmap and jobo have two rounds here. Without an end, as in the paper, the first two criteria have no end
//! either.

use super::{Criterion, Result, explore};
use crate::rank::{compile, worker};

/// Subject, arguments, and the paper's test cases for reachability (where it says them), TPAIR and its own method.
const ROWS: [(&str, &str, &str, &str, u64); 5] = [
    ("pool", "", "147", "23", 2),
    ("telnet", "", "", "66", 0),
    ("netmap", "", "", "infinite", 5),
    ("jobo", "", "", "infinite", 2),
    ("derby", "29", "", "1453539", 58),
];

pub fn run(max_runs: u64) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!(
        "{:<10} {:>24} {:>24} {:>24}",
        "", "reachability (paper)", "tpair (paper)", "race-equivalent (paper)"
    );
    let mut good = true;
    for (subject, arguments, reachability, pairs, race_equivalent) in ROWS {
        let program = compile(subject, directory.path(), &[])?;
        let mut worker = worker(&program, arguments)?;
        let all = explore(&mut worker, Criterion::Reachability, max_runs)?;
        let by_pairs = explore(&mut worker, Criterion::ThreadPairs, max_runs)?;
        let own = explore(&mut worker, Criterion::RaceEquivalence { branches_only: true }, max_runs)?;
        good &= own.ended && own.test_cases() <= race_equivalent;
        println!(
            "{subject:<10} {:>24} {:>24} {:>24}",
            format!("{} ({reachability})", all.text()),
            format!("{} ({pairs})", by_pairs.text()),
            format!("{} ({race_equivalent})", own.text()),
        );
    }
    Ok(good)
}
