//! Where in the source something happened.

use std::fmt;

/// One function activation at a source position. An inlined function has a frame like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Demangled; empty when unknown.
    pub function: String,
    /// As the compiler recorded it, made absolute with the compilation directory; empty when unknown.
    pub file: String,
    /// From 1; 0 when unknown.
    pub line: u32,
    /// From 1; 0 when unknown.
    pub column: u32,
}

/// Where headers and libraries live whose lines are not the user's.
const LIBRARIES: [&str; 5] =
    ["/usr/include/", "/usr/lib/", "/rustc/", "/.rustup/toolchains/", "/.cargo/registry/"];

impl Frame {
    /// The user did not write it, as far as the file's path can tell.
    pub fn is_in_library(&self) -> bool {
        LIBRARIES.iter().any(|library| self.file.contains(library))
    }
}

impl fmt::Display for Frame {
    /// `account.c:42`, or the function's name where there is no line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.file.rsplit('/').next().unwrap_or_default();
        match (base, self.line) {
            ("", _) if self.function.is_empty() => f.write_str("unknown location"),
            ("", _) => write!(f, "in {}", self.function),
            (_, 0) => f.write_str(base),
            (_, line) => write!(f, "{base}:{line}"),
        }
    }
}

/// A place in the code of one build: an address, and the frames it stands for, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The return address of the call into the runtime. Address space layout is fixed under Threadbare, so
    /// the same build has the same addresses in every run.
    pub address: u64,
    pub frames: Vec<Frame>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frames.first() {
            Some(frame) => frame.fmt(f),
            None if self.address == 0 => f.write_str("unknown location"),
            None => write!(f, "{:#x}", self.address),
        }
    }
}

/// A place in the source that can be found again after a rebuild that moved lines.
///
/// The line number is only a hint: a site is the `nth` call into the runtime, in address order, among those in
/// `function` that reach the same `callee` from a line with the same `text` and `column`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// The linkage name of the function whose code holds the call.
    pub function: String,
    /// The base name of the file of the innermost frame.
    pub file: String,
    pub line: u32,
    /// From 1, counted from the line's first character that is not blank, so that indenting does not matter; as
    /// the compiler counts when the source could not be read.
    pub column: u32,
    /// The source line without surrounding blanks; empty when the source could not be read.
    pub text: String,
    /// The runtime function called there, such as `__tsan_write4`; empty when it is not a direct call.
    pub callee: String,
    /// From 0.
    pub nth: u32,
}
