//! Builds the runtime library, so that it can be carried inside the tool.
//!
//! The library is always built optimised and without unwinding, whatever profile the tool itself is built with,
//! hence a cargo of its own with a target directory of its own. It is built in a workspace of its own as well, made
//! of what is in `library/`: a package from a registry has no other, and what the repository's tests use should be
//! built like what is published.
//!
//! The inner cargo works offline. All it needs from a registry is `libc`, and this package depends on that too, so the
//! outer cargo already has it. `OUT_DIR` lies in the target directory, so the inner cargo finds the same configuration
//! as the outer one: in directories above, or in `CARGO_HOME`. It does not see options on the command line
//! (`--config`).

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the inner workspace is made of, and where it is in `library/`.
const LINKS: [(&str, &str); 8] = [
    ("Cargo.toml", "manifest.toml"),
    ("runtime/Cargo.toml", "runtime/manifest.toml"),
    ("runtime/build.rs", "runtime/build.rs"),
    ("runtime/src", "runtime/src"),
    ("trace/Cargo.toml", "trace/manifest.toml"),
    ("trace/src", "trace/src"),
    ("wire/Cargo.toml", "wire/manifest.toml"),
    ("wire/src", "wire/src"),
];

/// Set to `true`, it builds a library that checks its own borrows (see `Carrier` in the runtime), for tests. The inner
/// cargo reads it.
const CHECKED: &str = "CARGO_PROFILE_RUNTIME_DEBUG_ASSERTIONS";

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("library");
    let workspace = PathBuf::from(variable("OUT_DIR")).join("library");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=library");
    println!("cargo::rerun-if-env-changed={CHECKED}");
    for (name, target) in LINKS {
        link(&here.join(target), &workspace.join(name));
    }

    // The `libc` of the repository's lock file is used, if it is there: `cargo install` without `--locked` may have
    // chosen, and fetched, a newer one.
    let lock = workspace.join("Cargo.lock");
    fs::copy(here.join("Cargo.lock"), &lock).expect("cannot copy Cargo.lock");
    let fetch = cargo("fetch", &workspace).stderr(Stdio::null()).status().expect("cannot start cargo");
    if !fetch.success() {
        fs::remove_file(&lock).expect("cannot remove Cargo.lock");
    }
    // Each kind is kept, so that one does not have to be built again after the other.
    let target = workspace.join(if env::var_os(CHECKED).is_some() { "checked" } else { "target" });
    let mut build = cargo("build", &workspace);
    build.args(["--package", "threadbare-runtime", "--profile", "runtime"]).arg("--target-dir").arg(&target);
    // Exceptions of the program pass through frames of the library, which never unwinds itself.
    build.env("RUSTFLAGS", "-Cforce-unwind-tables=yes");
    let status = build.status().expect("cannot start cargo");
    assert!(status.success(), "the runtime library does not build");
    let library = target.join(variable("HOST")).join("runtime/libthreadbare_runtime.so");
    println!("cargo::rustc-env=THREADBARE_RUNTIME={}", library.display());
}

/// A command of the inner cargo.
fn cargo(command: &str, workspace: &Path) -> Command {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args([command, "--quiet", "--offline", "--target", &variable("HOST")]).current_dir(workspace);
    // What the outer cargo was told (clippy as a wrapper, flags for the tool) is not meant for the library.
    for variable in
        ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"]
    {
        cargo.env_remove(variable);
    }
    cargo
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}, which cargo sets: {error}"))
}

/// Makes `link` lead to `target`, whatever it led to before: the package may have moved since the last build.
fn link(target: &Path, link: &Path) {
    let directory = link.parent().expect("links are in the workspace");
    fs::create_dir_all(directory).expect("cannot make a directory for the library");
    match fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            panic!("cannot remove {}: {error}", link.display())
        }
        _ => symlink(target, link).expect("cannot make a link"),
    }
}
