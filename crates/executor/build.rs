//! Builds the runtime library, so that it can be carried inside the tool.
//!
//! The library is always built optimised and without unwinding (profile `runtime` of the workspace), whatever
//! profile the tool itself is built with, hence a cargo of its own with a target directory of its own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let workspace = here.join("../..");
    for input in ["crates/runtime", "crates/trace", "crates/wire", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", workspace.join(input).display());
    }
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--package", "threadbare-runtime", "--profile", "runtime"])
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(out.join("runtime"));
    // What the outer cargo was told (clippy as a wrapper, flags for the tool) is not meant for the library.
    for variable in
        ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"]
    {
        build.env_remove(variable);
    }
    // Exceptions of the program pass through frames of the library, which never unwinds itself.
    build.env("RUSTFLAGS", "-Cforce-unwind-tables=yes");
    let status = build.status().expect("cannot start cargo");
    assert!(status.success(), "the runtime library does not build");
    let library = out.join("runtime/runtime/libthreadbare_runtime.so");
    println!("cargo::rustc-env=THREADBARE_RUNTIME={}", library.display());
}
