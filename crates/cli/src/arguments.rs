//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use threadbare_guide::{MAX_BACKTRACK, Sequence};
use threadbare_hunt::{Budget, methods};
use threadbare_report::{FORMATS, Format, ReportConfig, WithProgress};
use threadbare_search::{StrategyEntry, Tuple};
use threadbare_trace::ThreadId;

use crate::doctor::DoctorOptions;

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
    /// Run the program once in every class of equivalent interleavings, until none is left
    Explore(ExploreOptions),
    /// Drive the program through given locations, in their order, and show what happens
    Guide(GuideOptions),
    /// Run the program once and keep the trace
    Record(RecordOptions),
    /// Run a clip: the same failure, every time
    Replay(ReplayOptions),
    /// Look at a recorded trace, or turn it into another format
    Trace(TraceOptions),
    /// Check that everything is there and works, and that a program is built as it should be
    Doctor(DoctorOptions),
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

/// The arguments, the input and the limits of a program.
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
    pub run: RunOptions,
}

/// The limits and the seed of each run.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
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

    /// Seed of all choices: the same seed makes the same runs
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
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
    pub strategy: StrategyEntry,

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

#[derive(Args)]
pub struct ExploreOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    #[command(flatten)]
    pub search: SearchOptions,

    #[command(flatten)]
    pub exploration: ExplorationOptions,
}

/// What is explored.
#[derive(Args)]
pub struct ExplorationOptions {
    /// Which interleavings are told apart
    #[arg(long, default_value = "reachability", value_name = "NAME", value_parser = exploration_parser())]
    pub method: StrategyEntry,

    /// For race-equivalent: only reads that decide a branch count, and an array is one variable, as in the paper
    #[arg(long)]
    pub branches_only: bool,

    /// Memory for what is still to be explored, in MiB; when it is used up, the rest is given up
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    pub search_memory: u64,
}

#[derive(Args)]
pub struct GuideOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    #[command(flatten)]
    pub sequences: SequenceOptions,

    /// If the program cannot be driven with the input that it has, try this as its standard input; may be repeated
    #[arg(long, value_name = "FILE")]
    pub or_stdin: Vec<PathBuf>,

    /// If the program cannot be driven with the arguments that it has, try these instead, with blanks between; may be
    /// repeated
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub or_arguments: Vec<String>,

    #[command(flatten)]
    pub search: SearchOptions,
}

/// The locations that a program is driven through, and how.
#[derive(Args)]
pub struct SequenceOptions {
    /// Locations in the order in which a run is to pass them, with commas between: FILE:LINE or a FUNCTION, and @THREAD
    /// behind it for a certain thread (0.1) or for the same thread at several of them (a); {A, B} for two threads that
    /// stand before A and B at the same time; `A between B and C`; may be repeated
    #[arg(long, value_name = "LOCATIONS")]
    pub through: Vec<Sequence>,

    /// A file with stack traces, reports of ThreadSanitizer, or warnings in SARIF or gcc's JSON: each of them is tried;
    /// `-` for standard input; may be repeated
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,

    /// A file of sequences with what is to come of each; may be repeated
    #[arg(long, value_name = "FILE")]
    pub sequences: Vec<PathBuf>,

    /// Which thread goes when none stands before the next location
    #[arg(long, value_enum, default_value_t = GuideBy::Distance)]
    pub by: GuideBy,

    /// Let this thread go instead; may be repeated
    #[arg(long, value_name = "THREAD", conflicts_with = "by")]
    pub prefer: Vec<ThreadId>,

    /// States that the search may go back to, at most
    #[arg(long, default_value_t = MAX_BACKTRACK, value_name = "N")]
    pub max_backtrack: usize,

    /// Try so many different streams of random numbers, one after another: each has its part of the budget
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub vary: u64,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum GuideBy {
    /// The one that is nearest, by the control flow of the program
    Distance,
    /// Any
    Sequence,
}

/// Parses a strategy's name; `--help` lists all.
fn strategy_parser() -> impl TypedValueParser<Value = StrategyEntry> {
    let values = methods::all().map(|entry| PossibleValue::new(entry.name).help(entry.summary));
    PossibleValuesParser::new(values)
        .try_map(|name| methods::by_name(&name).copied().ok_or("no strategy has this name"))
}

/// Parses the name of a strategy that tells classes of interleavings apart; `--help` lists all.
fn exploration_parser() -> impl TypedValueParser<Value = StrategyEntry> {
    let values = methods::explorations().map(|entry| PossibleValue::new(entry.name).help(entry.summary));
    PossibleValuesParser::new(values)
        .try_map(|name| methods::by_name(&name).copied().ok_or("no exploration has this name"))
}

/// Parses an output format's name; `--help` lists all.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.summary));
    PossibleValuesParser::new(values)
        .try_map(|name| threadbare_report::format(&name).copied().ok_or("no format has this name"))
}

/// How to say what was found.
#[derive(Args, Clone)]
pub struct OutputOptions {
    /// Print one JSON object a line instead of text: the same as --format json
    #[arg(long)]
    pub json: bool,

    /// How to print
    #[arg(long, value_name = "NAME", default_value = "text", conflicts_with = "json",
          value_parser = format_parser())]
    pub format: Format,
}

impl OutputOptions {
    /// Writes to standard output, with a progress bar for a person.
    pub fn reporter(&self, replay_command: &'static str) -> WithProgress {
        let json = threadbare_report::format("json").copied();
        let format = json.filter(|_| self.json).unwrap_or(self.format);
        let config = ReportConfig::for_stdout(replay_command);
        WithProgress::new((format.make)(config, threadbare_report::stdout()))
    }
}

/// How to search, and where to put what is found.
#[derive(Args, Clone)]
pub struct SearchOptions {
    /// When to stop: after a time (30s, 1.5m, 1h), a number of runs (1000runs), or whichever of both comes first
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

    #[command(flatten)]
    pub output: OutputOptions,
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

    /// When to stop, as for `hunt` [default: when every prediction has its verdict]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,

    /// Runs at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: Option<u32>,

    /// A file with further patterns to look for; may be repeated
    #[arg(long, value_name = "FILE")]
    pub patterns: Vec<PathBuf>,

    /// Where clips are written
    #[arg(long, default_value = "threadbare-out", value_name = "DIR")]
    pub out: PathBuf,

    #[command(flatten)]
    pub output: OutputOptions,
}

impl PredictOptions {
    /// The options that `predict` shares with the other searches. Those that it does not have are off.
    pub fn search(&self) -> SearchOptions {
        SearchOptions {
            budget: self.budget,
            first: false,
            races: false,
            jobs: self.jobs,
            out: self.out.clone(),
            output: self.output.clone(),
        }
    }
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

    /// Run the clip though it asks for what may do harm, such as a program outside of this project; for clips that
    /// are your own
    #[arg(long)]
    pub trust: bool,

    /// Keep the trace of the run
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// End a run after this many seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: u64,

    #[command(flatten)]
    pub output: OutputOptions,
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
}
