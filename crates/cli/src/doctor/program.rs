//! A program of the user's: what of it is instrumented, and whether it gets to its first thread.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_executor::{Limits, StartError, Target, Worker};
use threadbare_program::{DebugExtent, Instrumentation, Program, UnitCoverage};
use threadbare_report::Check;

use crate::problem::Problem;

const REBUILD: &str =
    "build all of it with -fsanitize=thread: make CC=\"threadbare cc\" CXX=\"threadbare c++\"";
/// So many names are listed.
const SHOWN: usize = 5;

/// Everything that can be said of the program.
pub fn checks(path: &Path, arguments: &[String], cancelled: &Arc<AtomicBool>) -> Vec<Check> {
    let name = path.display().to_string();
    let program = match Program::open(path) {
        Ok(program) => program,
        Err(error) => {
            return vec![Check::error(
                name,
                error.to_string(),
                "name a program built with -fsanitize=thread",
            )];
        }
    };
    let mut checks = vec![instrumentation(&name, &program)];
    let is_dynamic = matches!(program.instrumentation(), Instrumentation::Dynamic { .. });
    if is_dynamic {
        checks.push(units(&name, &program));
    }
    checks.push(debug_info(&name, &program));
    checks.extend(libraries(&name, path));
    if is_dynamic {
        checks.push(start(&name, path, arguments, cancelled));
    }
    checks
}

fn instrumentation(name: &str, program: &Program) -> Check {
    match program.instrumentation() {
        Instrumentation::Dynamic { .. } => {
            Check::ok(name, "instrumented, and takes its runtime from outside")
        }
        Instrumentation::None => Check::error(name, "no sign of -fsanitize=thread", REBUILD),
        Instrumentation::Unknown => Check::error(
            name,
            "has no symbols, so it cannot be told how it was built",
            "link it dynamically, so that our runtime can be loaded, or do not strip it",
        ),
        Instrumentation::Static => Check::error(
            name,
            "ThreadSanitizer's own runtime is linked in (as clang does), so ours cannot take its place",
            "with gcc, leave out -static-libtsan; with clang: make CC=\"threadbare cc\" (and CC=clang in the environment)",
        ),
    }
}

/// The units of which no function is instrumented, and the share of all functions that are.
fn units(name: &str, program: &Program) -> Check {
    let units = program.coverage();
    let functions: usize = units.iter().map(|unit| unit.functions).sum();
    let instrumented: usize = units.iter().map(|unit| unit.instrumented).sum();
    if functions == 0 {
        return Check::ok(name, "has no function that accesses memory which threads could share");
    }
    let share = format!("{instrumented} of {functions} functions that access memory are instrumented");
    let blind: Vec<&UnitCoverage> = units.iter().filter(|unit| unit.instrumented == 0).collect();
    if blind.is_empty() {
        return Check::ok(name, share);
    }
    let unit = |unit: &&UnitCoverage| match unit.unit.as_str() {
        "" => "all of it".to_owned(),
        file => file.to_owned(),
    };
    let files = listed(blind.iter().map(unit).collect());
    Check::warning(name, format!("{share}; nothing of {files} is, so its accesses are not seen"), REBUILD)
}

fn debug_info(name: &str, program: &Program) -> Check {
    match program.debug_extent() {
        DebugExtent::Present => Check::ok(name, "has debug information"),
        DebugExtent::None => Check::warning(
            name,
            "has no debug information, so reports have no lines and no variables",
            "build it with -g, and do not strip it",
        ),
        DebugExtent::SplitMissing(file) => Check::warning(
            name,
            format!("its split debug information is not there: {}", file.display()),
            "keep the .dwo or .dwp files where the build left them, or build without -gsplit-dwarf",
        ),
    }
}

/// Shared libraries that are neither the system's nor instrumented.
fn libraries(name: &str, path: &Path) -> Option<Check> {
    let libraries: Vec<PathBuf> =
        loaded_libraries(path)?.into_iter().filter(|path| !is_systems(path)).collect();
    let is_blind = |library: &&PathBuf| {
        Program::open(library).is_ok_and(|library| library.instrumentation() == Instrumentation::None)
    };
    let blind: Vec<&PathBuf> = libraries.iter().filter(is_blind).collect();
    if blind.is_empty() {
        let found = match libraries.len() {
            0 => "uses no libraries besides the system's".to_owned(),
            count => format!("libraries besides the system's: {count}, all instrumented"),
        };
        return Some(Check::ok(name, found));
    }
    let files = listed(blind.iter().map(|library| library.display().to_string()).collect());
    Some(Check::warning(name, format!("not instrumented, so its accesses are not seen: {files}"), REBUILD))
}

/// The libraries that the loader finds for the program, which is not run.
fn loaded_libraries(path: &Path) -> Option<Vec<PathBuf>> {
    let runtime = threadbare_executor::install().ok()?;
    let mut search = OsString::from(runtime);
    if let Some(users) = std::env::var_os("LD_LIBRARY_PATH") {
        search.push(":");
        search.push(users);
    }
    let output = Command::new(std::path::absolute(path).ok()?)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_LIBRARY_PATH", search)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `libsum.so => /home/me/libsum.so (0x00007f…)`
    let library =
        |line: &str| line.split_once(" => ")?.1.rsplit_once(" (").map(|(path, _)| PathBuf::from(path));
    Some(text.lines().filter_map(library).filter(|path| path.is_absolute()).collect())
}

/// Part of the C and C++ runtimes, which we take the place of where it matters, or our own.
fn is_systems(path: &Path) -> bool {
    const NAMES: [&str; 12] = [
        "ld-linux",
        "libc.",
        "libm.",
        "libdl.",
        "librt.",
        "libpthread.",
        "libgcc_s.",
        "libstdc++.",
        "libc++",
        "libtsan.",
        "libatomic.",
        "libresolv.",
    ];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    NAMES.iter().any(|system| name.starts_with(system))
}

/// Whether it gets to its first thread.
fn start(name: &str, path: &Path, arguments: &[String], cancelled: &Arc<AtomicBool>) -> Check {
    let target = Target {
        program: path.to_owned(),
        arguments: arguments.iter().map(OsString::from).collect(),
        ..Target::default()
    };
    let limits = Limits { cancelled: Arc::clone(cancelled), ..Limits::default() };
    match Worker::start(&target, &limits) {
        Ok(worker) if worker.starts_no_thread() => {
            let advice = "give it the arguments with which it starts threads: doctor PROGRAM -- ARGS";
            Check::warning(name, "starts, and ends without a thread", advice)
        }
        Ok(_) => Check::ok(name, "starts, and gets to its first thread"),
        Err(error) => {
            let found = error.to_string();
            let is_harmless = matches!(error, StartError::TooSlow { .. });
            let advice = Problem::from(error).advice().unwrap_or("run it by hand").to_owned();
            if is_harmless { Check::warning(name, found, advice) } else { Check::error(name, found, advice) }
        }
    }
}

/// The first few of these.
fn listed(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
