//! The beginning and the end of the process, orderly or not.

use std::ffi::{CStr, c_char, c_int, c_void};

use threadbare_trace::EventKind;
use threadbare_wire::{Ending, StackSpan};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::real::real;
use crate::entry::{library_code, log, modules, panics};
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{Operation, finish, point};
use crate::signals::handlers;
use crate::sync::threads;

type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

static MAIN: Carrier<Option<Main>> = Carrier::new(None);

/// Writes to standard error and ends the process, where nothing else can be relied on.
pub fn die(parts: &[&str]) -> ! {
    for part in parts {
        // SAFETY: a plain system call.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    system::exit(125)
}

/// A panic of the runtime's own: a fault of ours, and said to be.
pub fn internal_error(info: &std::panic::PanicHookInfo<'_>) {
    let message = format!("internal error: {info}");
    if active() {
        finish(Ending::Unsupported, 0, 0, &message);
    }
    die(&["threadbare: ", &message, "\n"]);
}

/// Wraps `main`, because a return from it is an `exit` that no function call would show.
#[unsafe(no_mangle)]
extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: *mut c_void,
    fini: *mut c_void,
    rtld_fini: *mut c_void,
    stack_end: *mut c_void,
) -> c_int {
    *MAIN.get() = Some(main);
    let entry = if active() { run_main } else { main };
    real!(__libc_start_main(
        entry => Main,
        argc => c_int,
        argv => *mut *mut c_char,
        init => *mut c_void,
        fini => *mut c_void,
        rtld_fini => *mut c_void,
        stack_end => *mut c_void,
    ) -> c_int)
}

/// How far below `main` its thread's stack may reach, and how far above arguments and environment.
const MAIN_STACK: u64 = 64 << 20;
const MAIN_FRAMES: u64 = 1 << 20;

extern "C" fn run_main(argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    let main = MAIN.get().expect("set before");
    let here = (&raw const argc) as u64;
    let routine = main as *const () as u64;
    let span = StackSpan { low: here - MAIN_STACK, base: here, high: here + MAIN_FRAMES, routine };
    // SAFETY: the main thread's slot.
    unsafe { log::stack_span(0).write(span) };
    let arguments = [argc as u64, argv as u64, environment as u64];
    // SAFETY: `main` takes these.
    let code = unsafe { threads::call_outermost(routine, arguments, 0) };
    exit_(code as c_int, routine + 1)
}

intercept! {
    exit/1 => exit_;
    quick_exit/1 => quick_exit_;
    _exit/1 => exit_now;
    _Exit/1 => exit_now;
    abort/0 => abort_;
    __assert_fail/4 => assert_fail;
    __assert_perror_fail/4 => assert_perror_fail;
}

/// The end of the process is an operation like any other: threads nobody joined may go first.
fn exit_point(code: c_int, pc: u64) {
    if active() {
        handlers::end_in_handler(code);
        let pc = modules::users_call(pc);
        point(Operation::new(EventKind::Exit, pc, 0));
        Entry::new(EventKind::Exit, pc, 0).value(code as u64).write();
        panics::exits(code);
    }
}

extern "C" fn exit_(code: c_int, pc: u64) -> ! {
    exit_point(code, pc);
    if active() {
        threads::run_thread_locals();
    }
    leave(code)
}

/// Not in libc.so, but in what is linked into each program; one that is linked with libtsan takes it from there.
#[unsafe(no_mangle)]
extern "C" fn atexit(handler: extern "C" fn()) -> c_int {
    let nothing = std::ptr::null_mut();
    real!(__cxa_atexit(handler => extern "C" fn(), nothing => *mut c_void, nothing => *mut c_void) -> c_int)
}

/// libc's `exit`: handlers and destructors run, and the process ends.
pub fn leave(code: c_int) -> ! {
    real!(exit(code => c_int));
    unreachable!("exit returned")
}

extern "C" fn quick_exit_(code: c_int, pc: u64) -> ! {
    exit_point(code, pc);
    real!(quick_exit(code => c_int));
    unreachable!("quick_exit returned")
}

extern "C" fn exit_now(code: c_int, pc: u64) -> ! {
    exit_point(code, pc);
    system::exit(code)
}

extern "C" fn abort_(pc: u64) -> ! {
    if !active() {
        real!(abort());
        unreachable!("abort returned")
    }
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
        Some(name) => finish(Ending::Exception, 0, pc, &name),
        None => finish(Ending::Abort, 0, pc, ""),
    }
}

/// The mangled type name of the C++ exception being handled, if any.
fn uncaught_exception() -> Option<String> {
    // SAFETY: libstdc++'s function, if the program has it, returns a `std::type_info`, whose second word is
    // its name.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_current_exception_type".as_ptr());
        if function.is_null() {
            return None;
        }
        let function: unsafe extern "C" fn() -> *const *const c_char = std::mem::transmute(function);
        let info = function();
        (!info.is_null()).then(|| CStr::from_ptr(*info.add(1)).to_string_lossy().into_owned())
    }
}

extern "C" fn assert_fail(
    expression: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
    pc: u64,
) -> ! {
    if !active() {
        real!(__assert_fail(
            expression => *const c_char, file => *const c_char, line => u32, function => *const c_char
        ));
        unreachable!("__assert_fail returned")
    }
    handlers::before_abort();
    // SAFETY: the compiler's string.
    let expression = unsafe { CStr::from_ptr(expression) }.to_string_lossy();
    finish(Ending::Assertion, line, pc, &expression)
}

extern "C" fn assert_perror_fail(
    error: c_int,
    file: *const c_char,
    line: u32,
    function: *const c_char,
    pc: u64,
) -> ! {
    if !active() {
        real!(__assert_perror_fail(
            error => c_int, file => *const c_char, line => u32, function => *const c_char
        ));
        unreachable!("__assert_perror_fail returned")
    }
    handlers::before_abort();
    // SAFETY: libc's string for an error number.
    let expression = unsafe { CStr::from_ptr(libc::strerror(error)) }.to_string_lossy();
    finish(Ending::Assertion, line, pc, &expression)
}

/// Makes a copy of the process, by the bare system call: glibc's fork would take the parked threads' stacks for
/// garbage. Only the carrier runs, so no lock of libc's is held by anybody else. The copy sends no signal when it
/// ends, so a program that ignores `SIGCHLD` does not keep its server from learning how its runs ended.
pub fn fork_quietly() -> i64 {
    system::call(libc::SYS_clone, [0; 6])
}

/// The same; the copy is a child of this process's parent.
pub fn fork_beside() -> i64 {
    system::call(libc::SYS_clone, [libc::CLONE_PARENT as u64, 0, 0, 0, 0, 0])
}
