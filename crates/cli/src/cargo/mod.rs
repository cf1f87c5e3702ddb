//! `cargo threadbare`: hunts in the tests and programs of a cargo project, without a change to the project.
//!
//! cargo builds the project as always, but calls its compiler through this program (`wrapper`). The wrapper adds the
//! instrumentation and replaces `std` by the facade (`facade`). The hunt is then in what cargo has built (`project`): in
//! each test by itself (`suite`, `listing`), or in a program.

mod arguments;
mod facade;
mod guide;
mod harness_options;
mod listing;
mod project;
mod suite;
mod wrapper;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_hunt::clip::Origin;
use threadbare_hunt::{StrategyChoice, Subject};

pub use arguments::Command;
use arguments::{CargoHuntOptions, CargoReplayOptions, CargoRunOptions};
pub use wrapper::{call as compiler_call, compile};

use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::target::{current_directory, seen_from};
use crate::trust::{Builder, TrustedClip};
use crate::{doctor, replay, session};
pub use project::Compiler;
use project::{Executable, Project};

pub fn run(command: Command, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    match command {
        Command::Test(options) => suite::test(&options, cancelled),
        Command::Explore(options) => suite::explore(&options, cancelled),
        Command::Run(options) => run_program(&options, cancelled),
        Command::Guide(options) => guide::run(&options, cancelled),
        Command::Replay(options) => replay_clip(&options, cancelled),
        Command::Doctor(options) => doctor::run(&options, cancelled),
    }
}

fn run_program(options: &CargoRunOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    interrupt::begin(options.hunt.search.output.reporter("cargo threadbare replay"), Due::session());
    let project = Project::find(&options.hunt.cargo, None)?;
    let subject = program_subject(&project, &options.hunt, &options.arguments)?;
    let (search, run) = (&options.hunt.search, &options.hunt.run);
    let config = session::config(StrategyChoice::Hunt, search, session::BUDGET, run, cancelled);
    session::search_and_report(&subject, &config, &search.output, Builder::Cargo)
}

/// Builds the one program that the options select.
fn program_subject(
    project: &Project,
    options: &CargoHuntOptions,
    arguments: &[String],
) -> Result<Subject, Problem> {
    let built = project.build("build", &options.cargo.build_arguments())?;
    let [program] = &built.executables[..] else {
        return Err(one_expected(&built.executables));
    };
    Ok(Subject {
        target: program.target(arguments.iter().map(OsString::from).collect()),
        origin: Origin {
            directory: Some(seen_from(&options.search.out, &current_directory()?)),
            target: program.path.to_string_lossy().into_owned(),
            compiler_arguments: program.recipe.clone(),
            arguments: arguments.to_vec(),
            input: None,
        },
        name: program.name.clone(),
        unsaved_input: None,
    })
}

fn one_expected(executables: &[Executable]) -> Problem {
    if executables.is_empty() {
        return Problem::new("the project has no program to run")
            .help("for its tests: cargo threadbare test");
    }
    let names: Vec<&str> = executables.iter().map(|executable| executable.name.as_str()).collect();
    Problem::new(format!("the project has several programs: {}", names.join(", ")))
        .help("name one with --bin or --example")
}

/// Builds the clip's program from the present source, and follows the clip.
fn replay_clip(options: &CargoReplayOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    replay::begin(&options.replay, "cargo threadbare replay");
    let clip = TrustedClip::open(&options.replay, Builder::Cargo)?;
    let origin = clip.origin().clone();
    let Some((command, selection)) = origin.compiler_arguments.split_first() else {
        return Err(Problem::new("the clip is not one of a cargo project")
            .help(format!("threadbare replay {}", options.replay.clip.display())));
    };
    let project = Project::find(&options.cargo, Some(clip.directory()))?;
    let built = project.build(command, selection)?;
    let [executable] = &built.executables[..] else {
        return Err(Problem::new("the project no longer builds what the clip was made from").help(format!(
            "cargo {} builds {}",
            origin.compiler_arguments.join(" "),
            built.executables.len()
        )));
    };
    let arguments = origin.arguments.iter().map(OsString::from).collect();
    let (mut target, name) = (executable.target(arguments), executable.name.clone());
    target.directory.get_or_insert_with(|| clip.directory().to_owned());
    let subject = Subject { target, origin, name, unsaved_input: None };
    replay::follow(&clip, &subject, &options.replay, cancelled)
}
