//! What prediction costs in time and memory, on generated traces.

pub(crate) mod generate;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use threadbare_predict::{History, Predictor, deadlock, pattern, search};
use threadbare_search::reorder::closure::Closure;
use threadbare_search::reorder::communication;
use threadbare_search::reorder::lockset::Locksets;
use threadbare_search::reorder::order::Order;
use threadbare_trace::Trace;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The paper's largest trace, which took it 6.2 s and 1.45 s a schedule.
const DERBY: usize = 447_392;
const LENGTHS: [usize; 4] = [100_000, DERBY, 1_000_000, 10_000_000];
/// Seconds for all analyses of the trace above, and MiB for locksets and order of the longest.
const DERBY_GOAL: f64 = 0.3;
const MEMORY_GOAL: f64 = 1024.0;

pub fn run(max_events: usize) -> Result<bool> {
    println!("generated traces: {}", generate::DESCRIPTION);
    println!(
        "seconds of processor time, with the most memory in use meanwhile (MiB, the trace itself included)\n"
    );
    println!(
        "{:>10} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14} {:>10} {:>12}",
        "events", "locksets", "+ order", "+ the rest", "search", "sound", "deadlocks", "in all", "a schedule"
    );
    let mut good = true;
    for events in LENGTHS.into_iter().filter(|&events| events <= max_events) {
        let trace = generate::trace(events);
        let trace = Arc::new(trace);
        let history = History::new(Arc::clone(&trace))?;
        let phases = analyses(&trace, &history)?;
        let analysis: f64 = phases.iter().map(|phase| phase.seconds).sum();
        print!("{events:>10}");
        for phase in &phases {
            print!(" {:>14}", format!("{:.3} ({:.0})", phase.seconds, phase.memory));
        }
        print!(" {analysis:>10.3}");
        std::io::stdout().flush()?;
        let (predictions, seconds) = schedules(history, phases[3].seconds + phases[5].seconds)?;
        println!(" {:>9.2} ms  {predictions} predictions", seconds * 1e3);
        good &= events != DERBY || analysis <= DERBY_GOAL;
        good &= phases[..2].iter().all(|phase| phase.memory <= MEMORY_GOAL);
    }
    println!(
        "\ngoals: {DERBY} events in {DERBY_GOAL} s; locksets and order of every trace in {MEMORY_GOAL} MiB; {}",
        if good { "met" } else { "MISSED" }
    );
    Ok(good)
}

struct Phase {
    seconds: f64,
    /// MiB.
    memory: f64,
}

fn analyses(trace: &Arc<Trace>, history: &History) -> Result<[Phase; 6]> {
    let (locksets, first) = timed(|| Locksets::of(trace))?;
    let locksets = locksets?;
    let (_, second) = timed(|| {
        let mut edges = communication::edges(trace, &locksets);
        edges.retain(|edge| !edge.observed);
        Order::new(trace, &edges)
    })?;
    drop(locksets);
    // Does both again, and builds the other columns.
    let (_, mut third) = timed(|| History::new(Arc::clone(trace)))?;
    third.seconds = (third.seconds - first.seconds - second.seconds).max(0.0);
    let (_, fourth) = timed(|| search::search(history, &pattern::built_in()))?;
    let (_, fifth) = timed(|| Closure::of(history))?;
    let (_, sixth) = timed(|| deadlock::search(history))?;
    Ok([first, second, third, fourth, fifth, sixth])
}

/// How many predictions there are, and the seconds that the schedule of one takes, with the sound attempt before it and
/// the check after it. `searching` is what finding them takes.
fn schedules(history: History, searching: f64) -> Result<(usize, f64)> {
    let predictor = Predictor::new(history);
    let (predictions, all) = timed(|| predictor.predict(&pattern::built_in()))?;
    let candidates = predictions.list.len() + predictions.infeasible.len();
    Ok((predictions.list.len(), (all.seconds - searching).max(0.0) / candidates.max(1) as f64))
}

/// Processor time of this thread, which does all the work: what else the machine does is not in it.
fn processor_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().ok_or("no schedstat")?.parse()?;
    Ok(nanoseconds / 1e9)
}

/// Runs `work` and measures its time and the most memory that the process had meanwhile.
fn timed<T>(work: impl FnOnce() -> T) -> Result<(T, Phase)> {
    // The kernel forgets the peak there was so far.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let start = processor_seconds()?;
    let value = work();
    let seconds = processor_seconds()? - start;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: f64 = peak.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?.parse()?;
    Ok((value, Phase { seconds, memory: kilobytes / 1024.0 }))
}
