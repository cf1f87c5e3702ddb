//! The machine: kernel, cache, compilers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use threadbare_executor::kernel;
use threadbare_report::Check;

use crate::cargo::Compiler;
use crate::cc::{self, Language};

/// What a run needs of the kernel and of the user's limits.
pub fn kernel() -> Vec<Check> {
    let check = |requirement: kernel::Requirement| match requirement.result {
        Ok(()) => Check::ok("kernel", requirement.what),
        Err(error) => Check::error("kernel", format!("{}: {error}", requirement.what), requirement.advice),
    };
    kernel::requirements().into_iter().map(check).collect()
}

/// The runtime library can be put where programs find it, and nobody else can change it there.
pub fn library() -> Vec<Check> {
    let directory = match threadbare_executor::install() {
        Ok(directory) => directory,
        Err(error) => {
            let advice = "name a directory of your own in XDG_CACHE_HOME";
            return vec![Check::error("runtime library", error.to_string(), advice)];
        }
    };
    vec![Check::ok("runtime library", directory.display().to_string()), privacy(&directory)]
}

fn privacy(directory: &Path) -> Check {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    let what = "cache";
    match fs::metadata(directory) {
        Ok(data) if data.mode() & OTHERS_MAY_WRITE != 0 => Check::warning(
            what,
            format!("others may write to {}, from which programs load code", directory.display()),
            format!("chmod go-w {}", directory.display()),
        ),
        Ok(_) => Check::ok(what, "nobody else may write to it"),
        Err(error) => {
            Check::error(what, format!("{}: {error}", directory.display()), "look at its permissions")
        }
    }
}

pub fn c_compiler() -> Check {
    let advice = "install gcc or clang with ThreadSanitizer (Debian: gcc libtsan2), or name one: CC=…";
    match try_compiler(Language::C, "int main(void) { return 0; }\n", "c") {
        Ok(version) => Check::ok("C compiler", version),
        Err(why) => Check::error("C compiler", why, advice),
    }
}

/// A missing one is no error: not everybody has C++.
pub fn cxx_compiler() -> Check {
    let advice = "for C++, install g++ or clang++, or name one: CXX=…";
    match try_compiler(Language::Cxx, "int main() { return 0; }\n", "cc") {
        Ok(version) => Check::ok("C++ compiler", version),
        Err(why) => Check::warning("C++ compiler", why, advice),
    }
}

/// The first line of the compiler's version, if it compiles and links with `-fsanitize=thread`.
fn try_compiler(language: Language, source: &str, ending: &str) -> Result<String, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join(format!("empty.{ending}"));
    fs::write(&path, source).map_err(|error| error.to_string())?;
    let mut command = cc::command(language).map_err(|problem| problem.to_string())?;
    let name = command.get_program().to_owned();
    let output = command.arg("-o").arg(directory.path().join("empty")).arg(&path).output();
    let output = output.map_err(|error| format!("{}: {error}", name.to_string_lossy()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        return Err(format!("{} does not compile with -fsanitize=thread:\n{said}", name.to_string_lossy()));
    }
    let version = Command::new(&name).arg("--version").output().map_err(|error| error.to_string())?;
    let version = String::from_utf8_lossy(&version.stdout);
    Ok(format!("{}, compiles with -fsanitize=thread", version.lines().next().unwrap_or_default()))
}

/// The release of Rust that `cargo threadbare` needs.
const OLDEST_RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// A missing one is no error: not everybody has Rust.
pub fn rust() -> Check {
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(problem) => {
            return Check::warning("Rust", problem.to_string(), "for cargo threadbare: https://rustup.rs");
        }
    };
    let version = compiler.version.lines().next().unwrap_or_default().to_owned();
    let oldest = OLDEST_RUST.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).unwrap_or(0);
    if compiler.release() < oldest {
        let found = format!("{version}, and cargo threadbare needs {OLDEST_RUST} or later");
        return Check::warning("Rust", found, "rustup update stable");
    }
    Check::ok("Rust", version)
}
