//! Real programs from Debian's sources: built with the wrapper as their compiler, run under many schedules, and
//! every result compared with what is right.

mod exploration;
mod programs;
mod source;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use threadbare_executor::{Target, Worker};
use threadbare_hunt::clip::{Origin, clip};
use threadbare_hunt::shrink;
use threadbare_trace::Plan;

use crate::{build, clips};
use exploration::Exploration;
use programs::{PROGRAMS, Program};
use source::Built;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How often a finding is replayed.
const REPLAYS: u64 = 10;
/// A run counts if it has at least this many threads, the main thread included.
const MIN_THREADS: u32 = 3;

/// Runs all programs, or those whose package is `only`.
pub fn run(schedules: u64, only: Option<&str>) -> Result<bool> {
    let tool = build::tool()?;
    // Beside the tool, so that the next measurement need not build it all again.
    let directory = tool.with_file_name("real");
    println!(
        "{:<12} {:<12} {:<10} {:>7} {:>9} {:>10} {:>8} {:>6} {:>9}",
        "program", "version", "does", "threads", "schedules", "events/run", "results", "right", "findings"
    );
    let mut good = true;
    for program in PROGRAMS.iter().filter(|program| only.is_none_or(|only| only == program.package)) {
        let built = match source::prepare(program, &directory, &tool) {
            Ok(built) => built,
            Err(error) => {
                println!("{:<12} {error}", program.package);
                good = false;
                continue;
            }
        };
        let bench =
            Bench { program, built, directory: directory.join(program.package), tool: &tool, schedules };
        good &= bench.round_trip()?;
    }
    Ok(good)
}

/// A program with everything that is needed to try it.
struct Bench<'a> {
    program: &'a Program,
    built: Built,
    /// For its inputs and clips.
    directory: PathBuf,
    tool: &'a Path,
    schedules: u64,
}

impl Bench<'_> {
    /// Compresses, and decompresses what came of that. `true` when all was right, or wrong in a way that
    /// replays.
    fn round_trip(&self) -> Result<bool> {
        let Program { compress, decompress, reference, .. } = *self.program;
        let original = letters(self.program.input);
        let (plain, packed) = (self.directory.join("input"), self.directory.join("packed"));
        fs::write(&plain, &original)?;
        let (good, result) =
            self.try_out("compress", compress, &plain, |output| Ok(decode(reference, output)? == original))?;
        let Some(result) = result else { return Ok(false) };
        fs::write(&packed, result)?;
        let (good_too, _) =
            self.try_out("decompress", decompress, &packed, |output| Ok(output == original))?;
        Ok(good && good_too)
    }

    /// Runs the program on a file under all schedules and prints a line. Also gives a right result.
    fn try_out(
        &self,
        what: &str,
        arguments: &[&str],
        file: &Path,
        is_right: impl Fn(&[u8]) -> Result<bool>,
    ) -> Result<(bool, Option<Vec<u8>>)> {
        let mut arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        arguments.push(file.to_string_lossy().into_owned());
        let target = Target {
            program: self.built.binary.clone(),
            arguments: arguments.iter().map(Into::into).collect(),
            ..Target::default()
        };
        let mut worker = exploration::start(&target)?;
        let seen = exploration::explore(&mut worker, self.schedules, is_right)?;
        println!(
            "{:<12} {:<12} {what:<10} {:>7} {:>9} {:>10} {:>8} {:>6} {:>9}",
            self.program.package,
            self.built.version,
            seen.threads,
            seen.runs,
            seen.events / seen.runs.max(1),
            seen.results.len(),
            seen.right(),
            seen.failures.len() + seen.wrong.len(),
        );
        for ended in seen.stopped.iter().take(3) {
            println!("  a run came to no end: {ended:?}");
        }
        let replayed = self.replay_findings(&mut worker, &seen, &arguments, what)?;
        let good = replayed && seen.stopped.is_empty() && seen.threads >= MIN_THREADS;
        let right = seen.results.into_iter().find(|(_, (_, right))| *right);
        Ok((good, right.map(|(result, _)| result)))
    }

    /// `true` when every finding happened again each time.
    fn replay_findings(
        &self,
        worker: &mut Worker,
        seen: &Exploration,
        arguments: &[String],
        what: &str,
    ) -> Result<bool> {
        let mut good = true;
        let origin = Origin {
            directory: None,
            target: self.built.binary.to_string_lossy().into_owned(),
            compiler_arguments: Vec::new(),
            arguments: arguments.to_vec(),
            input: None,
        };
        for (number, (key, failing)) in seen.failures.iter().enumerate() {
            let (plan, _) = shrink(worker, failing, key, 0)?;
            let trace = worker.run(&plan)?.trace();
            let path = self.directory.join(format!("{what}-{number}.clip"));
            fs::write(&path, clip(worker.program(), &plan, &trace, &origin).to_string())?;
            let replay = clips::replay(self.tool, &path, REPLAYS)?;
            println!(
                "  {}: replayed in {} of {} runs: {}",
                key.kind,
                replay.reproduced,
                replay.runs,
                path.display()
            );
            good &= replay.reproduced == REPLAYS;
        }
        for plan in &seen.wrong {
            let same = repeats(worker, plan)?;
            println!("  wrong result under {:?}: the same in {same} of {REPLAYS} runs", plan.policy);
            good &= same == REPLAYS;
        }
        Ok(good)
    }
}

/// Runs of `plan` that print what its first run prints.
fn repeats(worker: &mut Worker, plan: &Plan) -> Result<u64> {
    let first = worker.run(plan)?.output_bytes();
    let mut same = 0;
    for _ in 0..REPLAYS {
        same += u64::from(worker.run(plan)?.output_bytes() == first);
    }
    Ok(same)
}

/// Runs of letters, of lengths that vary: easily compressed, so that runs are short though there are several
/// blocks.
fn letters(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    let mut random: u64 = 1;
    while bytes.len() < length {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (letter, count) = (b'a' + (random >> 40) as u8 % 26, 20 + (random >> 50) as usize % 2000);
        bytes.extend(std::iter::repeat_n(letter, count.min(length - bytes.len())));
    }
    bytes
}

/// What the system's own program makes of `packed`.
fn decode(program: &str, packed: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {program}, which judges the results: {error}"))?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    std::thread::scope(|scope| {
        // A program that does not like its input closes it early; that shows in what it gives.
        scope.spawn(move || drop(input.write_all(packed)));
        Ok(child.wait_with_output()?.stdout)
    })
}
