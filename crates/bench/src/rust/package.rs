//! Fetches the source of a package.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Result;
use crate::build;

pub struct Package {
    pub name: &'static str,
    pub features: &'static [&'static str],
    /// Only integration tests whose names begin like this; the library's own tests and all others if empty.
    pub tests: &'static str,
}

const fn whole(name: &'static str) -> Package {
    Package { name, features: &[], tests: "" }
}

pub const PACKAGES: &[Package] = &[
    whole("crossbeam-channel"),
    whole("crossbeam-queue"),
    whole("crossbeam-deque"),
    whole("parking_lot"),
    whole("once_cell"),
    whole("arc-swap"),
    whole("dashmap"),
    whole("flume"),
    whole("concurrent-queue"),
    whole("async-channel"),
    whole("rayon-core"),
    Package { name: "tokio", features: &["full", "test-util"], tests: "sync_" },
];

/// A package as it was published, unpacked to be built.
pub struct Source {
    pub version: String,
    pub directory: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

impl Package {
    /// Has cargo fetch the current version, and copies it below `directory`.
    pub fn fetch(&self, directory: &Path) -> Result<Source> {
        let found = self.find()?;
        let copy = directory.join(format!("{}-{}", found.name, found.version));
        if !copy.exists() {
            let original = found.manifest_path.parent().ok_or("cargo names no directory")?;
            let copied = build::command("cp").arg("-r").arg(original).arg(&copy).output()?;
            build::succeeded("copy the source", &copied)?;
            stand_alone(&copy.join("Cargo.toml"))?;
        }
        Ok(Source { version: found.version, directory: copy })
    }

    /// A project that depends on any version gets the newest one. (Of this edition, because later ones look for
    /// a version that suits an older compiler.)
    fn find(&self) -> Result<Found> {
        let name = self.name;
        let project = tempfile::tempdir()?;
        fs::create_dir(project.path().join("src"))?;
        fs::write(project.path().join("src/lib.rs"), "")?;
        fs::write(
            project.path().join("Cargo.toml"),
            format!(
                "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
                 [dependencies]\n{name} = \"*\"\n"
            ),
        )?;
        let output = build::command(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--filter-platform=x86_64-unknown-linux-gnu"])
            .current_dir(project.path())
            .output()?;
        build::succeeded("fetch it from the registry", &output)?;
        let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
        let mut packages = metadata.packages.into_iter();
        packages.find(|package| package.name == name).ok_or_else(|| "cargo did not fetch it".into())
    }
}

/// Belongs to no workspace, wherever it lies.
fn stand_alone(manifest: &Path) -> Result<()> {
    let text = fs::read_to_string(manifest)?;
    if !text.lines().any(|line| line == "[workspace]") {
        fs::write(manifest, text + "\n[workspace]\n")?;
    }
    Ok(())
}
