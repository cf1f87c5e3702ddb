//! What schedules of the ranked search cost, against threads and events.

use std::time::Instant;

use super::{Result, compile, resident, search, strategy, worker};

/// Schedules that are measured.
const SCHEDULES: u64 = 200;
/// Subjects that do not fail while they are measured, with their arguments: more threads, then more events.
const SIZES: [(&str, &str); 6] = [
    ("account_total", "2 1"),
    ("account_total", "10 1"),
    ("account_total", "50 1"),
    ("account_total", "100 1"),
    ("account_total", "2 100"),
    ("account_total", "2 1000"),
];

pub fn run() -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!(
        "{:<22} {:>7} {:>7} {:>9} {:>9} {:>8}",
        "subject", "threads", "events", "schedules", "per s", "MiB"
    );
    for (subject, arguments) in SIZES {
        let program = compile(subject, directory.path(), &["-DFIXED"])?;
        let mut worker = worker(&program, arguments)?;
        let mut strategy = strategy("rank", 0, &worker)?;
        let (start, before) = (Instant::now(), resident());
        let search = search(&mut worker, strategy.as_mut(), SCHEDULES)?;
        println!(
            "{:<22} {:>7} {:>7} {:>9} {:>9.0} {:>8}",
            format!("{subject} {arguments}"),
            search.threads,
            search.events,
            search.runs,
            search.runs as f64 / start.elapsed().as_secs_f64(),
            resident().saturating_sub(before) >> 20,
        );
        if search.dropped > 0 {
            println!("{:<22} {} schedules were given up for want of memory", "", search.dropped);
        }
    }
    Ok(true)
}
