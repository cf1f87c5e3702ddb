//! `threadbare cc` and `threadbare c++`: the user's compiler with the flags that Threadbare needs.

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

    /// The user's compiler, with what goes before its arguments: `CC` may be `ccache gcc`.
    fn compiler(self) -> Vec<String> {
        let (variable, default) = match self {
            Language::C => ("CC", "cc"),
            Language::Cxx => ("CXX", "c++"),
        };
        // Inside a build that was given the wrapper as its compiler, that is not the compiler to call.
        let set = std::env::var(variable).unwrap_or_default();
        let words: Vec<String> = set.split_whitespace().map(str::to_owned).collect();
        let is_this = |word: &String| Path::new(word).file_name().is_some_and(|name| name == "threadbare");
        if words.is_empty() || words.iter().any(is_this) { vec![default.to_owned()] } else { words }
    }
}

/// The compiler with the flags that Threadbare needs, before the user's arguments.
pub fn command(language: Language) -> Result<Command, Problem> {
    let compiler = language.compiler();
    let call = || {
        let mut command = Command::new(&compiler[0]);
        command.args(&compiler[1..]);
        command
    };
    let mut command = call();
    command.args(["-g", "-fsanitize=thread"]);
    let version = call().arg("--version").output().map_err(|error| {
        Problem::new(format!("cannot run the compiler {}: {error}", compiler.join(" ")))
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

/// Replaces this process by the compiler.
pub fn run(language: Language, arguments: &[String]) -> Result<u8, Problem> {
    let mut command = command(language)?;
    if threadbare_executor::is_cache_temporary() {
        return Err(Problem::new("there is no directory to keep the library that the program is linked to")
            .help("name one that is yours alone: XDG_CACHE_HOME=…"));
    }
    let error = command.args(arguments).exec();
    Err(Problem::new(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))
}
