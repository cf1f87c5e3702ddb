//! The compiler wrapper that cargo is given.
//!
//! cargo builds for an explicit target, so a call of the compiler shows what a crate is for. A crate of the tested
//! programs has a `--target`. One that runs at build time (build scripts, procedural macros) has none, and is compiled as
//! always.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::facade;
use super::project::Compiler;
use crate::exit;
use crate::output;
use crate::problem::Problem;

/// The variable with the facade's directory. We set it for cargo, which passes it on to us as its wrapper.
const FACADE: &str = "THREADBARE_FACADE";
/// The variable with the runtime library's directory.
const RUNTIME: &str = "THREADBARE_RUNTIME";
/// Set when the compiler has to be told that crates with and without instrumentation are mixed on purpose.
const MIXED: &str = "THREADBARE_MIXED";
/// The first release (1.91) that has to be told. Those before do not know the flag.
const TOLD_SINCE: u32 = 91;
/// The variable with the user's own wrapper, which this one calls.
const NEXT: &str = "THREADBARE_NEXT_WRAPPER";

/// Makes `rustix` call libc instead of the kernel. The runtime interposes libc; a direct system call that blocks would
/// block every thread.
const THROUGH_LIBC: &str = "--cfg=rustix_use_libc";

/// A call of the compiler by cargo.
pub struct CompilerCall {
    command: Vec<OsString>,
    facade: PathBuf,
    runtime: PathBuf,
    mixed: bool,
}

/// Makes cargo call us instead of its compiler.
pub fn insert(
    cargo: &mut Command,
    compiler: &Compiler,
    facade: &Path,
    runtime: &Path,
) -> Result<(), Problem> {
    let this = std::env::current_exe()
        .map_err(|error| Problem::new(format!("cannot find the program's own file: {error}")))?;
    if let Some(next) = std::env::var_os("RUSTC_WRAPPER").filter(|next| !next.is_empty()) {
        cargo.env(NEXT, next);
    }
    if compiler.release() >= TOLD_SINCE {
        cargo.env(MIXED, "1");
    }
    cargo.env("RUSTC_WRAPPER", this).env(FACADE, facade).env(RUNTIME, runtime);
    Ok(())
}

/// The call of the compiler, if cargo calls us as its wrapper.
pub fn call() -> Option<CompilerCall> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().filter(|first| first != "threadbare")?;
    let (facade, runtime) = (std::env::var_os(FACADE)?, std::env::var_os(RUNTIME)?);
    let command = std::env::var_os(NEXT).into_iter().chain([first]).chain(arguments).collect();
    let mixed = std::env::var_os(MIXED).is_some();
    Some(CompilerCall { command, facade: facade.into(), runtime: runtime.into(), mixed })
}

pub fn compile(call: CompilerCall) -> Result<u8, Problem> {
    let mut command = Command::new(&call.command[0]);
    command.args(&call.command[1..]);
    if call.command.last().is_some_and(|last| last == "-vV") {
        return tell_version(command, &call);
    }
    if !is_inside_build_script() {
        match purpose(&call.command) {
            Purpose::Target => instrument(&mut command, &call),
            // What a crate depends on, and what its build script does, goes by the answer.
            Purpose::Question => _ = command.arg(THROUGH_LIBC),
            Purpose::Other => {}
        }
    }
    let error = command.exec();
    Err(Problem::new(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))
}

/// Prints the compiler's version and the facade's. With another facade cargo then builds everything anew.
fn tell_version(mut command: Command, call: &CompilerCall) -> Result<u8, Problem> {
    let status = command.status();
    let status = status.map_err(|error| Problem::file("run", Path::new(&call.command[0]), error))?;
    let facade = call.facade.file_name().unwrap_or_default();
    output::print(format_args!("threadbare: {} {THROUGH_LIBC}\n", facade.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::COULD_NOT_RUN))
}

/// What cargo calls the compiler for.
#[derive(Debug, PartialEq, Eq)]
enum Purpose {
    /// To compile a crate for the target.
    Target,
    /// To be told about the target. Such questions go by the crate name `___`.
    Question,
    /// Something else, such as a crate that runs at build time.
    Other,
}

fn purpose(command: &[OsString]) -> Purpose {
    let value_of = |name: &str| {
        let position = command.iter().position(|argument| argument == name)?;
        command.get(position + 1)
    };
    match (value_of("--crate-name"), value_of("--target")) {
        (Some(name), Some(_)) if name == "___" => Purpose::Question,
        (Some(_), Some(_)) => Purpose::Target,
        _ => Purpose::Other,
    }
}

/// Some build scripts call the compiler through the wrapper to try its features. They get the compiler as it is.
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
        .args(["-Zsanitizer=thread", "-Zexternal-clangrt"])
        .args(call.mixed.then_some("-Cunsafe-allow-abi-mismatch=sanitizer"))
        .args(["-Cdebuginfo=2", "-Cstrip=none", "-Cforce-unwind-tables=yes", THROUGH_LIBC])
        // All of it in the program, where it is found.
        .arg("-Csplit-debuginfo=off")
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

    fn purpose_of(arguments: &[&str]) -> Purpose {
        purpose(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn only_crates_for_the_target_are_instrumented() {
        let target = "x86_64-unknown-linux-gnu";
        let compiles = ["rustc", "--crate-name", "demo", "src/lib.rs", "--target", target];
        assert_eq!(purpose_of(&compiles), Purpose::Target);
        assert_eq!(purpose_of(&["rustc", "--crate-name", "build_script_build", "build.rs"]), Purpose::Other);
        let asks = ["rustc", "-", "--crate-name", "___", "--print=cfg", "--target", target];
        assert_eq!(purpose_of(&asks), Purpose::Question);
        assert_eq!(purpose_of(&["rustc", "--print", "target-libdir"]), Purpose::Other);
    }
}
