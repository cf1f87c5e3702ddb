//! The facade, compiled by the user's own compiler.
//!
//! Its source travels inside this program. The compiled facade depends on that source and on the compiler alone, so it is
//! compiled once for each compiler and kept in the cache.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::project::Compiler;
use crate::problem::Problem;

/// The paths and contents of its files, from the build script.
const SOURCE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/facade.rs"));

/// The file name. The crate is called `std`, so that messages, type names and paths read as usual.
const LIBRARY: &str = "libstd.rlib";
/// The directory of its source files in debug information. It shows that they are not the user's.
const SOURCE_NAME: &str = "/rustc/threadbare";

const FLAGS: [&str; 9] = [
    "--crate-name=std",
    "--crate-type=rlib",
    "--edition=2024",
    "--cap-lints=allow",
    "-Copt-level=3",
    "-Cdebuginfo=line-tables-only",
    // Tells it from the real one.
    "-Cmetadata=threadbare",
    "-Cembed-bitcode=no",
    "-Cforce-unwind-tables=yes",
];

/// The directory with the facade for this compiler.
pub fn prepare(compiler: &Compiler) -> Result<PathBuf, Problem> {
    let cache = threadbare_executor::cache()
        .map_err(|error| Problem::new(format!("cannot make a directory for the facade: {error}")))?;
    let directory = cache.join(format!("std-{:016x}", fingerprint(compiler)));
    if directory.join(LIBRARY).exists() {
        return Ok(directory);
    }
    let cannot = |error: io::Error| Problem::file("write the facade to", &directory, error);
    // Made beside and renamed, so that it is whole or not there.
    let new = tempfile::Builder::new().prefix("std-").tempdir_in(&cache).map_err(cannot)?;
    write_source(new.path()).map_err(cannot)?;
    compile(compiler, new.path())?;
    match fs::rename(new.path(), &directory) {
        // Somebody else was faster.
        Err(_) if directory.join(LIBRARY).exists() => Ok(directory),
        renamed => renamed.map(|()| directory.clone()).map_err(cannot),
    }
}

/// The library in its directory.
pub fn library(directory: &Path) -> PathBuf {
    directory.join(LIBRARY)
}

fn fingerprint(compiler: &Compiler) -> u64 {
    let mut hasher = DefaultHasher::new();
    (SOURCE, FLAGS, &compiler.version, &compiler.host).hash(&mut hasher);
    hasher.finish()
}

fn write_source(directory: &Path) -> io::Result<()> {
    for (name, text) in SOURCE {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn compile(compiler: &Compiler, directory: &Path) -> Result<(), Problem> {
    let mut command = Command::new(&compiler.program);
    command
        .args(FLAGS)
        .arg(format!("--target={}", compiler.host))
        .arg(format!("--remap-path-prefix={}={SOURCE_NAME}", directory.display()))
        .arg("-o")
        .arg(library(directory))
        .arg(directory.join("lib.rs"));
    let output = command.output().map_err(|error| Problem::file("run", &compiler.program, error))?;
    if output.status.success() {
        return Ok(());
    }
    let version = compiler.version.lines().next().unwrap_or_default();
    Err(Problem::new(format!("what stands in for std does not compile with {version}"))
        .help(format!("Threadbare needs Rust 1.88 or later\n{}", String::from_utf8_lossy(&output.stderr))))
}
