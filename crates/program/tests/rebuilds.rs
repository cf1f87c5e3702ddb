//! Rust programs whose hashes are others in the next build, as with a new compiler, dependency or version.
//!
//! `cargo threadbare` builds with flags that are not stable, and with those the compiler mangles names the v0 way:
//! each crate has a hash, and so has each mention of a crate in a name.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use support::{Workspace, open};
use threadbare_program::Program;
use threadbare_trace::Site;

/// A crate that the program uses.
const STORE: &str = r#"
pub struct Box2<T>(pub T, pub T);
pub trait Grow { fn grow(&mut self); }
impl<T: Copy> Grow for Box2<T> {
    fn grow(&mut self) { self.0 = note(self.1); }
}
#[inline]
pub fn note<T>(value: T) -> T { std::hint::black_box(value) }
pub fn each<F: FnMut(u32)>(mut f: F) { f(1); f(2); }
#[inline(never)]
pub fn own() {
    each(|n| { note(n); });
    Box2(1u64, 2u64).grow();
    vec![1u16].push(2);
}
"#;

/// Another, which knows nothing of the first: both have a copy of `Vec::<u16>::push`.
const TILL: &str = r#"
#[inline(never)]
pub fn own() { vec![1u16].push(2); }
"#;

/// Short names on purpose: `closure` and `usize` are longer, and are in no mangled name.
const BANK: &str = r#"
use store::{Box2, Grow, each, note};
static mut SUM: u32 = 0;
mod b { pub static mut SUM: [u32; 2] = [0; 2]; }
struct Acc(u32);
impl Acc { fn add(&mut self, n: u32) { self.0 += note(n); } }
impl Grow for Acc { fn grow(&mut self) { self.add(1); } }
trait Up { fn up(&mut self); }
impl Up for usize { fn up(&mut self) { *self = note(*self); } }
impl Drop for Acc { fn drop(&mut self) { unsafe { SUM = note(self.0); } } }
fn a() { each(|n| { note(n); }); each(|n| { let f = || note(n); f(); }); }
fn dynamic(g: &mut dyn Grow) { g.grow(); }
fn array<const N: usize>(of: [u32; N]) { note(of.len()); }
fn main() {
    a();
    store::own();
    till::own();
    Box2(1u8, 2u8).grow();
    Box2("text", "other").grow();
    3usize.up();
    dynamic(&mut Acc(1));
    array([1]);
    array([1, 2]);
    unsafe { b::SUM[1] = note(SUM); }
}
"#;

/// Builds the three crates with hashes that depend on `version`.
fn build(workspace: &Workspace, version: &str, flags: &str) -> Program {
    let flags = format!("-g --edition=2024 -Csymbol-mangling-version=v0 -Cmetadata={version} {flags}");
    let mut externs = String::new();
    for (name, source) in [("store", STORE), ("till", TILL)] {
        let library = format!("lib{name}-{version}.rlib");
        workspace.write(&format!("{name}.rs"), source);
        workspace.compile("rustc", &format!("{flags} --crate-type=rlib {name}.rs"), &library);
        externs += &format!(" --extern={name}={library}");
    }
    workspace.write("bank.rs", BANK);
    open(&workspace.compile("rustc", &format!("{flags}{externs} bank.rs"), &format!("bank-{version}")))
}

/// How names with one of our crates' end.
const CRATES: [&str; 3] = ["5store", "4till", "4bank"];

/// The symbols of a program, functions or variables, that have one of our crates in their name.
fn symbols(workspace: &Workspace, program: &str) -> BTreeSet<String> {
    let table = workspace.run(Command::new("nm").arg(program));
    let names = table.lines().filter_map(|line| line.split_whitespace().nth(2));
    let ours = names.filter(|name| name.starts_with("_R") && CRATES.iter().any(|part| name.contains(part)));
    ours.map(str::to_owned).collect()
}

/// Every call of these functions, by trying each address of them as a return address.
fn sites(program: &Program, functions: &BTreeSet<String>) -> Vec<(u64, Site)> {
    let starts = functions.iter().filter_map(|function| program.symbol_address(function));
    let addresses: BTreeSet<u64> = starts.flat_map(|start| start..start + 600).collect();
    let sites = addresses.into_iter().filter_map(|address| Some((address, program.site(address)?)));
    sites.filter(|(_, site)| functions.contains(&site.function)).collect()
}

/// Protects clips of Rust programs from the hashes in v0 names: every call in closures, generic functions, methods
/// of traits and of types, and in each crate's copy of a library function, leads to its counterpart.
#[test]
fn every_call_is_found_again_under_other_hashes() {
    const UNOPTIMISED: &str = "-Copt-level=0";
    for flags in [UNOPTIMISED, "-Copt-level=2 -Ccodegen-units=1"] {
        let workspace = Workspace::new();
        let (before, after) = (build(&workspace, "one", flags), build(&workspace, "two", flags));
        let (names_before, names_after) = (symbols(&workspace, "bank-one"), symbols(&workspace, "bank-two"));
        assert!(names_before.is_disjoint(&names_after), "{flags}: the hashes are the same");
        let (sites_before, sites_after) = (sites(&before, &names_before), sites(&after, &names_after));
        assert_eq!(sites_before.len(), sites_after.len(), "{flags}");
        let mut found = BTreeSet::new();
        for (address, site) in &sites_before {
            let there = after.find_site(site).unwrap_or_else(|| panic!("{flags}: not found: {site:?}"));
            let counterpart = after.site(there).expect("what was found is a call");
            assert_eq!(before.find_site(&counterpart), Some(*address), "{flags}: {site:?}, {counterpart:?}");
            // The copy that was made for the same crate, which is the end of the name.
            let made_for = |site: &Site| CRATES.map(|name| site.function.ends_with(name));
            assert_eq!(made_for(site), made_for(&counterpart), "{flags}: {site:?}, {counterpart:?}");
            assert!(found.insert(there), "{flags}: {site:?} and another lead to {counterpart:?}");
        }
        // Without optimisation nothing is inlined, so that there is a call in each of them.
        for part in ["NCNvCs", "4note", "Box2", "4grow", "5array", "4push"] {
            let is_there = sites_before.iter().any(|(_, site)| site.function.contains(part));
            assert!(is_there || flags != UNOPTIMISED, "{flags}: no call in {part}");
        }
    }
}

/// Protects what a clip says is shared: a static whose name has another hash is the same static, and one of the
/// same last name in another module is not.
#[test]
fn every_static_is_found_again_under_other_hashes() {
    let workspace = Workspace::new();
    let (before, after) = (build(&workspace, "one", ""), build(&workspace, "two", ""));
    let of = |program: &Program, file: &str, ending: &str| {
        let names = symbols(&workspace, file);
        let name = names.iter().find(|name| name.ends_with(ending)).expect("the static has a symbol");
        (name.clone(), program.symbol_address(name).expect("the symbol has an address"))
    };
    for (ending, display) in [("4bank3SUM", "bank::SUM"), ("4bank1b3SUM", "bank::b::SUM[0]")] {
        let ((name, here), (name_after, there)) =
            (of(&before, "bank-one", ending), of(&after, "bank-two", ending));
        assert_eq!(before.global(here).map(|global| global.display).as_deref(), Some(display));
        assert_eq!(after.symbol_address(&name), Some(there), "{name}");
        assert_eq!(before.symbol_address(&name_after), Some(here), "{name_after}");
    }
    let (name, _) = of(&before, "bank-one", "4bank3SUM");
    assert_eq!(after.symbol_address(&name.replace("3SUM", "3ALL")), None, "it is in neither");
}

/// Protects against taking one crate for another: two versions of a dependency differ in nothing but the hash.
#[test]
fn a_static_of_two_versions_of_a_crate_is_not_guessed() {
    let workspace = Workspace::new();
    let twice = |first: &str, second: &str| -> Program {
        let flags = "-g --edition=2024 -Csymbol-mangling-version=v0";
        workspace.write("part.rs", "pub static mut SUM: u32 = 0; pub fn add() { unsafe { SUM += 1; } }");
        workspace.write("whole.rs", "fn main() { one::add(); two::add(); }");
        for version in [first, second] {
            let flags = format!("{flags} --crate-type=rlib -Cmetadata={version} part.rs");
            workspace.compile("rustc", &flags, &format!("libpart-{version}.rlib"));
        }
        let externs = format!("--extern=one=libpart-{first}.rlib --extern=two=libpart-{second}.rlib");
        open(&workspace.compile("rustc", &format!("{flags} {externs} whole.rs"), first))
    };
    let (before, after) = (twice("v1", "v2"), twice("v3", "v4"));
    let sums = workspace.run(Command::new("nm").arg(Path::new("v1")));
    let sums: Vec<&str> = sums.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let sums: Vec<&str> = sums.into_iter().filter(|name| name.ends_with("4part3SUM")).collect();
    assert_eq!(sums.len(), 2, "{sums:?}");
    for name in sums {
        assert!(before.symbol_address(name).is_some());
        assert_eq!(after.symbol_address(name), None, "to guess would be wrong half of the time");
    }
}
