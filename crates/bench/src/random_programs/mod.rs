//! Explorations of random programs, compared with brute force: every class, and none twice?

mod generate;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use threadbare_executor::{Limits, Target, Worker};
use threadbare_search::{Feedback, Schedule, Settings, Strategy as _, run_schedule};
use threadbare_trace::Plan;
use threadbare_variants::Reachability;
use threadbare_variants::brute_force::{self, Found};

use crate::build::{self, INSTRUMENTED};
use crate::predict::generate::Random;

/// Programs in one file: most of the time would go to the compiler otherwise.
const PER_FILE: u64 = 50;
/// A program with more beginnings of classes, or more classes, is too large for brute force.
const MAX_BEGINNINGS: usize = 3000;
/// Some programs spin for ever. What is known of them is known by then.
const MAX_EVENTS: u64 = 2000;

pub fn run(programs: u64, seed: u64) -> Result<bool, Box<dyn Error>> {
    compare_all(programs, seed, MAX_BEGINNINGS)
}

fn compare_all(programs: u64, seed: u64, max_beginnings: usize) -> Result<bool, Box<dyn Error>> {
    let mut total = Tally::default();
    for file in 0..programs.div_ceil(PER_FILE) {
        let count = PER_FILE.min(programs - file * PER_FILE);
        total.add(&compare_file(seed + file, count, max_beginnings)?);
        println!("{total}");
    }
    Ok(total.wrong == 0)
}

#[derive(Default)]
struct Tally {
    programs: u64,
    too_large: u64,
    classes: u64,
    redundant: u64,
    blocked: u64,
    wrong: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.programs += other.programs;
        self.too_large += other.too_large;
        self.classes += other.classes;
        self.redundant += other.redundant;
        self.blocked += other.blocked;
        self.wrong += other.wrong;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { programs, too_large, classes, redundant, blocked, wrong } = self;
        write!(
            f,
            "{programs} programs, {too_large} of them too large: {classes} classes, {redundant} redundant and \
             {blocked} blocked runs, {wrong} programs with other classes than by brute force"
        )
    }
}

/// Compares the programs of one file.
fn compare_file(seed: u64, count: u64, max_beginnings: usize) -> Result<Tally, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (source, program) = (directory.path().join("programs.c"), directory.path().join("programs"));
    std::fs::write(&source, generate::file(&mut Random(seed), count))?;
    if let Ok(d) = std::env::var("TBKEEP") {
        std::fs::copy(&source, format!("{d}/s{seed}.c"))?;
    }
    let level = if seed.is_multiple_of(2) { "-O1" } else { "-O0" };
    build::compile(&source, &program, &[INSTRUMENTED, &[level, "-Wno-tsan"]].concat())?;
    let mut tally = Tally::default();
    for number in 0..count {
        if let Some(problem) = compare(&program, number, max_beginnings, &mut tally)? {
            println!("seed {seed}, program {number}: {problem}");
            tally.wrong += 1;
        }
    }
    Ok(tally)
}

/// What is wrong with the exploration of this program, if anything.
fn compare(
    program: &Path,
    number: u64,
    max_beginnings: usize,
    tally: &mut Tally,
) -> Result<Option<String>, Box<dyn Error>> {
    let arguments = vec![number.to_string().into()];
    let target = Target { program: program.into(), arguments, ..Target::default() };
    let mut worker = Worker::start(&target, &Limits::default())?;
    let mut run =
        |schedule: &Schedule| run_schedule(&mut worker, schedule).map(|run| Feedback::of(&run, schedule));
    let plan = Plan { max_events: MAX_EVENTS, ..Plan::default() };
    let mut strategy = Reachability::new(Settings::new(plan));
    tally.programs += 1;
    let found = brute_force::explore(&mut strategy, max_beginnings, &mut run)?;
    let all = match &found {
        Some(found) => brute_force::all_classes(&found.plan, max_beginnings, &mut run)?,
        None => None,
    };
    let (Some(Found { classes, figures, .. }), Some(all)) = (found, all) else {
        tally.too_large += 1;
        return Ok(None);
    };
    tally.classes += figures.classes;
    tally.redundant += figures.redundant;
    tally.blocked += figures.blocked;
    let own: BTreeSet<u64> = classes.iter().copied().collect();
    let problems = [
        (strategy.dropped() > 0, "something was given up"),
        (own != all, "other classes"),
        (own.len() != classes.len(), "a class twice"),
        (figures.redundant > 0, "redundant runs"),
    ];
    let problems: Vec<&str> =
        problems.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what).collect();
    let found = format!(
        "{}; {} runs, {} classes, {} by brute force",
        problems.join(", "),
        classes.len(),
        own.len(),
        all.len()
    );
    Ok((!problems.is_empty()).then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the claim that an exploration visits every class once.
    #[test]
    fn explorations_visit_the_classes_that_brute_force_visits() {
        assert!(compare_all(200, 1, 300).expect("the programs run"));
    }
}
