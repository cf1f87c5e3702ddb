//! Which frames of a stack are the user's, and the waypoint that a stack becomes.

use super::frame_line::ReportFrame;
use crate::sequence::function_name;
use crate::sequence::{FilePattern, Place, ThreadName, Waypoint};

/// The most callers that are kept, the nearest. A recursion may have thousands.
const MAX_CALLERS: usize = 16;

/// Names that begin so belong to the compiler, libc or a sanitizer, whatever file they are said to be in.
const RESERVED: &str = "__tsan __asan __msan __ubsan __sanitizer __interceptor ___interceptor pthread_ __pthread_ \
    ___pthread_ __GI_ __libc_ __lll_ lll_ __futex_ __clone";

/// Functions without a file that begin so are those of a runtime or of a standard library.
const LIBRARY_FUNCTIONS: &str = "?? <null> <signal <unknown> futex_ __assert __cxa_ __gxx_ _Unwind_ _dl_ __kernel_ __rust \
    rust_ std:: core:: alloc:: test:: std[ core[ alloc[ <std:: <core:: <alloc:: <std[ <core[ <alloc[ <<std <<core \
    <<alloc <& <fn( __gnu_cxx:: __gthread __invoke";

/// The same for whole names.
const LIBRARY_NAMES: &str = "_start start_thread clone clone3 create_thread raise abort malloc calloc realloc free memcpy \
    memmove memset strlen strcpy poll read write nanosleep sleep usleep sem_wait sem_post thrd_create mtx_lock";

/// Files whose path has this in it are not the user's.
const LIBRARY_FILES: &[&str] = &[
    "/rustc/",
    "/libsanitizer/",
    "/compiler-rt/",
    "/usr/include/",
    "/usr/lib/",
    "/include/c++/",
    "/library/std/src/",
    "/library/core/src/",
    "/library/alloc/src/",
    "/lib/rustlib/",
    "/sysdeps/",
    "/nptl/",
    "/glibc-",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/gcc/x86_64-linux-gnu/",
    "/libstdc++-v3/",
    "vg_replace_",
];

/// Files of glibc, which are named relative to its source directory or by their base name.
const LIBRARY_FILE_STARTS: &[&str] = &[
    "../sysdeps/",
    "sysdeps/",
    "./nptl/",
    "nptl/",
    "./stdlib/",
    "./csu/",
    "csu/",
    "./misc/",
    "misc/",
    "./io/",
    "./assert/",
    "./malloc/",
    "./signal/",
    "library/std/src/",
    "library/core/src/",
    "library/alloc/src/",
];

/// Whether the code is not the user's.
///
/// A file tells more than a name: a user may have a namespace `core`, or a function `read`.
pub fn is_library(frame: &ReportFrame) -> bool {
    // gdb and Valgrind show the version of a symbol.
    let name = frame.function.split('@').next().unwrap_or_default();
    if begins_with_one_of(name, RESERVED) {
        return true;
    }
    match (frame.file.as_str(), frame.module.as_str()) {
        ("", module) => is_library_function(name) || is_library_module(module),
        (file, _) => {
            is_library_file(file) || (is_of_libc(file) && LIBRARY_NAMES.split_whitespace().any(|n| n == name))
        }
    }
}

fn begins_with_one_of(name: &str, starts: &str) -> bool {
    starts.split_whitespace().any(|start| name.starts_with(start))
}

fn is_library_function(name: &str) -> bool {
    name.is_empty()
        || begins_with_one_of(name, LIBRARY_FUNCTIONS)
        || ["operator new", "operator delete", "void std::", "bool std::"]
            .iter()
            .any(|start| name.starts_with(start))
        || LIBRARY_NAMES.split_whitespace().any(|library| library == name)
}

/// Whether it is a file of libc, as Valgrind names them: without a directory. The user may have a file of that name, so
/// the function has to be one of libc too.
fn is_of_libc(file: &str) -> bool {
    [
        "pthread_create.c",
        "clone.S",
        "clone3.S",
        "raise.c",
        "abort.c",
        "pthread_kill.c",
        "poll.c",
        "read.c",
        "write.c",
        "sleep.c",
    ]
    .contains(&file)
}

pub fn is_library_file(file: &str) -> bool {
    LIBRARY_FILES.iter().any(|part| file.contains(part))
        || LIBRARY_FILE_STARTS.iter().any(|start| file.starts_with(start))
}

fn is_library_module(module: &str) -> bool {
    [
        "/lib/",
        "/lib64/",
        "/usr/",
        "libtsan.",
        "libasan.",
        "libc.",
        "libstdc++.",
        "libpthread.",
        "linux-vdso",
        "ld-linux",
    ]
    .iter()
    .any(|start| module.starts_with(start))
}

/// The innermost place of the stack in the user's code, reached through the frames around it. `None` if there is none.
pub fn waypoint(frames: &[ReportFrame], thread: Option<ThreadName>) -> Option<Waypoint> {
    let mut users = frames.iter().filter(|frame| !is_library(frame));
    let innermost = users.next()?;
    let place = place(innermost)?;
    // Where lines are known, a frame without one is not the user's: the `main` that Rust's runtime has, for instance.
    let users = users.filter(|frame| innermost.line == 0 || frame.line > 0);
    let mut callers: Vec<Place> = Vec::new();
    for frame in users {
        let Some(caller) = caller(frame) else { continue };
        if callers.last() != Some(&caller) {
            callers.push(caller);
        }
        if callers.len() == MAX_CALLERS {
            break;
        }
    }
    callers.reverse();
    Some(Waypoint { place, thread, callers })
}

/// The line of the frame, or its function if there is no line.
///
/// Columns are left out: compilers do not agree on them.
pub fn place(frame: &ReportFrame) -> Option<Place> {
    match (frame.line, FilePattern::new(frame.file.trim_start_matches("./"))) {
        (line @ 1.., Some(file)) => Some(Place::Line { file, line, column: None }),
        _ => caller(frame),
    }
}

/// The function of the frame: a call that moved to another line is the same call.
fn caller(frame: &ReportFrame) -> Option<Place> {
    let name = function_name::short(frame.function.trim());
    (!name.is_empty()).then_some(Place::Function(name))
}

/// Whether the thread waits for another one to end.
pub fn is_joining(frames: &[ReportFrame]) -> bool {
    let library = frames.iter().take_while(|frame| is_library(frame));
    library.map(|frame| frame.function.as_str()).any(|name| {
        name.contains("pthread_join")
            || name.contains("clockjoin")
            || name.contains("JoinHandle")
            || name.starts_with("std::thread::join")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_library_frame(function: &str, file: &str, module: &str) -> bool {
        let [function, file, module] = [function, file, module].map(str::to_owned);
        let line = u32::from(!file.is_empty());
        is_library(&ReportFrame { function, file, line, module, number: 0 })
    }

    #[test]
    fn code_of_runtimes_and_standard_libraries_is_passed_over() {
        for (function, file, module) in [
            ("pthread_mutex_lock", "../../../../src/libsanitizer/tsan/x.cpp", "libtsan.so.2"),
            ("pthread_mutex_lock", "", "program"),
            ("start_thread", "pthread_create.c", ""),
            ("clone3", "../sysdeps/unix/sysv/linux/x86_64/clone3.S", ""),
            ("pthread_create@@GLIBC_2.34", "pthread_create.c", ""),
            ("core::option::unwrap_failed", "/rustc/59807616/library/core/src/option.rs", ""),
            ("std::panicking::begin_panic", "library/std/src/panicking.rs", ""),
            ("__invoke<main()::<lambda()> >", "/usr/include/c++/12/bits/invoke.h", "program"),
            ("crossbeam::scope", "/home/me/.cargo/registry/src/index/crossbeam-1/src/lib.rs", ""),
            ("malloc", "vg_replace_malloc.c", ""),
            ("worker", "", "/lib/x86_64-linux-gnu/libfoo.so"),
            ("??", "", ""),
            ("", "", "libstdc++.so.6"),
        ] {
            assert!(is_library_frame(function, file, module), "{function} {file} {module}");
        }
    }

    #[test]
    fn a_user_may_have_names_that_a_library_has() {
        for (function, file, module) in [
            ("read", "src/queue.c", ""),
            ("core::Engine::run", "/home/me/core/engine.cpp", ""),
            ("free", "/home/me/pool.c", ""),
            ("test::works", "src/test.rs", ""),
            ("worker", "", "program"),
            ("worker", "", ""),
            ("<demo::Ledger as core::ops::Drop>::drop", "src/main.rs", ""),
        ] {
            assert!(!is_library_frame(function, file, module), "{function} {file} {module}");
        }
    }
}
