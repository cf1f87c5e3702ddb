//! Fetches a Debian package and builds its program with the wrapper.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::Program;
use crate::build::succeeded;

/// A program that is ready to run.
pub struct Built {
    pub binary: PathBuf,
    pub version: String,
}

/// Fetches and builds `program` below `directory`, unless that was done before.
pub fn prepare(program: &Program, directory: &Path, tool: &Path) -> Result<Built, Box<dyn Error>> {
    let directory = directory.join(program.package);
    let tree = directory.join("source");
    let binary = tree.join(program.binary);
    fs::create_dir_all(&tree)?;
    let archive = match archive(&directory)? {
        Some(archive) => archive,
        None => fetch(program.package, &directory)?,
    };
    if !binary.exists() {
        let unpack = Command::new("tar")
            .args(["--strip-components=1", "-xf"])
            .arg(&archive)
            .arg("-C")
            .arg(&tree)
            .output()?;
        succeeded("unpack the source", &unpack)?;
        let build = Command::new("sh")
            .args(["-c", program.build])
            .current_dir(&tree)
            .env("CC", format!("{} cc", tool.display()))
            .env("CXX", format!("{} c++", tool.display()))
            .output()?;
        succeeded("build it", &build)?;
    }
    Ok(Built { binary, version: version(&archive) })
}

/// The authors' own archive. It is enough: what Debian adds is not built, and may be missing from a mirror.
fn archive(directory: &Path) -> Result<Option<PathBuf>, Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains(".orig.tar.") && !name.ends_with(".asc") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn fetch(package: &str, directory: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new("apt-get")
        .args(["source", "--download-only", package])
        .current_dir(directory)
        .output()
        .map_err(|error| format!("cannot run apt-get: {error}"))?;
    archive(directory)?.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("E:")).collect();
        format!("apt-get source does not get it (are there deb-src entries?): {}", errors.join(" ")).into()
    })
}

/// `name_VERSION.orig.tar.xz`
fn version(archive: &Path) -> String {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let version = name.split_once('_').and_then(|(_, rest)| rest.split_once(".orig.tar."));
    version.map_or_else(String::new, |(version, _)| version.to_owned())
}
