//! Compiling for Threadbare.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    /// The language of a source file, by the ending of its name.
    pub fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "c" => Some(Language::C),
            "cc" | "cpp" | "cxx" | "c++" | "C" => Some(Language::Cxx),
            _ => None,
        }
    }

    /// The user's compiler.
    fn compiler(self) -> OsString {
        let (variable, default) = match self {
            Language::C => ("CC", "cc"),
            Language::Cxx => ("CXX", "c++"),
        };
        // Inside a build that was given the wrapper as its compiler, that is not the compiler to call.
        let set = std::env::var_os(variable).filter(|set| !set.is_empty());
        set.filter(|set| !set.to_string_lossy().contains("threadbare")).unwrap_or_else(|| default.into())
    }
}

/// The compiler with what Threadbare needs, before any argument of the user's.
pub fn command(language: Language) -> Result<Command, Problem> {
    let compiler = language.compiler();
    let mut command = Command::new(&compiler);
    command.args(["-g", "-fsanitize=thread"]);
    let version = Command::new(&compiler).arg("--version").output().map_err(|error| {
        Problem::new(format!("cannot run the compiler {}: {error}", compiler.to_string_lossy()))
            .help("install gcc or clang, or name one in the environment: CC=… or CXX=…")
    })?;
    if String::from_utf8_lossy(&version.stdout).contains("clang") {
        // clang would link its own runtime into the program, where nothing could replace it.
        let directory = threadbare_executor::install().map_err(|error| Problem::new(error.to_string()))?;
        command.args(["-fno-sanitize-link-runtime", "-Wno-unused-command-line-argument"]);
        command.arg(format!("-L{}", directory.display()));
        command.args(["-Wl,--no-as-needed", "-l:libtsan.so.2", "-Wl,--as-needed"]);
        command.arg(format!("-Wl,-rpath,{}", directory.display()));
    }
    Ok(command)
}

/// Becomes the compiler.
pub fn run(language: Language, arguments: &[String]) -> Result<u8, Problem> {
    let mut command = command(language)?;
    let error = command.args(arguments).exec();
    Err(Problem::new(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))
}
