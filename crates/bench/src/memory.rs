//! Time and memory of runs of ten million events.

use std::error::Error;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::build::{self, INSTRUMENTED};

const EVENTS: u64 = 10_000_000;
/// In KiB, of tool and program together.
const GOAL: u64 = 1 << 20;

pub fn run() -> Result<bool, Box<dyn Error>> {
    let tool = build::tool()?;
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("many_events");
    let source = build::root().join("crates/bench/programs/many_events.c");
    build::compile(&source, &program, &[INSTRUMENTED, &["-O1"]].concat())?;
    let limits = ["--max-events", "40000000", "--time-limit", "120"];
    let events = EVENTS.to_string();
    let mut good = true;
    let mut report = |what: &str, command: &mut Command, code: i32| -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let (output, status, tool) = peak(command)?;
        if status.code() != Some(code) {
            return Err(format!("{what}: {status}\n{output}").into());
        }
        // As the program says itself, where its output is shown.
        let program = output.lines().find_map(|line| line.strip_prefix("program ")?.parse::<u64>().ok());
        let program = program.unwrap_or_default();
        good &= tool + program <= GOAL;
        println!(
            "{what:<40} tool {:5} MiB, program {:3} MiB   (goal {} together)   {:.1} s",
            tool >> 10,
            program >> 10,
            GOAL >> 10,
            start.elapsed().as_secs_f64()
        );
        Ok(())
    };
    let trace = directory.path().join("run.tbt");
    let mut record = Command::new(&tool);
    record.arg("record").arg(&program).args(limits).arg("--out").arg(&trace).args(["--", &events]);
    report("record, 10 million events", &mut record, 0)?;
    let mut show = Command::new(&tool);
    show.args(["trace", "show", "--events"]).arg(&trace);
    report("trace show of it", &mut show, 0)?;
    for (what, further, code) in
        [("hunt, 10 million events a run", None, 0), ("hunt, and a finding", Some("fail"), 1)]
    {
        let mut hunt = Command::new(&tool);
        hunt.arg("hunt").arg(&program).args(limits).arg("--out").arg(directory.path());
        hunt.args(["--budget", "5runs", "--first", "--", &events]).args(further);
        report(what, &mut hunt, code)?;
    }
    Ok(good)
}

/// Runs a command. Returns the end of its output, its status, and the most memory it had, in KiB.
fn peak(command: &mut Command) -> Result<(String, ExitStatus, u64), Box<dyn Error>> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut output = child.stdout.take().ok_or("a pipe was asked for")?;
    let mut piece = vec![0; 1 << 16];
    let mut end: Vec<u8> = Vec::new();
    loop {
        let count = output.read(&mut piece)?;
        if count == 0 {
            break;
        }
        let excess = (end.len() + count).saturating_sub(1 << 16).min(end.len());
        end.drain(..excess);
        end.extend(&piece[..count]);
    }
    let mut status = 0;
    // SAFETY: a plain call on a child that nobody else waits for; all zeroes is a usage.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(child.id() as i32, &mut status, 0, &mut usage) < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage
    };
    let output = String::from_utf8_lossy(&end).into_owned();
    Ok((output, ExitStatus::from_raw(status), usage.ru_maxrss as u64))
}
