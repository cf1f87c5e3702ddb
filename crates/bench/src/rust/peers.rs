//! Side by side with loom and shuttle: executions per second on two little programs.
//!
//! Each program is written once, with `std`. For loom and shuttle, which want that, `std` is replaced by their names
//! in it; we run it as it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::Result;
use crate::build;

/// How long each is measured.
const SECONDS: u64 = 5;

const LOCKED: &str = r#"
use std::sync::{Arc, Mutex};
use std::thread;

fn program() {
    let counter = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || (0..3).for_each(|_| *counter.lock().unwrap() += 1))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*counter.lock().unwrap(), 6);
}
"#;

const ATOMIC: &str = r#"
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn program() {
    let counter = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.fetch_add(1, Ordering::SeqCst);
                counter.fetch_add(1, Ordering::SeqCst);
                assert!(counter.load(Ordering::SeqCst) >= 2);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
"#;

const PROGRAMS: &[(&str, &str, &str)] = &[
    ("locked", "2 threads × 3 locked increments", LOCKED),
    ("atomic", "3 threads × (2 fetch_add + 1 load)", ATOMIC),
];

const MAIN: &str = "\nfn main() {\n    program();\n}\n";

/// Counts the executions in SECONDS. loom ends earlier when it has seen all.
const LOOM: &str = r#"
static EXECUTIONS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn main() {
    let start = std::time::Instant::now();
    let mut builder = loom::model::Builder::new();
    builder.max_duration = Some(std::time::Duration::from_secs(SECONDS));
    // The duration is looked at only this often.
    builder.checkpoint_interval = 100;
    builder.check(|| {
        EXECUTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        program();
    });
    println!("{} {}", EXECUTIONS.load(std::sync::atomic::Ordering::Relaxed), start.elapsed().as_secs_f64());
}
"#;

const SHUTTLE: &str = r#"
fn main() {
    let start = std::time::Instant::now();
    let mut executions = 0;
    while start.elapsed().as_secs() < SECONDS {
        shuttle::check_random(program, 1000);
        executions += 1000;
    }
    println!("{} {}", executions, start.elapsed().as_secs_f64());
}
"#;

/// Prints the table.
pub fn run(directory: &Path, tool: &Path) -> Result<bool> {
    let peers = directory.join("peers");
    let ours = directory.join("ours");
    let wrap = |main: &'static str, name: &'static str| {
        move |text: &str| {
            text.replace("std::", &format!("{name}::")) + &main.replace("SECONDS", &SECONDS.to_string())
        }
    };
    write_project(&ours, "", &[("", &|text| text.to_owned() + MAIN)])?;
    write_project(
        &peers,
        "loom = \"*\"\nshuttle = \"*\"\n",
        &[("loom-", &wrap(LOOM, "loom")), ("shuttle-", &wrap(SHUTTLE, "shuttle"))],
    )?;
    let built = build::command(env!("CARGO")).args(["build", "--release"]).current_dir(&peers).output()?;
    build::succeeded("build loom and shuttle", &built)?;
    print_versions(&peers)?;
    println!("{:<36} {:>12} {:>12} {:>12} {:>12}", "executions/s", "loom", "shuttle", "ours, 1 job", "ours");
    for (name, what, _) in PROGRAMS {
        println!(
            "{what:<36} {:>12.0} {:>12.0} {:>12.0} {:>12.0}",
            peer(&peers, &format!("loom-{name}"))?,
            peer(&peers, &format!("shuttle-{name}"))?,
            our(&ours, tool, name, &["--jobs=1"])?,
            our(&ours, tool, name, &[])?,
        );
    }
    Ok(true)
}

type Variant<'a> = (&'a str, &'a dyn Fn(&str) -> String);

/// A cargo project with a program for each of ours and each variant: a prefix for its name, and what to make of
/// its text.
fn write_project(directory: &Path, dependencies: &str, variants: &[Variant<'_>]) -> Result<()> {
    let programs = directory.join("src/bin");
    fs::create_dir_all(&programs)?;
    let manifest = format!(
        "[package]\nname = \"little\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         [dependencies]\n{dependencies}"
    );
    fs::write(directory.join("Cargo.toml"), manifest)?;
    for (prefix, rewrite) in variants {
        for (name, _, text) in PROGRAMS {
            fs::write(programs.join(format!("{prefix}{name}.rs")), rewrite(text))?;
        }
    }
    Ok(())
}

fn print_versions(peers: &Path) -> Result<()> {
    for name in ["loom", "shuttle"] {
        let output = build::command(env!("CARGO")).args(["pkgid", name]).current_dir(peers).output()?;
        build::succeeded("ask for the version", &output)?;
        let id = String::from_utf8(output.stdout)?;
        println!("{name} {}", id.trim_end().rsplit(['#', '@']).next().unwrap_or_default());
    }
    Ok(())
}

/// Executions per second of a program that says how many it made, and in how many seconds.
fn peer(peers: &Path, name: &str) -> Result<f64> {
    let output = Command::new(peers.join("target/release").join(name)).output()?;
    build::succeeded(&format!("run {name}"), &output)?;
    let said = String::from_utf8(output.stdout)?;
    // loom reports before that how far it has come.
    let (executions, seconds) =
        said.lines().last().and_then(|line| line.split_once(' ')).ok_or("no figures")?;
    Ok(executions.parse::<f64>()? / seconds.parse::<f64>()?)
}

/// The summary of `cargo threadbare run --json`.
#[derive(Deserialize)]
struct Summary {
    runs: f64,
    seconds: f64,
    findings: u64,
}

fn our(project: &Path, tool: &Path, name: &str, options: &[&str]) -> Result<f64> {
    let output = build::command(tool)
        .args(["threadbare", "run", "--release", "--json", "--bin", name])
        .arg(format!("--budget={SECONDS}s"))
        .args(options)
        .current_dir(project)
        .output()?;
    build::succeeded(&format!("run {name}"), &output)?;
    let said = String::from_utf8(output.stdout)?;
    let summary: Summary = serde_json::from_str(said.lines().last().ok_or("no summary")?)?;
    if summary.findings > 0 {
        return Err(format!("{name} is correct, but something was found").into());
    }
    Ok(summary.runs / summary.seconds)
}
