//! How the process begins and how it ends: `main`, `exit`, `abort`, failed assertions, forks of the runtime's own.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use threadbare_trace::{EventKind, FailureKind, ThreadIndex};
use threadbare_wire::StackSpan;

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::{self, Entry};
use crate::entry::real::real;
use crate::entry::{imports, library_code, modules, panics, server};
use crate::os::{dispatch, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::{fail, refuse};
use crate::schedule::scheduler::{Operation, point};
use crate::signals::handlers;
use crate::sync::{thread_end, threads};

type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

static MAIN: Carrier<Option<Main>> = Carrier::new(None);

/// Writes to standard error and ends the process, where nothing else can be relied on.
pub fn die(parts: &[&str]) -> ! {
    for part in parts {
        system::write(2, part.as_bytes());
    }
    system::exit(125)
}

/// A panic of the runtime itself. The message says that it is our fault.
pub fn internal_error(info: &std::panic::PanicHookInfo<'_>) {
    let message = format!("internal error: {info}");
    if active() {
        refuse(0, &message);
    }
    die(&["threadbare: ", &message, "\n"]);
}

intercept! {
    /// Wraps `main`, because a return from it is an `exit` that no function call would show.
    fn __libc_start_main(
        main: Main, argc: c_int, argv: *mut *mut c_char,
        init: *mut c_void, fini: *mut c_void, rtld_fini: *mut c_void, stack_end: *mut c_void
    ) -> c_int, calling start {
        MAIN.set(Some(main));
        // SAFETY: the program's arguments; `run_main` has the type of a `main`.
        unsafe { start(run_main, argc, argv, init, fini, rtld_fini, stack_end) }
    }
}

/// How far below `main` its thread's stack may reach, and how far above arguments and environment.
const MAIN_STACK: u64 = 64 << 20;
const MAIN_FRAMES: u64 = 1 << 20;

extern "C" fn run_main(argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    let main = MAIN.get().expect("set before");
    let here = (&raw const argc) as u64;
    let routine = main as *const () as u64;
    let span = StackSpan { low: here - MAIN_STACK, base: here, high: here + MAIN_FRAMES, routine };
    log::set_stack_span(ThreadIndex::MAIN, span);
    if log::control().from_main.load(Ordering::Relaxed) != 0 {
        server::serve();
    }
    let arguments = [argc as u64, argv as u64, environment as u64];
    // SAFETY: libc starts a program with these arguments of its `main`.
    let code = unsafe { threads::call_outermost(routine, arguments, ThreadIndex::MAIN) };
    exit(code as c_int, routine + 1)
}

/// The end of the process is a schedule point: threads that nobody joined may run before it.
fn exit_point(code: c_int, pc: u64) {
    handlers::end_in_handler(code);
    let pc = modules::users_call(pc);
    point(Operation::new(EventKind::Exit, pc, 0));
    Entry::new(EventKind::Exit, pc, 0).value(code as u64).write();
    panics::exits(code);
}

/// `exit`, or the return of `main`.
fn exit(code: c_int, pc: u64) -> ! {
    exit_point(code, pc);
    thread_end::run_thread_locals();
    leave(code)
}

intercept! {
    fn exit(code: c_int; pc) -> ! {
        exit(code, pc)
    }

    /// libc.so does not have it. It is linked into each program, but a program that is linked with libtsan takes it
    /// from there.
    fn atexit(handler: extern "C" fn()) -> c_int, when (true) {
        let nothing = std::ptr::null_mut();
        // SAFETY: the program's handler, which ignores the argument that it is called with.
        unsafe {
            real!(__cxa_atexit(handler => extern "C" fn(), nothing => *mut c_void, nothing => *mut c_void) -> c_int)
        }
    }
}

/// libc's `exit`: handlers and destructors run, and the process ends.
pub fn leave(code: c_int) -> ! {
    // SAFETY: `exit` takes any number. What it runs, the program has registered for it.
    unsafe { real!(exit(code => c_int) -> !) }
}

intercept! {
    fn quick_exit(code: c_int; pc) -> !, calling leave {
        exit_point(code, pc);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { leave(code) }
    }

    fn _exit | _Exit(code: c_int; pc) -> ! {
        exit_point(code, pc);
        system::exit(code)
    }

    fn abort(; pc) -> ! {
        handlers::before_abort();
        panics::aborts();
        // From libstdc++ it is the end of `std::terminate`; a program may call it while it handles an exception.
        let terminates = modules::is_system(pc);
        let pc = match library_code::is_users(pc) {
            true => modules::users_call(pc),
            // `std::process::abort`.
            false => panics::innermost_instrumented_call(),
        };
        match uncaught_exception().filter(|_| terminates) {
            Some(name) => fail(FailureKind::Exception, pc, &name),
            None => fail(FailureKind::Abort, pc, ""),
        }
    }
}

/// The mangled type name of the C++ exception being handled, if any.
fn uncaught_exception() -> Option<String> {
    let function = imports::find_anywhere(c"__cxa_current_exception_type")?;
    // SAFETY: libstdc++'s function, if the program has it, returns a `std::type_info`, whose second word is
    // its name.
    unsafe {
        let function: unsafe extern "C" fn() -> *const *const c_char = std::mem::transmute(function);
        let info = function();
        (!info.is_null()).then(|| CStr::from_ptr(*info.add(1)).to_string_lossy().into_owned())
    }
}

intercept! {
    fn __assert_fail(
        expression: *const c_char, file: *const c_char, line: u32, function: *const c_char; pc
    ) -> ! {
        handlers::before_abort();
        // SAFETY: the compiler passes a string that is a constant.
        let expression = unsafe { CStr::from_ptr(expression) }.to_string_lossy();
        fail(FailureKind::Assertion, pc, &expression)
    }

    fn __assert_perror_fail(error: c_int, file: *const c_char, line: u32, function: *const c_char; pc) -> ! {
        handlers::before_abort();
        // SAFETY: `strerror` returns a string, which stays until it is called again.
        let expression = unsafe { CStr::from_ptr(libc::strerror(error)) }.to_string_lossy();
        fail(FailureKind::Assertion, pc, &expression)
    }
}

/// Makes a copy of the process. It sends no signal when it ends, so a program that ignores `SIGCHLD` does not keep its
/// server from learning how its runs ended.
pub fn fork_quietly() -> i64 {
    fork(0)
}

/// The same; the copy is a child of this process's parent.
pub fn fork_beside() -> i64 {
    fork(libc::CLONE_PARENT)
}

fn fork(flags: c_int) -> i64 {
    let child = system::fork(flags);
    if child == 0 {
        dispatch::watch_copy();
    }
    child
}

/// Refuses what is not modelled, and says who asked for what.
pub fn unsupported(what: &str, pc: u64) -> ! {
    refuse(modules::users_call(pc), what)
}
