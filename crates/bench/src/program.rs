//! What it costs to read the control flow of large programs, and what of it could not be read.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use threadbare_program::Program;
use threadbare_program::flow::{BlockEnd, Callee, Flow, ModuleCode};

/// The goals for each file.
const MAX_TIME: Duration = Duration::from_secs(30);
const MAX_MEBIBYTES: u64 = 2048;

/// Counts over all functions of a file.
#[derive(Default)]
struct Counts {
    functions: usize,
    blocks: usize,
    edges: usize,
    calls: usize,
    indirect_calls: usize,
    landing_pads: usize,
    tables: usize,
    guessed_tables: usize,
    never_return: usize,
    /// Addresses of jumps.
    unresolved: Vec<u64>,
}

impl Counts {
    fn add(&mut self, flow: &Flow) {
        self.functions += 1;
        self.blocks += flow.blocks.len();
        for block in &flow.blocks {
            self.edges += block.successors.len();
            if let Some(call) = &block.call {
                self.calls += 1;
                self.indirect_calls += usize::from(call.callee == Callee::Indirect);
                self.landing_pads += usize::from(call.landing_pad.is_some());
            }
            match &block.end {
                BlockEnd::Switch(table) => {
                    self.tables += 1;
                    self.guessed_tables += usize::from(table.is_guessed);
                }
                BlockEnd::UnresolvedJump => self.unresolved.push(block.range.end),
                _ => {}
            }
        }
    }
}

/// Measures these files; without any, this executable and gcc's compiler proper.
pub fn run(files: &[PathBuf], list: bool) -> Result<bool, Box<dyn Error>> {
    let default = [Some(std::env::current_exe()?), gcc_compiler()];
    let files = if files.is_empty() { default.into_iter().flatten().collect() } else { files.to_vec() };
    let mut all_met = true;
    for file in files {
        all_met &= measure(&file, list)?;
    }
    Ok(all_met)
}

fn gcc_compiler() -> Option<PathBuf> {
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

fn measure(file: &Path, list: bool) -> Result<bool, Box<dyn Error>> {
    // Forgets the peak of the file before.
    fs::write("/proc/self/clear_refs", "5")?;
    let start = Instant::now();
    let program = Program::open(file)?;
    let code = program.code().ok_or("the executable has no code")?;
    let mut counts = Counts::default();
    for entry in code.functions() {
        if let Some(flow) = code.flow(entry) {
            counts.add(&flow);
        }
        counts.never_return += usize::from(!code.may_return(entry));
    }
    let flows = start.elapsed();
    let targets = code.call_graph().indirect_targets().len();
    let time = start.elapsed();
    let mebibytes = peak_mebibytes()?;
    print(file, &counts, targets);
    if list {
        counts.unresolved.iter().for_each(|&jump| println!("  unresolved: {}", place(&code, jump)));
    }
    let met = time <= MAX_TIME && mebibytes <= MAX_MEBIBYTES;
    println!(
        "  {:.1} s for flows, {:.1} s with the call graph (goal {} s), {mebibytes} MiB (goal {MAX_MEBIBYTES} MiB): {}",
        flows.as_secs_f64(),
        time.as_secs_f64(),
        MAX_TIME.as_secs(),
        if met { "met" } else { "MISSED" },
    );
    Ok(met)
}

fn print(file: &Path, counts: &Counts, targets: usize) {
    println!("{}", file.display());
    println!(
        "  {} functions ({} never return), {} blocks, {} edges, {} with landing pads",
        counts.functions, counts.never_return, counts.blocks, counts.edges, counts.landing_pads
    );
    println!("  {} calls, {} of them indirect, to {targets} functions", counts.calls, counts.indirect_calls);
    println!(
        "  {} jump tables, {} of them of guessed length; {} jumps not resolved",
        counts.tables,
        counts.guessed_tables,
        counts.unresolved.len()
    );
}

fn place(code: &ModuleCode<'_>, behind: u64) -> String {
    let function = code.function_at(behind - 1).unwrap_or_default();
    format!("{:#x} in {function:#x} {}", behind, code.name(function).unwrap_or_default())
}

fn peak_mebibytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak is known")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
}
