//! Which loads feed branches, stores, locks and calls, in programs of every compiler.
//!
//! The sources in `dependence/` say so themselves, in comments. Nothing that is named there may be missed. What is found
//! besides is counted, and the count is bounded, so that the analysis cannot become useless unseen.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use support::{Workspace, open};
use threadbare_program::Program;
use threadbare_program::dependence::{Dependent, FunctionDependence, Load};
use threadbare_program::flow::ModuleCode;

/// What a comment says of its line.
struct Expectation {
    line: u32,
    kind: String,
    names: Vec<String>,
}

fn expectations(source: &str) -> Vec<Expectation> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate().skip(6) {
        let Some((_, comment)) = line.split_once("// ") else { continue };
        for part in comment.split(';') {
            let Some((kind, names)) = part.trim().split_once(": ") else { continue };
            let names = names.split(',').map(|name| name.trim().to_string()).collect();
            let line = u32::try_from(number + 1).expect("sources are short");
            found.push(Expectation { line, kind: kind.to_string(), names });
        }
    }
    found
}

/// Whether a load with these names is one that is asked for as `a|b`.
fn is_one_of(asked: &str, names: &BTreeSet<String>) -> bool {
    asked.split('|').any(|name| names.contains(name))
}

/// What was compared.
#[derive(Default)]
struct Outcome {
    targets: usize,
    /// Expectations for which the compiler made no code.
    absent: usize,
    missed: Vec<String>,
    found: usize,
    added: usize,
    incomplete: usize,
}

struct Checked<'a> {
    program: &'a Program,
    code: ModuleCode<'a>,
    source: Vec<&'a str>,
    file: &'a str,
}

impl Checked<'_> {
    /// The line of the tested file that an instruction was made of.
    fn line(&self, address: u64) -> Option<u32> {
        let location = self.program.location(self.code.relocated(address) + 1);
        let frame = location.frames.iter().find(|frame| frame.file.ends_with(self.file))?;
        Some(frame.line)
    }

    /// The names of what a load reads: the variable at a fixed address, or else every word of its line and of the name
    /// of its function.
    fn names(&self, load: &Load) -> BTreeSet<String> {
        if let Some(global) = self.fixed_address(load).and_then(|address| self.program.global(address)) {
            return BTreeSet::from([global.symbol]);
        }
        let line = self.line(load.address).and_then(|line| self.source.get(line as usize - 1));
        let code = line.map(|line| line.split("// ").next().unwrap_or_default()).unwrap_or_default();
        let word = |c: char| !c.is_alphanumeric() && c != '_';
        let location = self.program.location(self.code.relocated(load.address) + 1);
        let function = location.frames.first().map(|frame| frame.function.as_str()).unwrap_or_default();
        let words = code.split(word).chain(function.split(word));
        words.filter(|word| !word.is_empty()).map(str::to_string).collect()
    }

    fn fixed_address(&self, load: &Load) -> Option<u64> {
        Some(self.code.relocated(self.code.fixed_address(load.address)?))
    }

    fn check(&self, functions: &[std::sync::Arc<FunctionDependence>], outcome: &mut Outcome) {
        let mut by_line: BTreeMap<(String, u32), Vec<&Dependent>> = BTreeMap::new();
        for function in functions {
            let lists = [
                ("branch", &function.branches),
                ("store", &function.stores),
                ("lock", &function.locks),
                ("call", &function.indirect_calls),
            ];
            for (kind, list) in lists {
                for dependent in list {
                    if let Some(line) = self.line(dependent.address) {
                        by_line.entry((kind.to_string(), line)).or_default().push(dependent);
                    }
                }
            }
        }
        for expected in expectations(&self.source.join("\n")) {
            let Some(found) = by_line.get(&(expected.kind.clone(), expected.line)) else {
                outcome.absent += 1;
                continue;
            };
            outcome.targets += 1;
            outcome.incomplete += usize::from(found.iter().any(|found| !found.loads.is_complete()));
            let loads: BTreeSet<&Load> = found.iter().flat_map(|found| found.loads.all()).collect();
            let names: Vec<BTreeSet<String>> = loads.iter().map(|load| self.names(load)).collect();
            for name in &expected.names {
                if !names.iter().any(|names| is_one_of(name, names)) {
                    let text = self.source[expected.line as usize - 1].trim();
                    outcome.missed.push(format!("{name} of line {}: {text}", expected.line));
                }
            }
            let is_expected =
                |names: &&BTreeSet<String>| expected.names.iter().any(|name| is_one_of(name, names));
            let matched = names.iter().filter(is_expected).count();
            outcome.found += matched;
            outcome.added += names.len() - matched;
        }
    }
}

/// The functions of the file with code from a source file.
fn functions(checked: &Checked<'_>) -> Vec<std::sync::Arc<FunctionDependence>> {
    let entries = checked.code.functions().into_iter();
    let own = entries.filter(|&entry| {
        let location = checked.program.location(checked.code.relocated(entry) + 1);
        location.frames.iter().any(|frame| frame.file.ends_with(checked.file))
    });
    own.filter_map(|entry| checked.code.dependence(entry)).collect()
}

fn check(compile: impl Fn(&Workspace), file: &str, source: &str) -> Outcome {
    let workspace = Workspace::new();
    workspace.write(file, source);
    compile(&workspace);
    let program = open(&workspace.path("program"));
    let code = program.code().expect("an executable has code");
    let checked = Checked { program: &program, code, source: source.lines().collect(), file };
    let mut outcome = Outcome::default();
    checked.check(&functions(&checked), &mut outcome);
    outcome
}

/// Compiles with each level, with and without ThreadSanitizer, and demands that nothing is missed.
fn check_all(language: &str, file: &str, source: &str, compile: fn(&Workspace, u32, bool), bound: f64) {
    let mut missed = Vec::new();
    for sanitized in [false, true] {
        for level in [0, 1, 2, 3] {
            let outcome = check(|workspace| compile(workspace, level, sanitized), file, source);
            let kind = if sanitized { "instrumented" } else { "plain" };
            println!(
                "{language} -O{level} {kind}: {} checked, {} absent, {} missed, {} loads found, {} added, {} incomplete",
                outcome.targets,
                outcome.absent,
                outcome.missed.len(),
                outcome.found,
                outcome.added,
                outcome.incomplete,
            );
            assert!(outcome.targets > 15, "{language} -O{level}: the compiler left too little to check");
            missed.extend(outcome.missed.iter().map(|miss| format!("-O{level} {kind}: {miss}")));
            let ratio = outcome.added as f64 / outcome.found.max(1) as f64;
            assert!(
                ratio < bound,
                "{language} -O{level} {kind}: {ratio:.2} added loads for each that was asked for"
            );
        }
    }
    assert!(missed.is_empty(), "{language}: loads are missed:\n{}", missed.join("\n"));
}

fn with_gcc(compiler: &str, file: &str, workspace: &Workspace, level: u32, sanitized: bool) {
    let sanitizer = if sanitized { "-fsanitize=thread" } else { "" };
    workspace.compile(compiler, &format!("-g -O{level} {sanitizer} {file} -pthread -w"), "program");
}

/// The program is linked and never run, so that the functions of the runtime which gcc's lacks need not do anything.
fn with_rustc(workspace: &Workspace, level: u32, sanitized: bool) {
    let mut command = Command::new("rustc");
    command.args(["--edition", "2021", "-g", "values.rs", "-o", "program", "-Awarnings"]);
    command.arg(format!("-Copt-level={level}"));
    if sanitized {
        let hooks = ["memcpy", "memmove", "memset"].map(|name| format!("void __tsan_{name}(void) {{}}\n"));
        workspace.write("hooks.c", &hooks.concat());
        workspace.compile("gcc", "-shared -fPIC hooks.c", "libhooks.so");
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["-Zsanitizer=thread", "-Zexternal-clangrt", "-Cunsafe-allow-abi-mismatch=sanitizer"]);
        command.args(["-Clink-arg=-l:libtsan.so.2", "-Clink-arg=-L.", "-Clink-arg=-lhooks"]);
    }
    workspace.run(&mut command);
}

#[test]
fn nothing_is_missed_in_c() {
    let compile =
        |workspace: &Workspace, level, sanitized| with_gcc("gcc", "values.c", workspace, level, sanitized);
    check_all("C", "values.c", include_str!("dependence/values.c"), compile, 1.0);
}

#[test]
fn nothing_is_missed_in_cpp() {
    let compile =
        |workspace: &Workspace, level, sanitized| with_gcc("g++", "values.cpp", workspace, level, sanitized);
    check_all("C++", "values.cpp", include_str!("dependence/values.cpp"), compile, 1.5);
}

#[test]
fn nothing_is_missed_in_rust() {
    check_all("Rust", "values.rs", include_str!("dependence/values.rs"), with_rustc, 5.0);
}
