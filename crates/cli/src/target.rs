//! From what the user names to what is run.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;
use threadbare_executor::{Input, Limits, Origin, Target};

use crate::arguments::{LaunchOptions, LimitOptions};
use crate::cc::{self, Language};
use crate::input::{self, Given};
use crate::problem::Problem;

/// A target that is ready to run. What was compiled for it is deleted with it.
pub struct Ready {
    pub target: Target,
    /// How it was named, for clips.
    pub origin: Origin,
    /// What there is on standard input.
    given: Option<Given>,
    /// Holds the compiled program.
    _directory: Option<TempDir>,
}

impl Ready {
    /// What somebody else has built, and keeps.
    pub fn built(target: Target, origin: Origin) -> Ready {
        Ready { target, origin, given: None, _directory: None }
    }

    /// The program's name without directories and endings.
    pub fn name(&self) -> String {
        let path = Path::new(&self.origin.target);
        path.file_stem().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
    }

    /// Makes sure that what clips name as standard input is there.
    pub fn save_input(&self) -> io::Result<()> {
        match (&self.given, &self.origin.input) {
            (Some(given), Some(named)) => given.save(named),
            _ => Ok(()),
        }
    }
}

/// Prepares what the user names. Clips, and what they need, are going to be in `directory`.
pub fn prepare(target: &Path, options: &LaunchOptions, directory: &Path) -> Result<Ready, Problem> {
    let origin = Origin {
        target: target.to_string_lossy().into_owned(),
        compiler_arguments: options.compiler_arguments.clone(),
        arguments: options.arguments.clone(),
        input: None,
    };
    let given = options.stdin.as_deref().map(input::read).transpose()?;
    let mut ready = prepare_origin(origin, given)?;
    ready.origin.input = ready.given.as_ref().map(|given| given.named(&ready.name(), directory));
    Ok(ready)
}

/// Compiles the target if it is a source file.
pub fn prepare_origin(origin: Origin, given: Option<Given>) -> Result<Ready, Problem> {
    let path = PathBuf::from(&origin.target);
    if path.is_dir() {
        return Err(Problem::new(format!("{} is a directory", path.display()))
            .help("TARGET is a C or C++ file, or a program built with -fsanitize=thread"));
    }
    let (program, directory) = match Language::of(&path) {
        Some(language) => {
            let (program, directory) = compile(language, &path, &origin.compiler_arguments)?;
            (program, Some(directory))
        }
        None => (path, None),
    };
    let arguments = origin.arguments.iter().map(OsString::from).collect();
    let input = given.as_ref().map_or_else(|| Ok(Input::default()), Given::input)?;
    let target = Target { program, arguments, input, ..Target::default() };
    Ok(Ready { target, origin, given, _directory: directory })
}

/// Compiles one file as it is written: without optimisation, every access in the source is one in the program.
fn compile(language: Language, source: &Path, arguments: &[String]) -> Result<(PathBuf, TempDir), Problem> {
    if !source.exists() {
        return Err(Problem::new(format!("no such file: {}", source.display()))
            .help("a clip names its target as it was given to `hunt`; from elsewhere, use replay --target"));
    }
    let directory = tempfile::Builder::new()
        .prefix("threadbare-")
        .tempdir()
        .map_err(|error| Problem::file("create a directory in", &std::env::temp_dir(), error))?;
    let program = directory.path().join(source.file_stem().unwrap_or_default());
    let mut command = cc::command(language)?;
    let output = command
        .args(["-O0", "-pthread"])
        .arg("-o")
        .arg(&program)
        .arg(source)
        .args(arguments)
        .output()
        .map_err(|error| Problem::new(format!("cannot run the compiler: {error}")))?;
    if !output.status.success() {
        return Err(Problem::new(format!("{} does not compile", source.display()))
            .help(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()));
    }
    Ok((program, directory))
}

pub fn limits(options: &LimitOptions, cancelled: &Arc<AtomicBool>) -> Limits {
    Limits {
        time: Duration::from_secs(options.time_limit),
        memory: options.memory_limit.saturating_mul(1 << 20),
        cancelled: Arc::clone(cancelled),
    }
}
