//! The cargo project, its compiler, and the programs that cargo builds.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cargo_metadata::{Artifact, Message, MetadataCommand, Package, PackageId, TargetKind};
use threadbare_executor::{Target, keep};

use super::arguments::CargoOptions;
use super::{facade, wrapper};
use crate::problem::Problem;

/// The user's compiler.
pub struct Compiler {
    pub program: PathBuf,
    /// The output of `rustc -vV`.
    pub version: String,
    /// The platform that it runs on. We build for the same one.
    pub host: String,
}

impl Compiler {
    pub fn find() -> Result<Compiler, Problem> {
        let program = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let version = output(Command::new(&program).arg("-vV"))?;
        let host =
            version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        Ok(Compiler { program, version, host })
    }

    /// The number after `1.` of its release; the largest number if the release is unknown.
    pub fn release(&self) -> u32 {
        let release = self.version.lines().find_map(|line| line.strip_prefix("release: 1."));
        release.and_then(|rest| rest.split('.').next()?.parse().ok()).unwrap_or(u32::MAX)
    }
}

/// A cargo project as `cargo metadata` describes it.
pub struct Project {
    packages: HashMap<PackageId, Package>,
    target_directory: PathBuf,
    compiler: Compiler,
    /// The root of the workspace.
    pub root: PathBuf,
    /// Where cargo is called; the current directory if `None`.
    directory: Option<PathBuf>,
    /// Arguments for every call of cargo.
    place: Vec<String>,
    /// Features and profile, for clips.
    variant: Vec<String>,
}

/// A program that cargo has built.
pub struct Executable {
    pub path: PathBuf,
    /// As nextest names it: `package`, `package::integration_test`, `package::bin/program`.
    pub name: String,
    is_test: bool,
    /// The arguments with which cargo builds this program alone.
    pub recipe: Vec<String>,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Executable {
    /// The target, run as cargo runs it: a test in the directory of its package, a program in the current directory.
    pub fn target(&self, arguments: Vec<OsString>) -> Target {
        let mut environment = self.environment.clone();
        // A backtrace takes longer than most runs, and what is shown is the interleaving.
        environment.push(("RUST_BACKTRACE".into(), "0".into()));
        let directory = self.is_test.then(|| self.directory.clone());
        Target { program: self.path.clone(), arguments, directory, environment, ..Target::default() }
    }

    /// The same as a command. The runtime is loaded, but does not schedule.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.directory).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The result of a build.
pub struct Built {
    pub executables: Vec<Executable>,
    /// Procedural macros: packages whose code runs inside the compiler, and so do their tests.
    pub in_compiler: Vec<String>,
    /// Something did not build. The compiler has printed the errors.
    pub incomplete: bool,
}

impl Project {
    /// The project that the options name, or else the one around `directory`, or else around the current one.
    pub fn find(options: &CargoOptions, directory: Option<&Path>) -> Result<Project, Problem> {
        let place = options.place_arguments();
        let directory = directory.filter(|_| !options.names_manifest()).map(Path::to_owned);
        let mut metadata = MetadataCommand::new();
        metadata.cargo_path(cargo_program()).no_deps().other_options(place.clone());
        if let Some(directory) = &directory {
            metadata.current_dir(directory);
        }
        let metadata = metadata.exec().map_err(metadata_problem)?;
        let packages = metadata.packages.into_iter().map(|package| (package.id.clone(), package)).collect();
        Ok(Project {
            packages,
            target_directory: metadata.target_directory.join("threadbare").into(),
            root: metadata.workspace_root.into(),
            compiler: Compiler::find()?,
            directory,
            place,
            variant: options.variant_arguments(),
        })
    }

    /// Runs `cargo build` or `cargo test --no-run`, instrumented.
    pub fn build(&self, command: &str, selection: &[String]) -> Result<Built, Problem> {
        let first = match command {
            "test" => vec!["test", "--no-run"],
            _ => vec![command, "--keep-going"],
        };
        let mut result = self.run_cargo(&first, selection, Stdio::inherit())?;
        // `cargo test` starts nothing more once something does not build. The errors were printed.
        if !result.status.success()
            && command == "test"
            && let Some(options) = keep_going(selection)
        {
            result = self.run_cargo(&options, selection, Stdio::null())?;
        }
        let wants_tests = command == "test";
        let artifacts = Message::parse_stream(&result.stdout[..]).filter_map(|message| match message {
            Ok(Message::CompilerArtifact(artifact)) => Some(artifact),
            _ => None,
        });
        let (in_compiler, artifacts): (Vec<Artifact>, Vec<Artifact>) = artifacts
            .filter(|artifact| artifact.profile.test == wants_tests && artifact.executable.is_some())
            .partition(|artifact| artifact.target.kind.contains(&TargetKind::ProcMacro));
        let executables: Vec<Executable> =
            artifacts.into_iter().filter_map(|artifact| self.executable(artifact, command)).collect();
        if executables.is_empty() && !result.status.success() {
            return Err(Problem::new("the project does not build"));
        }
        let in_compiler = in_compiler.into_iter().map(|artifact| artifact.target.name).collect();
        Ok(Built { executables, in_compiler, incomplete: !result.status.success() })
    }

    /// Runs cargo with these arguments, instrumented, and reads its messages.
    fn run_cargo(&self, options: &[&str], selection: &[String], stderr: Stdio) -> Result<Output, Problem> {
        let runtime = threadbare_executor::install().map_err(|error| Problem::new(error.to_string()))?;
        let mut cargo = Command::new(cargo_program());
        if let Some(directory) = &self.directory {
            cargo.current_dir(directory);
        }
        cargo
            .args(options)
            .args(["--message-format=json-render-diagnostics", "--target", &self.compiler.host])
            .arg("--target-dir")
            .arg(&self.target_directory)
            .args(&self.place)
            .args(selection)
            .stdin(Stdio::null())
            .stderr(stderr);
        wrapper::insert(&mut cargo, &self.compiler, &facade::prepare(&self.compiler)?, &runtime)?;
        keep(&mut cargo)
            .and_then(|()| cargo.output())
            .map_err(|error| Problem::new(format!("cannot run cargo: {error}")))
    }

    fn executable(&self, artifact: Artifact, command: &str) -> Option<Executable> {
        let package = self.packages.get(&artifact.package_id)?;
        let path = artifact.executable?;
        let target = &artifact.target.name;
        let (name, choice) = match artifact.target.kind.first() {
            Some(TargetKind::Bin) => (format!("{}::bin/{target}", package.name), format!("--bin={target}")),
            Some(TargetKind::Example) => {
                (format!("{}::example/{target}", package.name), format!("--example={target}"))
            }
            Some(TargetKind::Test) => (format!("{}::{target}", package.name), format!("--test={target}")),
            Some(TargetKind::Bench) => {
                (format!("{}::bench/{target}", package.name), format!("--bench={target}"))
            }
            _ => (package.name.to_string(), "--lib".to_owned()),
        };
        let mut recipe = vec![command.to_owned(), format!("--package={}", package.name), choice];
        recipe.extend(self.variant.iter().cloned());
        let manifest = package.manifest_path.as_std_path();
        let directory = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        Some(Executable {
            path: path.into(),
            name,
            is_test: artifact.profile.test,
            recipe,
            environment: environment(package, &directory),
            directory,
        })
    }
}

/// The arguments with which cargo builds everything that `cargo test` would and that can be built. `None` if there are
/// none: `cargo build` does not build the tests of a library or program that is named.
fn keep_going(selection: &[String]) -> Option<Vec<&'static str>> {
    let has = |prefixes: &[&str]| {
        selection.iter().any(|argument| prefixes.iter().any(|prefix| argument.starts_with(prefix)))
    };
    if has(&["--lib", "--bin"]) {
        return None;
    }
    let mut options = vec!["build", "--keep-going"];
    if !has(&["--test", "--example"]) {
        options.push("--tests");
    }
    if !has(&["--release", "--profile"]) {
        options.push("--profile=test");
    }
    Some(options)
}

/// The variables that cargo sets for a test.
fn environment(package: &Package, directory: &Path) -> Vec<(OsString, OsString)> {
    let variable = |name: &str, value: &OsStr| (name.into(), value.to_owned());
    vec![
        variable("CARGO_MANIFEST_DIR", directory.as_os_str()),
        variable("CARGO_MANIFEST_PATH", package.manifest_path.as_std_path().as_os_str()),
        variable("CARGO_PKG_NAME", OsStr::new(package.name.as_str())),
        variable("CARGO_PKG_VERSION", OsStr::new(&package.version.to_string())),
    ]
}

/// The cargo that called us.
fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

/// Cargo cannot describe the project.
fn metadata_problem(error: cargo_metadata::Error) -> Problem {
    match error {
        cargo_metadata::Error::CargoMetadata { stderr } => says("cargo", &stderr),
        cargo_metadata::Error::Io(error) => not_started("cargo", &error),
        error => Problem::new(format!("cannot understand cargo metadata: {error}")),
    }
}

/// The problem of a command that failed, with its own words.
fn says(name: &str, words: &str) -> Problem {
    Problem::new(format!("{name} says: {}", words.trim().trim_start_matches("error: ")))
}

fn not_started(name: &str, error: &io::Error) -> Problem {
    Problem::new(format!("cannot run {name}: {error}")).help("install Rust: https://rustup.rs")
}

/// The output of a command, if it succeeds.
fn output(command: &mut Command) -> Result<String, Problem> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::piped()).output();
    let output = output.map_err(|error| not_started(&name, &error))?;
    if !output.status.success() {
        return Err(says(&name, &String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
