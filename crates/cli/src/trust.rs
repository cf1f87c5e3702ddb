//! What a clip may make the tool do.
//!
//! A clip is a file from a stranger. It names a program, how to build it, what to give to it and where to run it. So that
//! it cannot name a shell, a linker or a file of somebody else, all of that is checked against what is known to be
//! harmless (`harmless`, `project`), and `docs/clips.md` lists it for users. What is not harmless is shown. It is done only
//! if the user says so: on a terminal when asked, or with `--trust`.
//!
//! A [`TrustedClip`] is made by this check alone, and no command can run a clip that is not one.

mod harmless;
mod project;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use threadbare_formats::Clip;
use threadbare_hunt::clip::Origin;
use threadbare_report::printable;

use crate::arguments::ReplayOptions;
use crate::cc::Language;
use crate::files::{self, CLIP_LIMIT};
use crate::problem::Problem;
use crate::target::current_directory;
use project::Projects;

/// Who builds the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Builder {
    /// The C or C++ compiler, if the target is a source file.
    Compiler,
    Cargo,
}

/// A clip that may be run.
pub struct TrustedClip {
    clip: Clip,
    launch: Launch,
}

/// What a clip makes the tool do.
struct Launch {
    builder: Builder,
    /// The directory that the program runs in, and that its paths begin at.
    directory: PathBuf,
    origin: Origin,
    /// The directory of the clip. Standard input may be beside it.
    clips: PathBuf,
    /// What the user has named himself, and not the clip.
    own_target: bool,
    own_input: bool,
}

impl TrustedClip {
    /// Reads the clip and has the user agree, if it asks for something that may do harm. Says what will be run.
    pub fn open(options: &ReplayOptions, builder: Builder) -> Result<TrustedClip, Problem> {
        let bytes = files::read(&options.clip, CLIP_LIMIT)?;
        let clip = Clip::read(&bytes).map_err(|error| {
            Problem::file("read", &options.clip, error).help("clips are written by `threadbare hunt`")
        })?;
        let launch = Launch::of(&clip, options, builder)?;
        let _ = writeln!(io::stderr(), "{}", launch.describe());
        let doubts = launch.doubts();
        if !doubts.is_empty() && !options.trust {
            confirm(&doubts, &options.clip)?;
        }
        Ok(TrustedClip { clip, launch })
    }

    pub fn clip(&self) -> &Clip {
        &self.clip
    }

    /// The directory that the program runs in. The paths of target and input begin there.
    pub fn directory(&self) -> &Path {
        &self.launch.directory
    }

    /// What to build and run.
    pub fn origin(&self) -> &Origin {
        &self.launch.origin
    }
}

/// The command that replays the clips of what is about to be hunted in `directory`. It trusts the clip if the user would
/// have to be asked: he has named the program himself.
pub fn replay_command(builder: Builder, origin: &Origin, directory: &Path, clips: &Path) -> &'static str {
    let launch = Launch {
        builder,
        directory: directory.to_owned(),
        origin: origin.clone(),
        clips: clips.to_owned(),
        own_target: false,
        own_input: false,
    };
    match (builder, launch.doubts().is_empty()) {
        (Builder::Compiler, true) => "threadbare replay",
        (Builder::Compiler, false) => "threadbare replay --trust",
        (Builder::Cargo, true) => "cargo threadbare replay",
        (Builder::Cargo, false) => "cargo threadbare replay --trust",
    }
}

impl Launch {
    fn of(clip: &Clip, options: &ReplayOptions, builder: Builder) -> Result<Launch, Problem> {
        let current = current_directory()?;
        let clips = options.clip.parent().map_or(current.clone(), |parent| current.join(parent));
        let recorded = clip.directory.as_ref().map(|directory| clips.join(directory));
        let directory = match recorded {
            // A clip that was moved, without what it is about.
            Some(recorded)
                if !has(&recorded, &clip.target, builder) && has(&current, &clip.target, builder) =>
            {
                current
            }
            Some(recorded) => recorded.canonicalize().unwrap_or(recorded),
            None => current,
        };
        let own = options
            .target
            .as_ref()
            .map(|target| std::path::absolute(target).unwrap_or_else(|_| target.clone()));
        let origin = Origin {
            directory: clip.directory.clone(),
            target: own
                .as_ref()
                .map_or_else(|| clip.target.clone(), |own| own.to_string_lossy().into_owned()),
            compiler_arguments: clip.compiler_arguments.clone(),
            arguments: clip.arguments.clone(),
            input: clip.input.clone(),
        };
        let (own_target, own_input) = (own.is_some(), options.stdin.is_some());
        Ok(Launch { builder, directory, origin, clips, own_target, own_input })
    }

    /// What may do harm, a line for each.
    fn doubts(&self) -> Vec<String> {
        let current = std::env::current_dir().unwrap_or_default();
        let projects = Projects::of(&current, &self.clips);
        let is_inside = |path: &Path| projects.contain(&self.directory.join(path));
        let leads_out = |path: &Path| {
            let path = self.directory.join(path);
            path.symlink_metadata().is_ok() && !projects.contain(&path)
        };
        let mut doubts = Vec::new();
        if !projects.contain(&self.directory) {
            doubts.push(format!("runs in a directory outside of this project: {}", self.directory.display()));
        }
        let target = self.directory.join(&self.origin.target);
        if self.builder == Builder::Compiler && !self.own_target && !(is_inside(&target) && target.is_file())
        {
            doubts.push(format!("runs a program outside of this project: {}", target.display()));
        }
        for (number, argument) in self.build_arguments().iter().enumerate() {
            let is_harmless = match self.builder {
                Builder::Compiler => harmless::compiler_argument(argument, is_inside),
                Builder::Cargo => harmless::cargo_argument(number, argument),
            };
            if !is_harmless {
                let builder = if self.builder == Builder::Cargo { "cargo" } else { "the compiler" };
                doubts.push(format!(
                    "has an argument for {builder} that is not known to be harmless: {argument}"
                ));
            }
        }
        for argument in &self.origin.arguments {
            if !harmless::program_argument(argument, leads_out) {
                doubts.push(format!(
                    "has an argument for the program that is not known to be harmless: {argument}"
                ));
            }
        }
        if let Some(input) = self.origin.input.as_ref().filter(|_| !self.own_input) {
            let path = self.directory.join(&input.path);
            let is_beside = path
                .canonicalize()
                .is_ok_and(|path| path.parent() == self.clips.canonicalize().ok().as_deref());
            if path.exists() && !(path.is_file() && (is_beside || is_inside(&path))) {
                doubts.push(format!("reads a file outside of this project: {}", path.display()));
            }
        }
        doubts
    }

    /// The arguments that the program is built with. One that is built already needs none.
    fn build_arguments(&self) -> &[String] {
        let is_built =
            self.builder == Builder::Cargo || Language::of(Path::new(&self.origin.target)).is_some();
        if is_built { &self.origin.compiler_arguments } else { &[] }
    }

    /// What will be run.
    fn describe(&self) -> String {
        let build = quoted(self.build_arguments());
        let command = match self.builder {
            Builder::Cargo => format!("cargo {build}, and of that: {}", quoted(&self.origin.arguments)),
            Builder::Compiler => {
                let words: Vec<String> =
                    [&self.origin.target].into_iter().chain(&self.origin.arguments).cloned().collect();
                let built = if build.is_empty() { String::new() } else { format!(", compiled with {build}") };
                quoted(&words) + &built
            }
        };
        printable(&format!("replaying {command}\n       in {}", self.directory.display())).into_owned()
    }
}

/// Whether the directory has what a clip is about.
fn has(directory: &Path, target: &str, builder: Builder) -> bool {
    match builder {
        Builder::Compiler => directory.join(target).exists(),
        Builder::Cargo => directory.ancestors().any(|directory| directory.join("Cargo.toml").exists()),
    }
}

/// The words as one would type them.
fn quoted(words: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.,:=+/@%".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Asks the user on the terminal; without one, the answer is no.
fn confirm(doubts: &[String], clip: &Path) -> Result<(), Problem> {
    let list: String = doubts.iter().map(|doubt| format!("  it {}\n", printable(doubt))).collect();
    let mut err = io::stderr();
    let _ = write!(err, "this clip asks for what may do harm:\n{list}");
    if io::stdin().is_terminal() && err.is_terminal() {
        let _ = write!(err, "run it all the same? [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        read.map_err(|error| Problem::new(format!("cannot read the answer: {error}")))?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        return Err(Problem::new("the clip was not run"));
    }
    Err(Problem::new("the clip was not run: there is no terminal to ask on").help(format!(
        "if you know where {} comes from and want all of this, use replay --trust",
        clip.display()
    )))
}
