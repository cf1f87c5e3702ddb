//! The cargo project, its compiler, and what cargo builds of it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use threadbare_executor::Target;

use super::arguments::CargoOptions;
use super::{facade, wrapper};
use crate::problem::Problem;

/// The user's compiler.
pub struct Compiler {
    pub program: PathBuf,
    /// All it says of itself.
    pub version: String,
    /// The platform it runs on, which is also what we build for.
    pub host: String,
}

impl Compiler {
    fn find() -> Result<Compiler, Problem> {
        let program = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let version = output(Command::new(&program).arg("-vV"))?;
        let host =
            version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        Ok(Compiler { program, version, host })
    }

    /// The number after `1.` of its release; of one that does not say, more than any.
    pub fn release(&self) -> u32 {
        let release = self.version.lines().find_map(|line| line.strip_prefix("release: 1."));
        release.and_then(|rest| rest.split('.').next()?.parse().ok()).unwrap_or(u32::MAX)
    }
}

/// A cargo project as `cargo metadata` describes it.
pub struct Project {
    packages: HashMap<String, Package>,
    target_directory: PathBuf,
    compiler: Compiler,
    /// For every call of cargo.
    place: Vec<String>,
    /// Features and profile, for clips.
    variant: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// What cargo says of a thing it has built, as far as we want to know.
#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    target: BuildTarget,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct BuildTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A program that cargo has built.
pub struct Executable {
    pub path: PathBuf,
    /// As nextest names it: `package`, `package::integration_test`, `package::bin/program`.
    pub name: String,
    is_test: bool,
    /// The arguments by which cargo builds it and nothing else.
    pub recipe: Vec<String>,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Executable {
    /// Runs as cargo would run it: a test in the directory of its package, a program where the user is.
    pub fn target(&self, arguments: Vec<OsString>) -> Target {
        let mut environment = self.environment.clone();
        // A backtrace takes longer than most runs, and what is shown is the interleaving.
        environment.push(("RUST_BACKTRACE".into(), "0".into()));
        let directory = self.is_test.then(|| self.directory.clone());
        Target { program: self.path.clone(), arguments, directory, environment, ..Target::default() }
    }

    /// The same as a command: with the runtime, but not under it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.directory).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// What came of a build.
pub struct Built {
    pub executables: Vec<Executable>,
    /// Packages whose code runs inside the compiler, procedural macros: their tests are built for that.
    pub in_compiler: Vec<String>,
    /// Something did not build; the compiler has said what.
    pub incomplete: bool,
}

impl Project {
    pub fn find(options: &CargoOptions) -> Result<Project, Problem> {
        let place = options.place_arguments();
        let text = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]).args(&place))?;
        let metadata: Metadata = serde_json::from_str(&text)
            .map_err(|error| Problem::new(format!("cannot understand cargo metadata: {error}")))?;
        let packages = metadata.packages.into_iter().map(|package| (package.id.clone(), package)).collect();
        Ok(Project {
            packages,
            target_directory: metadata.target_directory.join("threadbare"),
            compiler: Compiler::find()?,
            place,
            variant: options.variant_arguments(),
        })
    }

    /// Runs `cargo build` or `cargo test --no-run`, instrumented.
    pub fn build(&self, command: &str, selection: &[String]) -> Result<Built, Problem> {
        let runtime = threadbare_executor::install().map_err(|error| Problem::new(error.to_string()))?;
        let mut cargo = cargo();
        cargo.arg(command).args(match command {
            "test" => &["--no-run", "--no-fail-fast"][..],
            _ => &["--keep-going"],
        });
        cargo
            .args(["--message-format=json-render-diagnostics", "--target", &self.compiler.host])
            .arg("--target-dir")
            .arg(&self.target_directory)
            .args(&self.place)
            .args(selection)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        wrapper::insert(&mut cargo, &self.compiler, &facade::prepare(&self.compiler)?, &runtime)?;
        let result = cargo.output().map_err(|error| Problem::new(format!("cannot run cargo: {error}")))?;
        let wants_tests = command == "test";
        let artifacts = String::from_utf8_lossy(&result.stdout);
        let artifacts = artifacts.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
        let (in_compiler, artifacts): (Vec<Artifact>, Vec<Artifact>) = artifacts
            .filter(|artifact| artifact.profile.test == wants_tests && artifact.executable.is_some())
            .partition(|artifact| artifact.target.kind.iter().any(|kind| kind == "proc-macro"));
        let executables: Vec<Executable> =
            artifacts.into_iter().filter_map(|artifact| self.executable(artifact, command)).collect();
        if executables.is_empty() && !result.status.success() {
            return Err(Problem::new("the project does not build"));
        }
        let in_compiler = in_compiler.into_iter().map(|artifact| artifact.target.name).collect();
        Ok(Built { executables, in_compiler, incomplete: !result.status.success() })
    }

    fn executable(&self, artifact: Artifact, command: &str) -> Option<Executable> {
        let package = self.packages.get(&artifact.package_id)?;
        let path = artifact.executable?;
        let kind = artifact.target.kind.first().map_or("", String::as_str);
        let target = &artifact.target.name;
        let (name, choice) = match kind {
            "bin" => (format!("{}::bin/{target}", package.name), format!("--bin={target}")),
            "example" => (format!("{}::example/{target}", package.name), format!("--example={target}")),
            "test" => (format!("{}::{target}", package.name), format!("--test={target}")),
            "bench" => (format!("{}::bench/{target}", package.name), format!("--bench={target}")),
            _ => (package.name.clone(), "--lib".to_owned()),
        };
        let mut recipe = vec![command.to_owned(), format!("--package={}", package.name), choice];
        recipe.extend(self.variant.iter().cloned());
        let directory = package.manifest_path.parent().unwrap_or(Path::new("/")).to_owned();
        Some(Executable {
            path,
            name,
            is_test: artifact.profile.test,
            recipe,
            environment: environment(package, &directory),
            directory,
        })
    }
}

/// What cargo sets for a test.
fn environment(package: &Package, directory: &Path) -> Vec<(OsString, OsString)> {
    let variable = |name: &str, value: &OsStr| (name.into(), value.to_owned());
    vec![
        variable("CARGO_MANIFEST_DIR", directory.as_os_str()),
        variable("CARGO_MANIFEST_PATH", package.manifest_path.as_os_str()),
        variable("CARGO_PKG_NAME", OsStr::new(&package.name)),
        variable("CARGO_PKG_VERSION", OsStr::new(&package.version)),
    ]
}

/// The cargo that called us.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What a command prints, if it succeeds.
fn output(command: &mut Command) -> Result<String, Problem> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::piped()).output();
    let output = output.map_err(|error| {
        Problem::new(format!("cannot run {name}: {error}")).help("install Rust: https://rustup.rs")
    })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let words = words.trim().trim_start_matches("error: ");
        return Err(Problem::new(format!("{name} says: {words}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
