//! The beginning and the end of the process, orderly or not.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use threadbare_trace::EventKind;
use threadbare_trace::wire::{Ending, STOP_SIGNAL, StackSpan};

use crate::carrier::Carrier;
use crate::entry::intercept;
use crate::hooks::{IGNORE, WATCH};
use crate::log::Entry;
use crate::real::real;
use crate::scheduler::{Operation, finish, point};
use crate::{ACTIVE, active, log, modules, panics, system, threads};

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
    fork/0 => fork_;
    vfork/0 => fork_;
}

/// The end of the process is an operation like any other: threads nobody joined may go first.
fn exit_point(code: c_int, pc: u64) {
    if active() {
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
    // From libstdc++ it is the end of `std::terminate`; a program may call it while it handles an exception.
    let terminates = modules::is_system(pc);
    let pc = modules::users_call(pc);
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
    // SAFETY: libc's string for an error number.
    let expression = unsafe { CStr::from_ptr(libc::strerror(error)) }.to_string_lossy();
    finish(Ending::Assertion, line, pc, &expression)
}

/// A child of the tested program is not under test: it runs as if the runtime were inactive.
extern "C" fn fork_(_: u64) -> libc::pid_t {
    let parent = real!(getpid() -> libc::pid_t);
    let child = real!(fork() -> libc::pid_t);
    crate::io::forked();
    if child == 0 && active() {
        ACTIVE.store(false, Ordering::Relaxed);
        WATCH.store(IGNORE, Ordering::Relaxed);
        // SAFETY: plain system calls. It must not outlive the run, which may be over already.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                system::exit(1);
            }
        }
    }
    child
}

/// Signals that end a program, and the one by which the tool does.
const FATAL: [c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    STOP_SIGNAL,
];

/// Catches signals that would end the process, on a stack of their own so that an overflow can be told.
pub fn catch_signals() {
    const STACK: usize = 64 << 10;
    let stack = Vec::leak(vec![0u8; STACK]);
    // SAFETY: the stack is never freed; the handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK };
        libc::sigaltstack(&stack, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fatal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for signal in FATAL {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

extern "C" fn fatal(signal: c_int, info: *const libc::siginfo_t, context: *const libc::ucontext_t) {
    if !active() {
        // A forked child: what it would have died of, it dies of.
        // SAFETY: restores the default and lets the signal come again.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    // SAFETY: the kernel's description of the signal.
    let (registers, address) = unsafe { (&(*context).uc_mcontext.gregs, (*info).si_addr() as u64) };
    let pc = registers[libc::REG_RIP as usize] as u64;
    let stack_pointer = registers[libc::REG_RSP as usize] as u64;
    // What the program was about to write may be what it died of.
    log::forget_write();
    if signal == STOP_SIGNAL {
        finish(Ending::TimeLimit, 0, if modules::is_ours(pc) { 0 } else { pc + 1 }, "");
    }
    const NEAR: u64 = 1 << 16;
    let overflow = address.wrapping_sub(stack_pointer) < NEAR || stack_pointer.wrapping_sub(address) < NEAR;
    // A location is looked up one byte before its address, which for a call is the call itself; a fault is at
    // the instruction. In a hook that was passed a wild pointer, the top of the stack is its return address.
    let pc = match modules::is_ours(pc) {
        false => pc + 1,
        true if overflow => 0,
        true => {
            // SAFETY: the stack pointer of code that was running.
            let top = unsafe { (stack_pointer as *const u64).read() };
            if modules::is_ours(top) { 0 } else { top }
        }
    };
    let message = if overflow { "stack overflow".to_owned() } else { format!("address {address:#x}") };
    let message = if signal == libc::SIGABRT { String::new() } else { message };
    finish(Ending::Signal, signal as u32, pc, &message)
}
