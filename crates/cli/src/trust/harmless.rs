//! Which arguments of a clip are known to be harmless.
//!
//! Every rule accepts one whole argument and nothing that would take the next one as its value. So an argument means the
//! same to us and to the compiler, wherever it stands. What no rule accepts is not harmless: an option that is new in a
//! compiler is asked for until it is listed here.

use std::path::Path;

/// Options of gcc and clang without a value that change the program or the warnings alone.
#[rustfmt::skip]
const COMPILER_FLAGS: &[&str] = &[
    "-ansi", "-pedantic", "-pedantic-errors", "-pthread", "-w", "-W",
    // Optimisation.
    "-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-Oz", "-Ofast",
    // Debug information.
    "-g", "-g1", "-g2", "-g3", "-ggdb", "-ggdb3", "-gdwarf-4", "-gdwarf-5", "-gsplit-dwarf",
    // The meaning of the language.
    "-fexceptions", "-fno-exceptions", "-frtti", "-fno-rtti", "-fsigned-char", "-funsigned-char",
    "-fcommon", "-fno-common", "-fshort-enums", "-fwrapv", "-fno-wrapv", "-ftrapv", "-fstrict-aliasing",
    "-fno-strict-aliasing", "-fms-extensions", "-fno-builtin", "-fcoroutines",
    // The code that is made of it.
    "-finline", "-fno-inline", "-fno-inline-functions", "-fomit-frame-pointer", "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls", "-ffast-math", "-fno-fast-math", "-fPIC", "-fpic", "-fPIE", "-fpie",
    "-fno-pic", "-fno-pie", "-pie", "-no-pie", "-fstack-protector", "-fstack-protector-strong",
    "-fstack-protector-all", "-fno-stack-protector", "-funwind-tables", "-fasynchronous-unwind-tables",
    "-ffunction-sections", "-fdata-sections", "-funroll-loops", "-ftree-vectorize",
    "-fno-tree-vectorize", "-mcx16",
    // Libraries of the system. A library of another name may be anywhere.
    "-lm", "-lpthread", "-lrt", "-ldl", "-latomic", "-lstdc++",
];

/// Options of cargo without a value.
const CARGO_FLAGS: &[&str] = &["--lib", "--all-features", "--no-default-features", "--release"];
/// Options of cargo that choose one of the project's packages, programs or profiles by its name.
const CARGO_NAMES: &[&str] = &["--package=", "--bin=", "--test=", "--example=", "--bench=", "--profile="];

/// The options that `cargo threadbare test` runs a test with.
const HARNESS_FLAGS: &[&str] = &["--exact", "--include-ignored", "--test-threads=1"];

/// Whether an argument for the C or C++ compiler is harmless. `is_inside` says whether a path is one of the project.
pub fn compiler_argument(argument: &str, is_inside: impl Fn(&Path) -> bool) -> bool {
    if COMPILER_FLAGS.contains(&argument) {
        return true;
    }
    let value = |option: &str| argument.strip_prefix(option);
    if let Some(definition) = value("-D") {
        // A value with words in it may be any code: -Dputs=system.
        let (name, value) = definition.split_once('=').unwrap_or((definition, ""));
        return is_macro_name(name) && is_number_or_empty(value);
    }
    if let Some(name) = value("-U") {
        return is_macro_name(name);
    }
    if let Some(standard) = value("-std=") {
        return is_made_of(standard, |c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || c == '+' || c == ':'
        });
    }
    if let Some(processor) = value("-march=").or_else(|| value("-mtune=")) {
        return is_made_of(processor, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    }
    if let Some(warning) = value("-W") {
        // Without a comma: those are for the assembler, the linker and the preprocessor.
        return warning.len() > 1
            && is_made_of(warning, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-+=".contains(c));
    }
    match value("-I") {
        Some(directory) => is_plain_path(directory) && is_inside(Path::new(directory)),
        None => is_source(argument) && is_plain_path(argument) && is_inside(Path::new(argument)),
    }
}

/// Whether an argument for cargo is harmless. Number 0 is the command.
pub fn cargo_argument(number: usize, argument: &str) -> bool {
    if number == 0 {
        return matches!(argument, "build" | "test");
    }
    let is_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let names_one =
        |option: &&str| argument.strip_prefix(*option).is_some_and(|name| is_made_of(name, is_name));
    let is_feature = |c: char| is_name(c) || ",/? +.".contains(c);
    CARGO_FLAGS.contains(&argument)
        || CARGO_NAMES.iter().any(names_one)
        || argument.strip_prefix("--features=").is_some_and(|features| is_made_of(features, is_feature))
}

/// Whether an argument for the tested program is harmless: a word, a number, the name of a test, or a path that does not
/// lead out of the project. `leads_out` says so of a path that is there. What an option means only the program knows; those
/// of Rust's test harness are known.
pub fn program_argument(argument: &str, leads_out: impl Fn(&Path) -> bool) -> bool {
    if HARNESS_FLAGS.contains(&argument) {
        return true;
    }
    if let Some(number) = argument.strip_prefix('-') {
        return number.starts_with(|c: char| c.is_ascii_digit()) && is_number_or_empty(number);
    }
    let mut before = ' ';
    let is_plain = argument.chars().all(|c| {
        let follows_name = before.is_alphanumeric() || "_-.".contains(before);
        before = c;
        c.is_alphanumeric() || "_-.,:=+".contains(c) || (c == '/' && follows_name)
    });
    is_plain && !argument.contains("..") && !argument.split('=').any(|part| leads_out(Path::new(part)))
}

/// A macro's name as people write it. One in small letters may be a function or a keyword: -Dfree= or -Dif=while.
fn is_macro_name(name: &str) -> bool {
    is_made_of(name, |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn is_number_or_empty(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    value.is_empty()
        || (digits.starts_with(|c: char| c.is_ascii_digit())
            && is_made_of(digits, |c| c.is_ascii_alphanumeric() || c == '.'))
}

/// Neither an option, nor a response file (`@file`), nor relative to the system's root (`=include`).
fn is_plain_path(path: &str) -> bool {
    path.starts_with(|c: char| c.is_alphanumeric() || "_./".contains(c))
}

fn is_source(path: &str) -> bool {
    crate::cc::Language::of(Path::new(path)).is_some()
}

/// Not empty, and all its characters are allowed.
fn is_made_of(text: &str, is_allowed: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests;
