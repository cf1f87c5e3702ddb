//! ARCHITECTURE.md and the manifests agree on who uses whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

type Uses = BTreeMap<String, BTreeSet<String>>;

/// A package's name in ARCHITECTURE.md: `hunt` for `threadbare-hunt`; `None` for what is not ours.
fn short_name(package: &str) -> Option<String> {
    match package {
        "threadbare" => Some("cli".to_owned()),
        _ => package.strip_prefix("threadbare-").map(str::to_owned),
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Who uses whom, as cargo builds it.
fn in_manifests() -> Uses {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo describes the workspace");
    let uses = |package: &Package| {
        let dependencies = package.dependencies.iter();
        let ordinary = dependencies.filter(|dependency| dependency.kind == DependencyKind::Normal);
        ordinary.filter_map(|dependency| short_name(&dependency.name)).collect()
    };
    let packages = metadata.packages.iter();
    packages.filter_map(|package| Some((short_name(&package.name)?, uses(package)))).collect()
}

/// Who uses whom, as the table of crates says: name, what it holds, what it uses.
fn in_architecture() -> Uses {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is an ARCHITECTURE.md");
    let table = text.split("\n## ").find(|section| section.starts_with("The crates")).expect("a section");
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut uses = Uses::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [name, _, used] = cells[..] else { panic!("three columns expected: {line}") };
        uses.insert(names(name).concat(), names(used).into_iter().collect());
    }
    uses
}

/// Protects the direction of dependencies: a crate that begins to use another has to say so where people look.
#[test]
fn the_table_of_crates_is_what_cargo_builds() {
    assert_eq!(in_architecture(), in_manifests());
}

/// Protects the rule that a method never calls another method, and that nothing below the hunt knows a method.
#[test]
fn no_method_uses_another() {
    let methods = ["rank", "predict", "guide", "variants", "correlate"];
    for (user, used) in in_manifests() {
        let may = ["hunt", "report", "cli", "bench"].contains(&user.as_str());
        let methods: Vec<_> = used.iter().filter(|name| methods.contains(&name.as_str())).collect();
        assert!(may || methods.is_empty(), "{user} uses {methods:?}");
    }
}
