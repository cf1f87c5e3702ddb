//! The command line of `cargo threadbare`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::arguments::{ExplorationOptions, ReplayOptions, RunOptions, SearchOptions, SequenceOptions};
use crate::doctor::DoctorOptions;

#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
struct Cargo {
    #[command(subcommand)]
    command: Threadbare,
}

/// As cargo calls us: with the name of the subcommand first.
#[derive(Subcommand)]
enum Threadbare {
    /// Runs the tests of a cargo project under many schedules, and replays what fails every time
    #[command(version, max_term_width = 100)]
    Threadbare {
        #[command(subcommand)]
        command: Command,
    },
}

#[derive(Subcommand)]
pub enum Command {
    /// Run each test under many schedules
    Test(CargoTestOptions),
    /// Run a program of the project under many schedules
    Run(CargoRunOptions),
    /// Run each test once in every class of equivalent interleavings, until none is left
    Explore(CargoExploreOptions),
    /// Drive a test or a program of the project through given locations, in their order
    Guide(CargoGuideOptions),
    /// Build as the clip says and run it: the same failure, every time
    Replay(CargoReplayOptions),
    /// Check that everything is there and works
    Doctor(DoctorOptions),
}

impl Command {
    pub fn parse_from_cargo() -> Command {
        let Threadbare::Threadbare { command } = Cargo::parse().command;
        command
    }
}

#[derive(Args)]
pub struct CargoTestOptions {
    /// Only tests whose name contains this
    pub filter: Option<String>,

    /// Arguments for the test programs, such as --ignored or --skip NAME
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,

    /// Run the tests once, as `cargo test` does: instrumented, but scheduled by the system
    #[arg(long)]
    pub no_hunt: bool,

    #[command(flatten)]
    pub hunt: CargoHuntOptions,
}

#[derive(Args)]
pub struct CargoExploreOptions {
    #[command(flatten)]
    pub tests: CargoTestOptions,

    #[command(flatten)]
    pub exploration: ExplorationOptions,
}

#[derive(Args)]
pub struct CargoRunOptions {
    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,

    #[command(flatten)]
    pub hunt: CargoHuntOptions,
}

#[derive(Args)]
pub struct CargoGuideOptions {
    /// The test that is to be driven: its name, or a part that no other has; without it, the program of the project
    #[arg(value_name = "TEST")]
    pub test_name: Option<String>,

    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,

    #[command(flatten)]
    pub sequences: SequenceOptions,

    #[command(flatten)]
    pub hunt: CargoHuntOptions,
}

/// What to build, and how to hunt in it.
#[derive(Args)]
pub struct CargoHuntOptions {
    #[command(flatten)]
    pub cargo: CargoOptions,

    #[command(flatten)]
    pub run: RunOptions,

    #[command(flatten)]
    pub search: SearchOptions,
}

#[derive(Args)]
pub struct CargoReplayOptions {
    #[command(flatten)]
    pub replay: ReplayOptions,

    #[command(flatten)]
    pub cargo: CargoOptions,
}

/// What to build, in cargo's own words, which are passed on to it.
#[derive(Args, Default)]
#[command(next_help_heading = "What to build (as for cargo)")]
pub struct CargoOptions {
    #[arg(long, short, value_name = "SPEC")]
    package: Vec<String>,
    #[arg(long)]
    workspace: bool,
    #[arg(long, value_name = "SPEC")]
    exclude: Vec<String>,
    #[arg(long)]
    lib: bool,
    #[arg(long)]
    bins: bool,
    #[arg(long, value_name = "NAME")]
    bin: Vec<String>,
    #[arg(long)]
    tests: bool,
    #[arg(long, value_name = "NAME")]
    test: Vec<String>,
    #[arg(long)]
    examples: bool,
    #[arg(long, value_name = "NAME")]
    example: Vec<String>,
    #[command(flatten)]
    variant: VariantOptions,
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,
    #[arg(long)]
    offline: bool,
    #[arg(long)]
    locked: bool,
    #[arg(long)]
    frozen: bool,
}

/// Features and profile: they go into clips, because they make another program.
#[derive(Args, Default)]
struct VariantOptions {
    #[arg(long, short = 'F', value_name = "FEATURES")]
    features: Vec<String>,
    #[arg(long)]
    all_features: bool,
    #[arg(long)]
    no_default_features: bool,
    #[arg(long, short)]
    release: bool,
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// `--name` if `set`.
fn flag(name: &str, set: bool) -> Option<String> {
    set.then(|| format!("--{name}"))
}

/// `--name=value` for each value.
fn values<'a>(name: &'a str, values: &'a [String]) -> impl Iterator<Item = String> + 'a {
    values.iter().map(move |value| format!("--{name}={value}"))
}

impl CargoOptions {
    /// What to build, for `cargo build` and `cargo test`.
    pub fn build_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        arguments.extend(values("package", &self.package));
        arguments.extend(flag("workspace", self.workspace));
        arguments.extend(values("exclude", &self.exclude));
        arguments.extend(flag("lib", self.lib));
        arguments.extend(flag("bins", self.bins));
        arguments.extend(values("bin", &self.bin));
        arguments.extend(flag("tests", self.tests));
        arguments.extend(values("test", &self.test));
        arguments.extend(flag("examples", self.examples));
        arguments.extend(values("example", &self.example));
        arguments.extend(self.variant_arguments());
        arguments
    }

    /// The part of it that is not about which of the project's programs.
    pub fn variant_arguments(&self) -> Vec<String> {
        let variant = &self.variant;
        let mut arguments: Vec<String> = values("features", &variant.features).collect();
        arguments.extend(flag("all-features", variant.all_features));
        arguments.extend(flag("no-default-features", variant.no_default_features));
        arguments.extend(flag("release", variant.release));
        arguments.extend(variant.profile.as_ref().map(|profile| format!("--profile={profile}")));
        arguments
    }

    /// The user says which project it is.
    pub fn names_manifest(&self) -> bool {
        self.manifest_path.is_some()
    }

    /// For every call of cargo: which project, and whether it may change or fetch anything.
    pub fn place_arguments(&self) -> Vec<String> {
        let manifest = self.manifest_path.as_ref();
        let mut arguments: Vec<String> =
            manifest.map(|path| format!("--manifest-path={}", path.display())).into_iter().collect();
        arguments.extend(flag("offline", self.offline));
        arguments.extend(flag("locked", self.locked));
        arguments.extend(flag("frozen", self.frozen));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cargo::command().debug_assert();
    }
}
