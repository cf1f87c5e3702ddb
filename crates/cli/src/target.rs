//! Prepares the program that the user names.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;
use threadbare_executor::{Input, Limits, Target};
use threadbare_hunt::Subject;
use threadbare_hunt::clip::Origin;

use crate::arguments::{LaunchOptions, RunOptions};
use crate::cc::{self, Language};
use crate::input::{self, Given};
use crate::problem::Problem;

/// A program that is ready to run. What was compiled for it is deleted with it.
pub struct Prepared {
    subject: Subject,
    /// Holds the compiled program.
    _directory: Option<TempDir>,
}

impl Deref for Prepared {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// Prepares the program that the user names. Clips and their input go into `directory`.
pub fn prepare(target: &Path, options: &LaunchOptions, directory: &Path) -> Result<Prepared, Problem> {
    let origin = Origin {
        target: target.to_string_lossy().into_owned(),
        compiler_arguments: options.compiler_arguments.clone(),
        arguments: options.arguments.clone(),
        input: None,
    };
    let given = options.stdin.as_deref().map(input::read).transpose()?;
    let name = name(&origin.target);
    let input = given.as_ref().map(|given| given.named(&name, directory));
    prepare_origin(Origin { input, ..origin }, given)
}

/// Compiles the target if it is a source file.
pub fn prepare_origin(origin: Origin, given: Option<Given>) -> Result<Prepared, Problem> {
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
    let (name, unsaved_input) = (name(&origin.target), given.and_then(Given::unsaved));
    Ok(Prepared { subject: Subject { target, origin, name, unsaved_input }, _directory: directory })
}

/// The program's name without directories and endings.
fn name(target: &str) -> String {
    let stem = Path::new(target).file_stem();
    stem.map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

/// What the directories of programs that we compiled begin with.
const COMPILED: &str = "threadbare-";

/// The program was compiled for one command, and is deleted after it.
pub fn is_compiled(program: &Path) -> bool {
    let directory = program.parent().filter(|directory| directory.starts_with(std::env::temp_dir()));
    let name = directory.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().starts_with(COMPILED)
}

/// Compiles one file without optimisation, so that every access in the source is one in the program.
fn compile(language: Language, source: &Path, arguments: &[String]) -> Result<(PathBuf, TempDir), Problem> {
    if !source.exists() {
        return Err(Problem::new(format!("no such file: {}", source.display()))
            .help("a clip names its target as it was given to `hunt`; from elsewhere, use replay --target"));
    }
    let directory = tempfile::Builder::new()
        .prefix(COMPILED)
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

pub fn limits(options: &RunOptions, cancelled: &Arc<AtomicBool>) -> Limits {
    Limits {
        time: Duration::from_secs(options.time_limit),
        memory: options.memory_limit.saturating_mul(1 << 20),
        cancelled: Arc::clone(cancelled),
    }
}
