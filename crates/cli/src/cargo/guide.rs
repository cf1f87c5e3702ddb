//! `cargo threadbare guide`: drives a test or a program of the project through locations that the user gives.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_hunt::{HuntConfig, Subject};

use super::arguments::CargoGuideOptions;
use super::harness_options::HarnessOptions;
use super::listing::{self, Case, HARNESS_THREADS};
use super::project::Project;
use super::{program_subject, suite};
use crate::guide::{drive, seeds, tasks};
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::target::seen_from;
use crate::trust::{self, Builder};
use crate::{guide, session};

pub fn run(options: &CargoGuideOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let (search, run) = (&options.hunt.search, &options.hunt.run);
    interrupt::begin(search.output.reporter("cargo threadbare replay"), Due::session());
    session::check_directory(&search.out)?;
    let tasks = tasks(&options.sequences)?;
    let project = Project::find(&options.hunt.cargo, None)?;
    let subject = match &options.test_name {
        Some(test) => test_subject(test, &project, options)?,
        None => program_subject(&project, &options.hunt, &options.arguments)?,
    };
    let replay = trust::replay_command(Builder::Cargo, &subject.origin, &project.root, &search.out);
    interrupt::begin(search.output.reporter(replay), Due::session());
    let is_test = options.test_name.is_some();
    let config = |strategy| HuntConfig {
        exit_code_must_be_0: is_test,
        harness_threads: if is_test { HARNESS_THREADS } else { 1 },
        ..session::config(strategy, search, guide::BUDGET, run, cancelled)
    };
    drive(seeds(&subject, "", &options.sequences), &tasks, &options.sequences, config)
}

/// The test with this name, or the only one whose name contains it.
fn test_subject(test: &str, project: &Project, options: &CargoGuideOptions) -> Result<Subject, Problem> {
    let built = project.build("test", &options.hunt.cargo.build_arguments())?;
    let harness = HarnessOptions::parse(&options.arguments)?;
    let filter = Some(test.to_owned());
    let list = |executable| listing::list(executable, filter.as_ref(), &harness);
    let listings: Vec<_> = built.executables.iter().map(list).collect::<Result<_, _>>()?;
    let cases: Vec<Case<'_>> = listings.into_iter().flat_map(|listing| listing.cases).collect();
    // A program with a harness of its own is one test, which no filter leaves out.
    let name = |case: &&Case<'_>| case.name.clone().unwrap_or_else(|| "main".to_owned());
    let exact: Vec<&Case<'_>> = cases.iter().filter(|case| name(case) == test).collect();
    let named = || cases.iter().filter(|case| case.name.is_some()).collect();
    let meant = if exact.is_empty() { named() } else { exact };
    let directory = seen_from(&options.hunt.search.out, &project.root);
    match &meant[..] {
        [case] => Ok(suite::subject(case, &directory, 0)),
        [] => Err(Problem::new(format!("no test is called `{test}`"))
            .help("to see all names: cargo test -- --list")),
        several => {
            let names: Vec<String> = several.iter().take(10).map(name).collect();
            Err(Problem::new(format!("{} tests are called `{test}`", several.len()))
                .help(format!("name one of them, such as {}", names.join(", "))))
        }
    }
}
