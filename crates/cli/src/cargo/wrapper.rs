//! The compiler wrapper that cargo is given.
//!
//! cargo is told to build for an explicit target, so that it tells the two kinds of crates apart itself: what is
//! part of the tested programs has a `--target`, what runs at build time (build scripts, procedural macros) has
//! none and is compiled as always.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::facade;
use crate::exit;
use crate::output::say;
use crate::problem::Problem;

/// Names the directory of the facade; set for the cargo that we start, and so for us as its wrapper.
const FACADE: &str = "THREADBARE_FACADE";
/// Names the directory of the runtime library.
const RUNTIME: &str = "THREADBARE_RUNTIME";
/// The wrapper that the user has, which comes after this one.
const NEXT: &str = "THREADBARE_NEXT_WRAPPER";

/// A call of the compiler by cargo.
pub struct CompilerCall {
    command: Vec<OsString>,
    facade: PathBuf,
    runtime: PathBuf,
}

/// Makes cargo call us instead of its compiler.
pub fn insert(cargo: &mut Command, facade: &Path, runtime: &Path) -> Result<(), Problem> {
    let this = std::env::current_exe()
        .map_err(|error| Problem::new(format!("cannot find the program's own file: {error}")))?;
    if let Some(next) = std::env::var_os("RUSTC_WRAPPER").filter(|next| !next.is_empty()) {
        cargo.env(NEXT, next);
    }
    cargo.env("RUSTC_WRAPPER", this).env(FACADE, facade).env(RUNTIME, runtime);
    Ok(())
}

/// What cargo wants compiled, if that is what we are called for.
pub fn call() -> Option<CompilerCall> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().filter(|first| first != "threadbare")?;
    let (facade, runtime) = (std::env::var_os(FACADE)?, std::env::var_os(RUNTIME)?);
    let command = std::env::var_os(NEXT).into_iter().chain([first]).chain(arguments).collect();
    Some(CompilerCall { command, facade: facade.into(), runtime: runtime.into() })
}

pub fn compile(call: CompilerCall) -> Result<u8, Problem> {
    let mut command = Command::new(&call.command[0]);
    command.args(&call.command[1..]);
    if call.command.last().is_some_and(|last| last == "-vV") {
        return tell_version(command, &call);
    }
    if is_part_of_target(&call.command) && !is_inside_build_script() {
        instrument(&mut command, &call);
    }
    let error = command.exec();
    Err(Problem::new(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))
}

/// The compiler's version and, for cargo to see, ours: with another facade everything is to be built anew.
fn tell_version(mut command: Command, call: &CompilerCall) -> Result<u8, Problem> {
    let status = command.status();
    let status = status.map_err(|error| Problem::file("run", Path::new(&call.command[0]), error))?;
    let facade = call.facade.file_name().unwrap_or_default();
    say!("threadbare: {}", facade.display())?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::COULD_NOT_RUN))
}

/// It compiles a crate, for the target. (cargo's questions about the compiler go by the crate name `___`.)
fn is_part_of_target(command: &[OsString]) -> bool {
    let value_of = |name: &str| {
        let position = command.iter().position(|argument| argument == name)?;
        command.get(position + 1)
    };
    let crate_name = value_of("--crate-name");
    crate_name.is_some_and(|name| name != "___") && value_of("--target").is_some()
}

/// Some build scripts try out what the compiler can do, through the wrapper: they are to see it as it is.
fn is_inside_build_script() -> bool {
    ["HOST", "TARGET", "OPT_LEVEL", "NUM_JOBS"].iter().all(|name| std::env::var_os(name).is_some())
}

fn instrument(command: &mut Command, call: &CompilerCall) {
    let of = |flag: &str, path: &Path| {
        let mut argument = OsString::from(flag);
        argument.push(path);
        argument
    };
    command
        // For this one call: the flags are not stable yet.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Zsanitizer=thread", "-Zexternal-clangrt", "-Cunsafe-allow-abi-mismatch=sanitizer"])
        .args(["-Cdebuginfo=2", "-Cstrip=none", "-Cforce-unwind-tables=yes"])
        .arg("--extern")
        .arg(of("std=", &facade::library(&call.facade)))
        .arg(of("-Ldependency=", &call.facade))
        .arg(of("-Clink-arg=-L", &call.runtime))
        .args(["-Clink-arg=-Wl,--no-as-needed", "-Clink-arg=-l:libtsan.so.2"])
        .arg(of("-Clink-arg=-Wl,-rpath,", &call.runtime));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_instrumented(arguments: &[&str]) -> bool {
        is_part_of_target(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn only_crates_for_the_target_are_instrumented() {
        let target = "x86_64-unknown-linux-gnu";
        assert!(is_instrumented(&["rustc", "--crate-name", "demo", "src/lib.rs", "--target", target]));
        assert!(!is_instrumented(&["rustc", "--crate-name", "build_script_build", "build.rs"]));
        assert!(!is_instrumented(&["rustc", "-", "--crate-name", "___", "--print=cfg", "--target", target]));
        assert!(!is_instrumented(&["rustc", "--print", "target-libdir"]));
    }
}
