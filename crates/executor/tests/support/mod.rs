//! Small programs, compiled with the real compiler, and all the ways they end under many schedules.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod exhaust;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use exhaust::exhaust;
use threadbare_executor::{Input, Limits, Run, RunEnd, Target, Worker, learn};
use threadbare_trace::{End, EventKind, Plan, Policy};
use threadbare_wire::Record;

/// A program, built in a directory that goes away with it.
pub struct Built {
    directory: tempfile::TempDir,
    program: PathBuf,
}

/// Flags that every program is built with.
const FLAGS: [&str; 5] = ["-g", "-O0", "-fsanitize=thread", "-pthread", "-Wno-tsan"];

impl Built {
    /// Builds `tests/programs/NAME`: C or C++ by its extension.
    pub fn new(name: &str) -> Built {
        Built::with_flags(name, &[])
    }

    /// Later flags win, so `-O2` takes the place of `-O0`.
    pub fn with_flags(name: &str, flags: &[&str]) -> Built {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let program = directory.path().join("program");
        let built = Built { directory, program };
        built.compile(name, &built.program, flags);
        built
    }

    /// Builds one of the test programs into `output`, in this directory.
    pub fn compile(&self, name: &str, output: &Path, flags: &[&str]) {
        let source = sources().join(name);
        let mut command = if name.ends_with(".cpp") { Command::new("g++") } else { Command::new("gcc") };
        command.current_dir(self.directory.path()).args(FLAGS);
        if name.ends_with(".cpp") {
            command.arg("-std=c++20");
        }
        command.arg("-I").arg(sources()).arg(&source).args(flags).arg("-o").arg(output);
        let done = command.output().expect("the compiler can be started");
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Starts the program with one argument, the name of what it is to do. The limit is there for runs that hang;
    /// none of those that do not comes near it, however busy the machine is.
    pub fn scenario(&self, name: &str) -> Subject {
        self.start(name, Duration::from_secs(120))
    }

    /// The same for a scenario that hangs, and takes so long. It has to come to where it hangs in that time, which
    /// takes it some hundredths of a second.
    pub fn hanging_scenario(&self, name: &str) -> Subject {
        self.start(name, Duration::from_secs(5))
    }

    fn start(&self, name: &str, time: Duration) -> Subject {
        self.start_with(name, Input::default(), Limits { time, ..Limits::default() })
    }

    pub fn start_with(&self, name: &str, input: Input, limits: Limits) -> Subject {
        let target = Target {
            program: self.program.clone(),
            arguments: vec![name.into()],
            input,
            ..Target::default()
        };
        let worker = Worker::start(&target, &limits).unwrap_or_else(|error| panic!("{name}: {error}"));
        Subject { name: name.to_owned(), worker, plan: Plan { max_events: 20_000, ..Plan::default() } }
    }

    /// Runs each scenario under every schedule there is: its outcomes are exactly those listed, and a schedule
    /// can be repeated and replayed. All scenarios are tried before the first failure is reported.
    pub fn check(&self, scenarios: &[(&str, &[&str])]) {
        self.compare(scenarios, Subject::all_outcomes);
    }

    /// The same with many schedules instead of all, for scenarios that loop until another thread has done
    /// something: there is no end to how often they may look.
    pub fn sample(&self, scenarios: &[(&str, &[&str])]) {
        self.compare(scenarios, Subject::outcomes);
    }

    fn compare(&self, scenarios: &[(&str, &[&str])], outcomes: fn(&mut Subject) -> BTreeSet<String>) {
        let mut wrong = Vec::new();
        for (name, expected) in scenarios {
            let mut subject = self.scenario(name);
            subject.learn();
            let seen = outcomes(&mut subject);
            let expected: BTreeSet<String> = expected.iter().map(|&outcome| outcome.to_owned()).collect();
            if seen != expected {
                wrong.push(format!("{name}: outcomes are {seen:?}, expected {expected:?}"));
            }
            wrong.extend(subject.repeats_and_replays());
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// One scenario of a program, ready to run.
pub struct Subject {
    name: String,
    pub worker: Worker,
    /// The plan that runs start from: what is tracked, and the bound.
    pub plan: Plan,
}

const RANDOM_RUNS: u64 = 100;
const PRIORITY_RUNS: u64 = 50;
/// More than the schedules of any scenario that is exhausted.
const MAX_RUNS: u64 = 5_000;

impl Subject {
    /// Finds out what is shared.
    pub fn learn(&mut self) {
        learn(&mut self.worker, &mut self.plan).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    pub fn run(&mut self, plan: &Plan) -> Run<'_> {
        self.worker.run(plan).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The plan that leaves everything to `policy`.
    pub fn under(&self, policy: Policy) -> Plan {
        Plan { policy, ..self.plan.clone() }
    }

    /// One schedule of each kind, then many of each.
    pub fn plans(&mut self) -> Vec<Plan> {
        let events = self.run(&self.under(Policy::RunToBlock)).events().max(2);
        let random = (0..RANDOM_RUNS).map(|seed| Policy::Random { seed });
        let priorities = (0..PRIORITY_RUNS).map(|seed| {
            let mut changes = vec![seed * 7919 % events, seed * 104_729 % events];
            changes.sort_unstable();
            Policy::Priorities { seed, changes }
        });
        [Policy::RunToBlock]
            .into_iter()
            .chain(random)
            .chain(priorities)
            .map(|policy| self.under(policy))
            .collect()
    }

    /// How the program ends, over all the schedules.
    pub fn outcomes(&mut self) -> BTreeSet<String> {
        self.plans().iter().map(|plan| outcome(&self.run(plan))).collect()
    }

    /// How the program ends, over all schedules there are.
    pub fn all_outcomes(&mut self) -> BTreeSet<String> {
        let mut outcomes = BTreeSet::new();
        let exhausted = exhaust(&mut self.worker, &self.plan, MAX_RUNS, |run| {
            outcomes.insert(outcome(run));
        });
        let exhausted = exhausted.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert!(exhausted.complete, "{}: {exhausted:?}", self.name);
        outcomes
    }

    /// Runs some schedules twice, and once more by their steps; says what differed.
    pub fn repeats_and_replays(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        let plans: Vec<Plan> = self.plans().into_iter().step_by(25).collect();
        for plan in plans {
            let (first, steps) = {
                let run = self.run(&plan);
                (seen(&run), run.steps())
            };
            let again = seen(&self.run(&plan));
            if again.bytes != first.bytes || again.ended != first.ended || again.output != first.output {
                wrong.push(format!(
                    "{}: two runs of {:?} differ: {:?} {:?}, then {:?} {:?}",
                    self.name, plan.policy, first.ended, first.output, again.ended, again.output
                ));
            }
            let forced = Plan { steps, strict: true, policy: Policy::RunToBlock, ..plan.clone() };
            let replayed = seen(&self.run(&forced));
            if replayed.points != first.points || replayed.ended != first.ended {
                wrong.push(format!(
                    "{}: the steps of {:?} do not replay: {:?} ({} points), then {:?} ({} points)",
                    self.name,
                    plan.policy,
                    first.ended,
                    first.points.len(),
                    replayed.ended,
                    replayed.points.len()
                ));
            }
        }
        wrong
    }
}

/// What is compared between two runs.
struct Seen {
    ended: RunEnd,
    output: String,
    bytes: Vec<u8>,
    points: Vec<(u16, EventKind, u64)>,
}

fn seen(run: &Run<'_>) -> Seen {
    Seen {
        ended: run.ended().clone(),
        output: run.output(1 << 16),
        bytes: run.bytes().to_vec(),
        points: points(run),
    }
}

/// The schedule: thread, kind and address of every event that a plan can stop before.
pub fn points(run: &Run<'_>) -> Vec<(u16, EventKind, u64)> {
    let point = |record: &Record| {
        let kind = record.event_kind().filter(|kind| !kind.is_silent())?;
        Some((record.thread, kind, record.pc()))
    };
    run.records().iter().filter_map(point).collect()
}

/// What a program printed if it ended well; otherwise how it failed.
pub fn outcome(run: &Run<'_>) -> String {
    match run.ended() {
        End::Finished => run.output(1 << 16).trim_end().to_owned(),
        End::Failed(failure) => failure.kind.to_string(),
        other => format!("{other:?}"),
    }
}
