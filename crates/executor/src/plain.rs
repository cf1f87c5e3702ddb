//! One run without our scheduling: what a program does when the system runs its threads.
//!
//! Some statements need it. "It fails whatever the schedule" is one; it was wrong when it was only assumed. The words
//! for such a statement come from a [`PlainRun`], and the only way to have one is to make the run.
//!
//! It is the same executable with the same arguments, directory, environment and input, except for a directory of its
//! own for temporary files. Our library is loaded, because an instrumented program does not start without one. But it is
//! told nothing, so it hands every call on to libc.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use threadbare_program::{Instrumentation, Program};
use threadbare_trace::FailureKind;

use crate::keeper::{Kept, keep};
use crate::library;
use crate::limits::Limits;
use crate::processes;
use crate::scratch::Scratch;
use crate::server::before;
use crate::worker::Target;

/// A run that was made without our scheduling.
#[derive(Clone, Debug)]
pub struct PlainRun {
    end: PlainEnd,
    time: Duration,
    command: String,
    program: PathBuf,
}

/// How a plain run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainEnd {
    /// With this exit code, which may be 0.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// We ended it after this time.
    TooLong(Duration),
    /// We ended it at the limit of memory.
    TooLarge,
}

/// How often a waiting tool looks at limits. The first looks are closer together, because most programs are short.
const TICK: Duration = Duration::from_millis(20);
const FIRST_TICK: Duration = Duration::from_micros(200);

impl PlainRun {
    /// Runs the program once. `None` if it cannot be started, or if we were interrupted.
    pub fn make(target: &Target, limits: &Limits) -> Option<PlainRun> {
        let (mut command, text) = plain_command(target).ok()?;
        // What it leaves behind would be in the way of the next.
        let temporary = Scratch::new().ok()?;
        command.env("TMPDIR", temporary.path());
        let start = Instant::now();
        let mut process = Kept::start(command).ok()?;
        let end = wait(&mut process, limits)?;
        Some(PlainRun { end, time: start.elapsed(), command: text, program: target.program.clone() })
    }

    pub fn end(&self) -> PlainEnd {
        self.end
    }

    /// How long it took.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// It ended by itself, with exit code 0.
    pub fn passed(&self) -> bool {
        self.end == PlainEnd::Exited(0)
    }

    /// It ended by itself, and not well.
    pub fn failed(&self) -> bool {
        match self.end {
            PlainEnd::Exited(code) => code != 0,
            PlainEnd::Killed(_) => true,
            PlainEnd::TooLong(_) | PlainEnd::TooLarge => false,
        }
    }

    /// It went wrong in a way that a failure of this kind looks like from outside. `None` if such a failure need not
    /// show there, as an access to freed memory.
    pub fn fails_like(&self, kind: FailureKind) -> Option<bool> {
        use FailureKind::{Abort, Assertion, Deadlock, Exception, ExitCode, Livelock, Panic, Signal};
        match kind {
            ExitCode(code) => Some(self.end == PlainEnd::Exited(code)),
            Deadlock | Livelock => Some(matches!(self.end, PlainEnd::TooLong(_))),
            Assertion | Abort | Signal(_) | Exception | Panic => Some(self.failed()),
            _ => None,
        }
    }

    /// What a shell is told to make this run again.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The executable.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// What was seen, as the end of a sentence: `exit code 6`.
impl fmt::Display for PlainEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlainEnd::Exited(code) => write!(f, "exit code {code}"),
            PlainEnd::Killed(signal) => write!(f, "signal {signal}"),
            PlainEnd::TooLong(time) => write!(f, "no end within {:.1} s", time.as_secs_f64()),
            PlainEnd::TooLarge => f.write_str("more memory than the limit"),
        }
    }
}

/// Waits for the end of a process, or gives up. `None` if we were interrupted.
fn wait(process: &mut Kept, limits: &Limits) -> Option<PlainEnd> {
    let start = Instant::now();
    let mut tick = FIRST_TICK;
    loop {
        if let Ok(Some(status)) = process.try_wait() {
            return Some(end_of(status));
        }
        if limits.is_cancelled() {
            return None;
        }
        if start.elapsed() >= limits.time {
            return Some(PlainEnd::TooLong(limits.time));
        }
        if processes::use_more_than(limits.memory, process.id()) {
            return Some(PlainEnd::TooLarge);
        }
        std::thread::sleep(tick);
        tick = (tick * 2).min(TICK);
    }
}

fn end_of(status: ExitStatus) -> PlainEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => PlainEnd::Exited(code),
        (None, signal) => PlainEnd::Killed(signal.unwrap_or_default()),
    }
}

impl Target {
    /// The program with all that does not depend on who schedules it.
    pub(crate) fn command(&self) -> io::Result<Command> {
        let is_path = self.program.components().count() > 1;
        let path = if is_path { self.program.clone() } else { Path::new(".").join(&self.program) };
        let mut command = Command::new(path);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(self.input.open()?);
        Ok(command)
    }
}

/// The command of a plain run, and the same for a shell.
fn plain_command(target: &Target) -> io::Result<(Command, String)> {
    let directory = library::install().map_err(io::Error::other)?;
    let mut command = target.command()?;
    // What it prints is not looked at, so it needs no bound.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.env("LD_LIBRARY_PATH", before(directory.as_os_str(), "LD_LIBRARY_PATH"));
    let mut words = match &target.directory {
        Some(directory) => format!("cd {} && ", quoted(directory.as_os_str())),
        None => String::new(),
    };
    words += &format!("LD_LIBRARY_PATH={} ", quoted(directory.as_os_str()));
    let instrumentation = Program::open(&target.program).map(|program| program.instrumentation());
    if matches!(instrumentation, Ok(Instrumentation::Dynamic { soname: None })) {
        let library = directory.join("libtsan.so.2");
        command.env("LD_PRELOAD", before(library.as_os_str(), "LD_PRELOAD"));
        words += &format!("LD_PRELOAD={} ", quoted(library.as_os_str()));
    }
    words += &quoted(command.get_program());
    for argument in &target.arguments {
        words += &format!(" {}", quoted(argument));
    }
    keep(&mut command)?;
    // SAFETY: between fork and exec, only system calls.
    unsafe {
        command.pre_exec(|| {
            let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &no_core);
            Ok(())
        });
    }
    Ok((command, words))
}

/// A word for a shell.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=,:+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted_where_they_must_be() {
        let quoted = |word: &str| quoted(OsStr::new(word));
        assert_eq!(quoted("--exact=tests::pays"), "--exact=tests::pays");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
