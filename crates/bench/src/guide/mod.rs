//! Guided test on the subjects of its paper (Rungta and Mercer), next to the paper's Tables 1 and 2 and Figure 5.

mod figure;
mod subjects;
mod trials;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use subjects::{ROWS, Row, Subject};
use trials::{Bounds, Spread, Trials};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Args)]
pub struct Options {
    /// Trials of each subject with the distance heuristic
    #[arg(long, default_value_t = 100)]
    trials: u64,
    /// Trials of each subject with each of the other searches
    #[arg(long, default_value_t = 20)]
    others: u64,
    /// Seconds for each trial, at most
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// States of each trial, at most
    #[arg(long, default_value_t = 1_000_000)]
    states: u64,
    /// These searches only
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Search>,
    /// Write Figure 5, states against the number of locations, as SVG into this directory, and do nothing else
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
    /// These subjects only
    names: Vec<String>,
}

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// Two tiers: locations passed, then distance
    Nearest,
    /// Two tiers, and the second is the same for all threads
    Constant,
    /// Two tiers, and the second prefers the threads that the sequence is about
    Prefer,
    /// Random depth-first, without the sequence
    Random,
}

impl Search {
    const ALL: [Search; 4] = [Search::Nearest, Search::Constant, Search::Prefer, Search::Random];

    fn name(self) -> &'static str {
        match self {
            Search::Nearest => "e-FCA",
            Search::Constant => "constant",
            Search::Prefer => "prefer",
            Search::Random => "random",
        }
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    if let Some(figure) = &options.figure {
        return figure::run(directory.path(), figure, options.trials);
    }
    println!(
        "{:<20} {:<9} {:>5} {:>6}   {:>9} {:>9} {:>9}   {:>9}   {:>5} {:>5} {:>5} {:>7}   {:>9} {:>9} {:>7} {:>7}",
        "subject",
        "search",
        "found",
        "paper",
        "min",
        "mean",
        "max",
        "paper",
        "min",
        "mean",
        "max",
        "paper",
        "ms",
        "states/s",
        "MiB",
        "ratio"
    );
    let mut good = true;
    for row in ROWS {
        if options.names.is_empty() || options.names.iter().any(|name| name == row.subject) {
            good &= run_row(row, directory.path(), options)?;
        }
    }
    Ok(good)
}

fn run_row(row: &Row, directory: &std::path::Path, options: &Options) -> Result<bool> {
    let subject = Subject::prepare(row, directory)?;
    let bounds = Bounds { time: Duration::from_secs(options.seconds), states: options.states };
    let mut nearest = None;
    let mut good = true;
    for search in Search::ALL {
        if !options.only.is_empty() && !options.only.contains(&search) {
            continue;
        }
        let count = if search == Search::Nearest { options.trials } else { options.others };
        let trials = Trials::make(&subject, search, count, bounds)?;
        let states = trials.states();
        if search == Search::Nearest {
            good &= trials.found_share() == 1.0 && row.states.is_none_or(|paper| states.mean < paper as f64);
            nearest = Some(states.mean);
        }
        let ratio = nearest.filter(|_| search != Search::Nearest).map(|nearest| states.mean / nearest);
        print_line(row, search, &trials, states, ratio);
    }
    Ok(good)
}

fn print_line(row: &Row, search: Search, trials: &Trials, states: Spread, ratio: Option<f64>) {
    let number = |number: Option<f64>, decimals: usize| {
        number.map_or_else(|| "-".to_owned(), |number| format!("{number:.decimals$}"))
    };
    let (depth, paper) = (trials.depths(), row.paper(search));
    println!(
        "{:<20} {:<9} {:>5.2} {:>6}   {:>9.0} {:>9.1} {:>9.0}   {:>9}   {:>5.0} {:>5.1} {:>5.0} {:>7}   {:>9.1} {:>9.0} {:>7.0} {:>7}",
        row.name(),
        search.name(),
        trials.found_share(),
        number(paper.found, 2),
        states.min,
        states.mean,
        states.max,
        number(paper.states, 0),
        depth.min,
        depth.mean,
        depth.max,
        number(paper.depth, 0),
        trials.milliseconds(),
        trials.states_per_second(),
        trials.mebibytes(),
        number(ratio, 1),
    );
}
