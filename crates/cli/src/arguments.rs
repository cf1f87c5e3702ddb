//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use threadbare_rank::{NAMES, Tuple};

/// Finds the races, deadlocks and crashes of a multithreaded program that depend on timing, and replays each
/// of them every time.
///
/// The program is an ordinary one, built with -fsanitize=thread; its source is not changed.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the program under many schedules and show what goes wrong
    Hunt(HuntOptions),
    /// Predict from one run what other schedules of it would show, and confirm each by a second run
    Predict(PredictOptions),
    /// Run the program under the schedules of one strategy, likely ones first, until all were tried
    Rank(RankOptions),
    /// Run the program once and keep the trace
    Record(RecordOptions),
    /// Run a clip: the same failure, every time
    Replay(ReplayOptions),
    /// Look at a recorded trace, or turn it into another format
    Trace(TraceOptions),
    /// Compile C for Threadbare: make CC="threadbare cc"
    #[command(disable_help_flag = true)]
    Cc(CompilerOptions),
    /// Compile C++ for Threadbare: make CXX="threadbare c++"
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(CompilerOptions),
}

/// What to run, and how.
#[derive(Args, Clone, Debug)]
pub struct ProgramOptions {
    /// A program built with -fsanitize=thread, or a C or C++ file
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,

    #[command(flatten)]
    pub launch: LaunchOptions,

    /// Let this many waits for a condition end in a run though nobody notified them, as POSIX allows
    #[arg(long, default_value_t = 0, default_missing_value = "1", num_args = 0..=1, require_equals = true,
          value_name = "N")]
    pub spurious_wakeups: u32,
}

/// With what to run a program, and within what limits.
#[derive(Args, Clone, Debug)]
pub struct LaunchOptions {
    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,

    /// What the program reads as its standard input; `-` for all that this command has on its own [default:
    /// nothing]
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,

    /// A further argument for the compiler, when TARGET is a source file; may be repeated
    #[arg(long = "cc-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub compiler_arguments: Vec<String>,

    #[command(flatten)]
    pub limits: LimitOptions,

    /// Seed of all choices: the same seed makes the same runs
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

#[derive(Args, Clone, Debug)]
pub struct LimitOptions {
    /// End a run after this many events; it is a livelock if nothing moves any more by then
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(100..=threadbare_wire::MAX_EVENTS))]
    pub max_events: u64,

    /// End a run after this many seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: u64,

    /// End a run that uses more than this many MiB of memory
    #[arg(long, default_value_t = 4096, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    pub memory_limit: u64,
}

#[derive(Args)]
pub struct HuntOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    #[command(flatten)]
    pub search: SearchOptions,
}

#[derive(Args)]
pub struct RankOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    #[command(flatten)]
    pub search: SearchOptions,

    /// Who decides which schedules are tried, and in which order
    #[arg(long, default_value = "rank", value_name = "NAME", value_parser = strategy_parser())]
    pub strategy: &'static str,

    /// For preemption-bound and delay-bound: the most of these in a schedule
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub bound: u32,

    /// For rank: search this part next, instead of the paper's order; preemptions, variables (or `all`), threads,
    /// repeats, such as (1,all,2,1); may be repeated
    #[arg(long = "tuple", value_name = "(C,V,T,L)")]
    pub tuples: Vec<Tuple>,

    /// Memory for what is still to be tried, in MiB; when it is used up, the least likely is given up
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    pub search_memory: u64,
}

/// Takes the names of strategies, and shows them to who asks.
fn strategy_parser() -> impl TypedValueParser<Value = &'static str> {
    let named = |name: String| *NAMES.iter().find(|known| **known == name).unwrap_or(&NAMES[0]);
    PossibleValuesParser::new(NAMES).map(named)
}

/// How to search, and where to put what is found.
#[derive(Args, Clone, Debug)]
pub struct SearchOptions {
    /// When to stop: after a time (30s, 5m, 1h), a number of runs (1000runs), or whichever of both comes first
    /// (1000runs,30s) [default: 2000runs; for each test of a cargo project 200runs,60s]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,

    /// Stop at the first finding
    #[arg(long)]
    pub first: bool,

    /// Report data races too, whether they make anything fail or not
    #[arg(long)]
    pub races: bool,

    /// Runs at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: Option<u32>,

    /// Where clips are written
    #[arg(long, default_value = "threadbare-out", value_name = "DIR")]
    pub out: PathBuf,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub json: bool,
}

/// How long to hunt: until any of these limits is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub runs: Option<u64>,
    pub time: Option<Duration>,
}

impl Budget {
    pub const fn runs(runs: u64) -> Budget {
        Budget { runs: Some(runs), time: None }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        let mut budget = Budget { runs: None, time: None };
        for part in text.split(',') {
            budget.limit(part).ok_or_else(|| wrong_budget(text))?;
        }
        Ok(budget)
    }
}

impl Budget {
    /// Takes over a limit; `None` if it is none, or one of its kind is there already.
    fn limit(&mut self, text: &str) -> Option<()> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok().filter(|&number| number > 0)?;
        let unit = match unit {
            "runs" | "run" => return self.runs.replace(number).is_none().then_some(()),
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        /// More would be beyond what clocks can say.
        const LONGEST: u64 = 365 * 24 * 3600;
        let seconds = number.checked_mul(unit).filter(|&seconds| seconds <= LONGEST)?;
        self.time.replace(Duration::from_secs(seconds)).is_none().then_some(())
    }
}

fn wrong_budget(text: &str) -> String {
    format!(
        "`{text}` is neither a time such as 30s, 5m or 1h (up to a year) nor a number of runs such as 1000runs, \
         nor both with a comma"
    )
}

#[derive(Args)]
pub struct PredictOptions {
    /// A program built with -fsanitize=thread, or a C or C++ file
    #[arg(value_name = "TARGET", required_unless_present = "trace", conflicts_with = "trace")]
    pub target: Option<PathBuf>,

    /// Predict from this trace instead, without a program: as `record` writes it, or in RAPID's STD or (by the
    /// ending .csv) CSV format
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    #[command(flatten)]
    pub launch: LaunchOptions,

    /// Who runs when, in the run that is predicted from
    #[arg(long, value_enum, default_value_t = Schedule::RunToBlock)]
    pub schedule: Schedule,

    /// Predict from so many runs: the first, those that showed something, then random ones
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: u64,

    /// A file with further patterns to look for; may be repeated
    #[arg(long, value_name = "FILE")]
    pub patterns: Vec<PathBuf>,

    /// Where clips are written
    #[arg(long, default_value = "threadbare-out", value_name = "DIR")]
    pub out: PathBuf,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RecordOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    /// Who runs when
    #[arg(long, value_enum, default_value_t = Schedule::RunToBlock)]
    pub schedule: Schedule,

    /// Record function entry and exit too
    #[arg(long)]
    pub functions: bool,

    /// Where the trace is written
    #[arg(long, short, default_value = "trace.tbt", value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Schedule {
    /// Each thread until it blocks, first created first
    RunToBlock,
    /// Any thread at every step
    Random,
    /// By random priorities
    Priorities,
}

#[derive(Args)]
pub struct ReplayOptions {
    /// A clip, as `hunt` writes it
    pub clip: PathBuf,

    /// Run it this many times
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,

    /// Run this program instead of the one that the clip names
    #[arg(long, value_name = "TARGET")]
    pub target: Option<PathBuf>,

    /// Give the program this as standard input instead of what the clip names; `-` for this command's own
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,

    /// Keep the trace of the run
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// End a run after this many seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: u64,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct TraceOptions {
    #[command(subcommand)]
    pub command: TraceCommand,
}

#[derive(Subcommand)]
pub enum TraceCommand {
    /// Show a trace in columns, or its events line by line
    Show {
        /// A trace, as `record` writes it
        file: PathBuf,
        /// Every event on a line of its own
        #[arg(long)]
        events: bool,
    },
    /// Write a trace in a format that other tools read
    Export {
        /// A trace, as `record` writes it
        file: PathBuf,
        #[arg(long, value_enum)]
        format: ExportFormat,
        /// Where to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ExportFormat {
    /// RAPID's STD format
    Std,
    /// RAPID's CSV format
    Csv,
    /// One JSON object a line
    Json,
}

#[derive(Args)]
pub struct CompilerOptions {
    /// Passed on to the compiler
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn budgets_are_times_or_runs() {
        let time = |seconds| Budget { runs: None, time: Some(Duration::from_secs(seconds)) };
        assert_eq!("30s".parse(), Ok(time(30)));
        assert_eq!("2m".parse(), Ok(time(120)));
        assert_eq!("1000runs".parse(), Ok(Budget::runs(1000)));
        assert_eq!("1000runs,30s".parse(), Ok(Budget { runs: Some(1000), ..time(30) }));
        assert_eq!("30s,1000runs".parse(), "1000runs,30s".parse::<Budget>());
        for text in [
            "",
            "30",
            "0runs",
            "0s",
            "9000h",
            "s",
            "-1s",
            "10 runs",
            "99999999999999999999s",
            "18446744073709551615h",
            "30s,",
            "30s,1m",
            "1runs,2runs",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text:?} was accepted");
        }
    }
}
