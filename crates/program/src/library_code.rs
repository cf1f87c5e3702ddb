//! Which functions of a Rust program are its standard library's.
//!
//! The library is compiled into the program, much of it by the user's own compiler, and so its memory accesses
//! are seen like any other. Most of them count as the caller's: an element of a `Vec` is the user's data. Others concern
//! the library alone. As events they would multiply schedules and show nothing.

use std::ops::Range;

use threadbare_trace::CodeClass;

use crate::calls;
use crate::image::Image;
use crate::symbols::{self, Kind, Symbol};

/// The crates that come with the compiler.
const CRATES: [&str; 5] = ["core", "alloc", "std", "test", "hashbrown"];

/// Modules whose accesses are no events: they start and end threads, count panics and buffer output. Their calls into
/// libc are seen there.
const QUIET_MODULES: [&str; 10] = [
    "std::thread::",
    "std::panicking::",
    "std::panic::",
    "std::rt::",
    "std::io::",
    "std::alloc::",
    "std::sys::",
    "std::backtrace::",
    "test::",
    "core::panicking::",
];

/// Exceptions: in these, threads wait for each other.
const WAITING: [&str; 2] = ["std::sys::sync::", "std::thread::scoped::scope"];
/// Another exception, by the name of the method.
const IS_FINISHED: &str = "is_finished";

/// Types with a reference count. Changing the count is no event, reading it is.
const COUNTED: [&str; 2] = ["alloc::sync::Arc<", "alloc::sync::Weak<"];
/// Their methods that change the count.
const COUNTING: [&str; 5] = ["clone", "drop", "drop_slow", "downgrade", "new"];

/// The code of the standard library in a file, as linked, by address.
pub(crate) fn functions(image: &Image) -> Vec<(Range<u64>, CodeClass)> {
    let functions = image.symbols.all(Kind::Function).filter(|symbol| symbol.is_rust());
    functions.flat_map(|symbol| code_of(image, symbol)).collect()
}

/// The parts of a function that are the library's.
fn code_of(image: &Image, symbol: &Symbol) -> Vec<(Range<u64>, CodeClass)> {
    let name = symbols::demangle(&symbol.name);
    let Some(class) = class_of(&name) else { return Vec::new() };
    if !calls_others(&name, class) {
        return vec![(symbol.range(), class)];
    }
    // Inlined code may be the user's own. It is classified call by call, because the runtime sees nothing but calls.
    let mut parts = Vec::new();
    let mut start = symbol.address;
    for call in calls::calls(image, symbol) {
        if let Some(class) = class_of_call(image, call.return_address, class) {
            parts.push((start..call.return_address, class));
        }
        start = call.return_address;
    }
    parts
}

/// The class of a call in a library function of class `class`. The innermost inlined function that is not `Passing`
/// decides; if there is none, it is `class`.
fn class_of_call(image: &Image, return_address: u64, class: CodeClass) -> Option<CodeClass> {
    let frames = image.debug_info().frames_at(return_address - 1);
    let inlined = frames.len().saturating_sub(1);
    for frame in &frames[..inlined] {
        match class_of(&frame.function) {
            Some(CodeClass::Passing) => {}
            decided => return decided,
        }
    }
    Some(class)
}

/// Whether a library function exists to call the user's code.
fn calls_others(name: &str, class: CodeClass) -> bool {
    let method = name.rsplit("::").find(|part| !part.starts_with('{')).unwrap_or_default();
    let calls = ["call_once", "call_mut", "call"].iter().any(|call| method.starts_with(call));
    (calls || class == CodeClass::Quiet) && mentions_others(name)
}

/// Whether the name of a library function contains a path of another crate, such as that of a closure.
fn mentions_others(name: &str) -> bool {
    let is_part_of_path = |letter: char| letter.is_alphanumeric() || "_:".contains(letter);
    let paths = name.split(|letter| !is_part_of_path(letter));
    let crates = paths.filter_map(|path| Some(path.split_once("::")?.0));
    crates.into_iter().any(|name| !name.is_empty() && !CRATES.contains(&name))
}

/// Whether the function with this name, as in the source, belongs to Rust's standard library.
pub fn is_library_function(name: &str) -> bool {
    name.starts_with("__rust") || class_of(name).is_some()
}

/// The class of a library function; `None` for other functions.
pub(crate) fn class_of(function: &str) -> Option<CodeClass> {
    // A method is `<Type>::method` or `<Type as Trait>::method`; what counts is where it is written, and that is
    // the type's crate far more often than the trait's.
    let path = function.trim_start_matches(['<', '&', '[', '(', '*']);
    let path = path.strip_prefix("mut ").or_else(|| path.strip_prefix("const ")).unwrap_or(path);
    if !CRATES.iter().any(|name| path.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"))) {
        return None;
    }
    let starts = |prefix: &&str| path.starts_with(*prefix);
    let method = function.rsplit("::").next().unwrap_or_default();
    let counts = COUNTED.iter().any(starts) && COUNTING.contains(&method);
    let waits = WAITING.iter().any(starts) || method == IS_FINISHED;
    let quiet = counts || QUIET_MODULES.iter().any(starts) && !waits;
    Some(if quiet { CodeClass::Quiet } else { CodeClass::Passing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_functions_are_told_from_those_that_act_for_their_caller() {
        let class = class_of;
        assert_eq!(class("demo::Counter::increment"), None);
        assert_eq!(class("<demo::Counter as core::ops::drop::Drop>::drop"), None);
        assert_eq!(class("core::sync::atomic::atomic_load::<u64>"), Some(CodeClass::Passing));
        assert_eq!(class("<alloc::vec::Vec<demo::Job>>::push"), Some(CodeClass::Passing));
        assert_eq!(class("<std::sync::mpsc::Sender<u32>>::send"), Some(CodeClass::Passing));
        assert_eq!(
            class("std::thread::lifecycle::spawn_unchecked::<demo::f::{closure#0}, ()>"),
            Some(CodeClass::Quiet)
        );
        assert_eq!(
            class("<std::sys::sync::thread_parking::futex::Parker>::unpark"),
            Some(CodeClass::Passing)
        );
    }

    #[test]
    fn reference_counts_are_watched_only_where_the_program_looks_at_them() {
        let clone = "<alloc::sync::Arc<demo::Counter> as core::clone::Clone>::clone";
        assert_eq!(class_of(clone), Some(CodeClass::Quiet));
        assert_eq!(class_of("<alloc::sync::Arc<demo::Counter>>::strong_count"), Some(CodeClass::Passing));
        assert_eq!(class_of("<std::thread::JoinHandle<()>>::is_finished"), Some(CodeClass::Passing));
    }
}
