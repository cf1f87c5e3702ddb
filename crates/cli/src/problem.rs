//! Errors for the user: what went wrong, and what to do next.

use std::fmt;
use std::path::Path;

use threadbare_executor::{PlainEnd, PlainRun, RunError, StartError};
use threadbare_program::ProgramError;

use crate::target;

/// A message for the user of a command that could not do its work.
#[derive(Debug)]
pub struct Problem {
    /// Empty if nothing is printed.
    message: String,
    help: Option<String>,
}

impl Problem {
    pub fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), help: None }
    }

    pub fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into()), ..self }
    }

    /// What to do next, if there is advice.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// A problem that is not printed.
    pub fn silent() -> Problem {
        Problem::new("")
    }

    /// Prints it to standard error.
    pub fn print(&self) {
        if self.message.is_empty() {
            return;
        }
        threadbare_report::print_error(&self.message, self.help.as_deref());
    }

    /// A file could not be read or written.
    pub fn file(what: &str, path: &Path, error: impl std::fmt::Display) -> Problem {
        Problem::new(format!("cannot {what} {}: {error}", path.display()))
    }
}

/// The message alone.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ctrlc::Error> for Problem {
    fn from(error: ctrlc::Error) -> Problem {
        Problem::new(format!("cannot catch interrupts: {error}"))
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Problem {
        let problem = Problem::new(error.to_string());
        match error {
            RunError::ServerDied => problem.help(
                "the program may have killed its own process group, or the machine ran out of memory;\n\
                 try a smaller input, or --jobs 1",
            ),
            RunError::PlanTooLarge | RunError::Cancelled | RunError::Late => problem,
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Problem {
        let message = error.to_string();
        let problem = Problem::new(message);
        match error {
            StartError::NotInstrumented(program) => problem.help(format!(
                "build it with ThreadSanitizer's instrumentation, for example:\n\
                 gcc -g -fsanitize=thread -o {name} {name}.c\n\
                 make CC=\"threadbare cc\" CXX=\"threadbare c++\"",
                name = program.file_stem().unwrap_or_default().to_string_lossy(),
            )),
            StartError::StaticRuntime(_) => problem.help(
                "build it so that the runtime can be replaced: with gcc, without -static-libtsan;\n\
                 with clang, through the wrapper:  make CC=\"threadbare cc\" (with CC=clang in the environment)",
            ),
            StartError::NoSymbols(_) => {
                problem.help("link it dynamically, so that our runtime can be loaded, or do not strip it")
            }
            StartError::NoThread(_) => problem.help(
                "there is nothing to schedule; arguments for the program go after `--`,\n\
                 for example: threadbare hunt ./program -- 4",
            ),
            StartError::FailedEarly { output, plain, .. } => {
                let printed = Some(output.trim_end()).filter(|output| !output.trim().is_empty());
                let printed = printed.map(|output| format!("it printed:\n{output}"));
                let parts: Vec<String> = plain.as_deref().map(by_itself).into_iter().chain(printed).collect();
                if parts.is_empty() { problem } else { problem.help(parts.join("\n")) }
            }
            StartError::TooMuchMemory { .. } => {
                problem.help("if it needs so much to get there, raise --memory-limit")
            }
            StartError::TooSlow { .. } => problem.help(
                "if it needs longer to get there, raise --time-limit;\n\
                 a program that waits for input or for the network does not get there at all",
            ),
            StartError::Program(ProgramError::Missing { .. }) => {
                problem.help("TARGET is a C or C++ file, or a program built with -fsanitize=thread")
            }
            _ => problem,
        }
    }
}

/// What a program did without our scheduling, after it failed under it.
fn by_itself(plain: &PlainRun) -> String {
    let words = match plain.end() {
        PlainEnd::Exited(0) => {
            "it passes without Threadbare's scheduling: this may be our fault, please report it".to_owned()
        }
        end @ (PlainEnd::Exited(_) | PlainEnd::Killed(_)) => {
            format!("it fails without Threadbare's scheduling too: {end}")
        }
        end @ (PlainEnd::TooLong(_) | PlainEnd::TooLarge) => {
            format!("without Threadbare's scheduling: {end}")
        }
    };
    // What was compiled for this command is gone after it.
    match target::is_compiled(plain.program()) {
        true => words,
        false => format!("{words}\nthat was: {}", plain.command()),
    }
}

impl From<ProgramError> for Problem {
    fn from(error: ProgramError) -> Problem {
        StartError::Program(error).into()
    }
}
