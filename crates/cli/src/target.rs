//! Prepares the program that the user names.

use std::ffi::OsString;
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use threadbare_executor::scratch::{self, Scratch};
use threadbare_executor::{Input, Limits, Target, keep};
use threadbare_formats::clip::ClipInput;
use threadbare_hunt::Subject;
use threadbare_hunt::clip::Origin;
use threadbare_program::{DebugExtent, Instrumentation, Program};

use crate::arguments::{LaunchOptions, RunOptions};
use crate::cc::{self, Language};
use crate::input::{self, Given};
use crate::problem::Problem;
use crate::trust::TrustedClip;

/// A program that is ready to run. What was compiled for it is deleted with it.
pub struct Prepared {
    subject: Subject,
    /// Holds the compiled program.
    _compiled: Option<Scratch>,
}

impl Deref for Prepared {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// Prepares the program that the user names. Clips and their input go into `clips`.
pub fn prepare(target: &Path, options: &LaunchOptions, clips: &Path) -> Result<Prepared, Problem> {
    let current = current_directory()?;
    let given = options.stdin.as_deref().map(input::read).transpose()?;
    let input = given.as_ref().map(|given| named_input(given, &name(target), &current, clips));
    let origin = Origin {
        directory: Some(seen_from(clips, &current)),
        target: within(&current, target),
        compiler_arguments: options.compiler_arguments.clone(),
        arguments: options.arguments.clone(),
        input,
    };
    prepare_in(None, target, origin, given)
}

/// The same program with the arguments and the input of other options.
pub fn launched_otherwise(
    subject: &Subject,
    options: &LaunchOptions,
    clips: &Path,
) -> Result<Subject, Problem> {
    let current = current_directory()?;
    let given = options.stdin.as_deref().map(input::read).transpose()?;
    let named = given.as_ref().map(|given| named_input(given, &subject.name, &current, clips));
    let origin = Origin { arguments: options.arguments.clone(), input: named, ..subject.origin.clone() };
    let arguments = options.arguments.iter().map(OsString::from).collect();
    let input = given.as_ref().map_or_else(|| Ok(Input::default()), Given::input)?;
    let target = Target { arguments, input, ..subject.target.clone() };
    Ok(Subject { target, origin, name: subject.name.clone(), unsaved_input: given.and_then(Given::unsaved) })
}

/// The input as clips name it, seen from the current directory.
fn named_input(given: &Given, program: &str, current: &Path, clips: &Path) -> ClipInput {
    let ClipInput { path, fingerprint } = given.named(program, clips);
    ClipInput { path: within(current, Path::new(&path)), fingerprint }
}

/// Prepares the program of a clip.
pub fn prepare_clip(clip: &TrustedClip, given: Option<Given>) -> Result<Prepared, Problem> {
    let (directory, origin) = (clip.directory(), clip.origin());
    if !directory.join(&origin.target).exists() {
        return Err(Problem::new(format!("there is no {} in {}", origin.target, directory.display()))
            .help("the clip names it; call replay where it is, or name it with replay --target"));
    }
    prepare_in(Some(directory), Path::new(&origin.target), origin.clone(), given)
}

/// Prepares a program of the tool's own, from a source file.
pub fn prepare_own(source: &Path, compiler_arguments: &[String]) -> Result<Prepared, Problem> {
    let origin = Origin {
        directory: None,
        target: source.to_string_lossy().into_owned(),
        compiler_arguments: compiler_arguments.to_vec(),
        arguments: Vec::new(),
        input: None,
    };
    prepare_in(None, source, origin, None)
}

/// Compiles the target if it is a source file. Its path begins at `directory`, or at the current one.
fn prepare_in(
    directory: Option<&Path>,
    target: &Path,
    origin: Origin,
    given: Option<Given>,
) -> Result<Prepared, Problem> {
    let path = directory.map_or_else(|| target.to_owned(), |directory| directory.join(target));
    if path.is_dir() {
        return Err(Problem::new(format!("{} is a directory", path.display()))
            .help("TARGET is a C or C++ file, or a program built with -fsanitize=thread"));
    }
    let (program, compiled) = match Language::of(target) {
        Some(language) => {
            let (program, compiled) = compile(language, directory, target, &origin.compiler_arguments)?;
            (program, Some(compiled))
        }
        None => (path, None),
    };
    note_debug_information(&program);
    let arguments = origin.arguments.iter().map(OsString::from).collect();
    let input = given.as_ref().map_or_else(|| Ok(Input::default()), Given::input)?;
    let directory = directory.map(Path::to_owned);
    let (name, unsaved_input) = (name(target), given.and_then(Given::unsaved));
    let target = Target { program, arguments, input, directory, ..Target::default() };
    Ok(Prepared { subject: Subject { target, origin, name, unsaved_input }, _compiled: compiled })
}

/// Says once what is missing for locations with lines. A program that cannot be read is refused later, with a reason.
fn note_debug_information(program: &Path) {
    let Ok(opened) = Program::open(program) else { return };
    if !matches!(opened.instrumentation(), Instrumentation::Dynamic { .. }) {
        return;
    }
    let note = match opened.debug_extent() {
        DebugExtent::Present => return,
        DebugExtent::None => format!(
            "{} has no debug information, so places are shown as functions; build it with -g",
            program.display()
        ),
        DebugExtent::SplitMissing(file) => format!(
            "the debug information of {} is split, and {} is not there or of another build;\n\
             build it with -gno-split-dwarf, or keep the .dwo files where they were written",
            program.display(),
            file.display()
        ),
    };
    threadbare_report::print_note(&note);
}

pub fn current_directory() -> Result<PathBuf, Problem> {
    std::env::current_dir()
        .map_err(|error| Problem::new(format!("cannot find the current directory: {error}")))
}

/// A path as it is named from `directory`, which is absolute: relative if it leads inside, else as it is.
fn within(directory: &Path, path: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).to_string_lossy().into_owned()
}

/// The path from the directory of clips to another, so that both can be moved together.
pub fn seen_from(clips: &Path, directory: &Path) -> String {
    // What does not exist yet is made as it is named.
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let (Ok(clips), Ok(directory)) = (whole(clips), whole(directory)) else {
        return directory.to_string_lossy().into_owned();
    };
    let common = clips.components().zip(directory.components()).take_while(|(a, b)| a == b).count();
    let up = clips.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(directory.components().skip(common)).collect();
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// The program's name without directories and endings.
fn name(target: &Path) -> String {
    let stem = target.file_stem();
    stem.map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

/// The program was compiled for one command, and is deleted after it.
pub fn is_compiled(program: &Path) -> bool {
    let directory = program.parent().filter(|directory| directory.starts_with(std::env::temp_dir()));
    let name = directory.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().starts_with(scratch::PREFIX)
}

/// Compiles one file without optimisation, so that every access in the source is one in the program.
fn compile(
    language: Language,
    working_directory: Option<&Path>,
    source: &Path,
    arguments: &[String],
) -> Result<(PathBuf, Scratch), Problem> {
    if !working_directory.unwrap_or(Path::new("")).join(source).exists() {
        return Err(Problem::new(format!("no such file: {}", source.display())));
    }
    let directory = Scratch::new()
        .map_err(|error| Problem::file("create a directory in", &std::env::temp_dir(), error))?;
    let program = directory.path().join(source.file_stem().unwrap_or_default());
    let mut command = cc::command(language)?;
    if let Some(directory) = working_directory {
        command.current_dir(directory);
    }
    // Its own temporary files go away with the directory, also if it is killed.
    command.args(["-O0", "-pthread"]).arg("-o").arg(&program).arg(source).args(arguments);
    command.env("TMPDIR", directory.path());
    let output = keep(&mut command)
        .and_then(|()| {
            limit_memory(&mut command);
            command.output()
        })
        .map_err(|error| Problem::new(format!("cannot run the compiler: {error}")))?;
    if !output.status.success() {
        return Err(Problem::new(format!("{} does not compile", source.display()))
            .help(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()));
    }
    Ok((program, directory))
}

/// Bounds the memory of a compiler, which would take all there is for `#include "/dev/zero"`.
fn limit_memory(command: &mut Command) {
    const BYTES: u64 = 8 << 30;
    // SAFETY: between fork and exec, one system call.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: BYTES, rlim_max: BYTES };
            libc::setrlimit(libc::RLIMIT_AS, &limit);
            Ok(())
        });
    }
}

pub fn limits(options: &RunOptions, cancelled: &Arc<AtomicBool>) -> Limits {
    Limits {
        time: Duration::from_secs(options.time_limit),
        memory: options.memory_limit.saturating_mul(1 << 20),
        cancelled: Arc::clone(cancelled),
        ..Limits::default()
    }
}
