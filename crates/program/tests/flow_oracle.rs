//! Our control flow against LLVM's own, for programs that LLVM compiled with a list of its blocks and edges.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::Workspace;
use support::sancov::{self, Comparison, Likeness};

/// What makes rustc's LLVM put the list into the program.
const LISTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
    -Cllvm-args=-sanitizer-coverage-control-flow -Cllvm-args=-sanitizer-coverage-pc-table";
/// Keeps the code as it was when the list was made.
const UNCHANGED: &str = "-Cllvm-args=-disable-branch-fold -Cllvm-args=-disable-tail-duplicate \
    -Cllvm-args=-disable-early-taildup -Cllvm-args=-disable-block-placement -Cllvm-args=-disable-cgp";
/// As the tool builds programs. Nothing defines the hooks, because the program is only read.
const INSTRUMENTED: &str = "-Zsanitizer=thread -Zexternal-clangrt -Cunsafe-allow-abi-mismatch=sanitizer \
    -Clink-arg=-Wl,--unresolved-symbols=ignore-all";

/// Builds one program and compares it.
fn compared(workspace: &Workspace, source: &str, flags: &str, likeness: Likeness) -> Comparison {
    let order = if likeness == Likeness::Same { UNCHANGED } else { "" };
    let flags = format!("{LISTED} {order} {flags} {source} -o program");
    workspace.run(Command::new("rustc").env("RUSTC_BOOTSTRAP", "1").args(flags.split_whitespace()));
    let executable = workspace.path("program");
    let program = support::open(&executable);
    let listed = sancov::listed_blocks(&executable);
    sancov::compare(&program.code().expect("it has code"), &listed, likeness)
}

/// Protects every kind of edge that rustc makes, at every level of optimisation.
#[test]
fn no_edge_of_llvm_is_missing() {
    let workspace = Workspace::new();
    workspace.write("shapes.rs", include_str!("programs/shapes.rs"));
    for level in 0..=3 {
        let cases = [(INSTRUMENTED, Likeness::Same), (INSTRUMENTED, Likeness::Rearranged)];
        for (more, likeness) in cases {
            let flags = format!("--edition 2024 -Copt-level={level} {more}");
            let comparison = compared(&workspace, "shapes.rs", &flags, likeness);
            let Comparison { blocks, edges, calls, missing } = comparison;
            assert!(blocks > 4000 && edges > 2000 && calls > 1000, "{flags}: {blocks} {edges} {calls}");
            assert!(missing.is_empty(), "{flags} {likeness:?}: {missing:#?}");
        }
    }
}

/// Protects a large body of code that nobody wrote for this test: one of our dependencies, optimised and instrumented.
#[test]
fn no_edge_of_a_large_library_is_missing() {
    let workspace = Workspace::new();
    let source = source_of("cpp_demangle").join("src/lib.rs");
    let features = "--cfg feature=\"std\" --cfg feature=\"alloc\"";
    let flags = format!(
        "--edition 2018 --crate-name large --crate-type dylib --cap-lints allow {features} -Copt-level=2 {INSTRUMENTED}"
    );
    let comparison = compared(&workspace, &source.display().to_string(), &flags, Likeness::Same);
    assert!(comparison.blocks > 10_000 && comparison.edges > 15_000, "{comparison:?}");
    assert!(comparison.missing.is_empty(), "{:#?}", comparison.missing);
}

/// Where cargo keeps the source of a dependency.
fn source_of(dependency: &str) -> PathBuf {
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    let metadata = String::from_utf8_lossy(&metadata.stdout).into_owned();
    let paths = metadata.split("\"manifest_path\":\"").filter_map(|rest| rest.split('"').next());
    let is_it = |path: &&str| path.contains(&format!("/{dependency}-")) && path.ends_with("/Cargo.toml");
    let manifest = PathBuf::from(paths.into_iter().find(is_it).expect("it is a dependency"));
    manifest.parent().expect("the manifest is in a directory").to_owned()
}
