//! `exec`: the process becomes another program.
//!
//! Before the first thread, the tested program may still be on its way: it sets its environment and starts itself anew, or
//! it is a wrapper around another. So the new program gets what makes the runtime active, and says to the tool that it is
//! another. In a run, the run is over: the new program has no threads that were under test. It is not even started, since
//! what it does would be done once for each schedule. Child processes are not under test, and call libc as they always do.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use threadbare_trace::End;
use threadbare_wire as wire;

use crate::active;
use crate::entry::intercept::{export, intercept};
use crate::entry::log;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::os::{instructions, system};
use crate::schedule::ending::{finish, here};
use crate::schedule::scheduler;

type Strings = *const *const c_char;

/// The `LD_PRELOAD` that this process was started with.
static PRELOAD: OnceLock<CString> = OnceLock::new();

/// Remembers what was set for the runtime.
pub fn remember(preload: &CStr) {
    PRELOAD.get_or_init(|| preload.to_owned());
}

unsafe extern "C" {
    static environ: Strings;
}

/// Ends a run that becomes the program at `path`, if it can be executed. Otherwise the call fails as it should.
fn end_run(path: Option<&Path>, pc: u64) {
    if scheduler::is_running()
        && let Some(path) = path
    {
        finish(&End::Exec { program: path.to_string_lossy().into_owned(), at: here(users_call(pc)) });
    }
}

/// Executes, before the first thread: `execute` is called with the environment for the new program.
///
/// # Safety
/// `environment` is null, or a list of strings that ends in a null.
unsafe fn go_on_as(path: &Path, environment: Strings, execute: impl FnOnce(Strings) -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    let (_kept, environment) = unsafe { with_ours(environment) };
    let end = &log::control().end;
    end.put(&End::Exec { program: path.to_string_lossy().into_owned(), at: here(0) });
    let result = instructions::left_alone(|| execute(environment.as_ptr()));
    end.clear();
    result
}

/// The environment with what makes the runtime active; the strings that were made for it come first.
///
/// # Safety
/// As [`go_on_as`].
unsafe fn with_ours(environment: Strings) -> (Vec<CString>, Vec<*const c_char>) {
    let mut theirs = Vec::new();
    let mut next = environment;
    // SAFETY: the caller's promise.
    while !next.is_null() && !unsafe { *next }.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            theirs.push(*next);
            next = next.add(1);
        }
    }
    // SAFETY: the caller's promise.
    let bytes = |string: &*const c_char| unsafe { CStr::from_ptr(*string) }.to_bytes();
    let users = theirs.iter().map(bytes).find_map(|text| text.strip_prefix(b"LD_PRELOAD="));
    let ours = PRELOAD.get().map_or(&b""[..], |preload| preload.to_bytes());
    let made = [
        format!("{}={}", wire::ENVIRONMENT, wire::VERSION).into_bytes(),
        [b"LD_PRELOAD=", ours].concat(),
        [wire::PRELOAD.as_bytes(), b"=", users.unwrap_or_default()].concat(),
    ];
    let made: Vec<CString> = made.into_iter().filter_map(|text| CString::new(text).ok()).collect();
    theirs.retain(|string| !bytes(string).starts_with(b"LD_PRELOAD="));
    let all = made.iter().map(|string| string.as_ptr()).chain(theirs).chain([std::ptr::null()]).collect();
    (made, all)
}

/// The file at `path`, if it can be executed.
fn executable(path: &Path) -> Option<PathBuf> {
    let is_file = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    let (here, execute) = (libc::AT_FDCWD as u64, libc::X_OK as u64);
    // SAFETY: the kernel reads the path, which ends in a zero.
    let may =
        unsafe { system::call(libc::SYS_faccessat, [here, name.as_ptr() as u64, execute, 0, 0, 0]) } == 0;
    (is_file && may).then(|| path.to_owned())
}

/// The file that `execvp` takes for this name.
fn found(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return executable(name);
    }
    let directories = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&directories).find_map(|directory| executable(&directory.join(name)))
}

/// A path of the program's.
///
/// # Safety
/// `path` is a string.
unsafe fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

/// The file behind a descriptor.
fn file_of(descriptor: c_int) -> PathBuf {
    let link = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
    std::fs::read_link(&link).unwrap_or(link)
}

/// Becomes the program at `path`, or of this name in one of the usual directories if it `searches`.
///
/// # Safety
/// As for libc's functions: `path` is a string, and the others are lists of strings that end in a null.
unsafe fn exec(
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    searches: bool,
    pc: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { path_of(path) };
    let file = if searches { found(name) } else { executable(name) };
    end_run(file.as_deref(), pc);
    let execute = |environment: Strings| {
        // SAFETY: the caller's promise; the environment is a list that ends in a null.
        unsafe {
            match searches {
                true => {
                    real!(execvpe(path => *const c_char, arguments => Strings, environment => Strings) -> c_int)
                }
                false => {
                    real!(execve(path => *const c_char, arguments => Strings, environment => Strings) -> c_int)
                }
            }
        }
    };
    if scheduler::is_running() {
        return execute(environment);
    }
    // SAFETY: the caller's promise.
    unsafe { go_on_as(file.as_deref().unwrap_or(name), environment, execute) }
}

intercept! {
    fn execve(path: *const c_char, arguments: Strings, environment: Strings; pc) -> c_int {
        // SAFETY: the program promises libc that its arguments are valid.
        unsafe { exec(path, arguments, environment, false, pc) }
    }

    fn execv(path: *const c_char, arguments: Strings; pc) -> c_int {
        // SAFETY: the program promises libc that its arguments are valid.
        unsafe { exec(path, arguments, environ, false, pc) }
    }

    fn execvp(file: *const c_char, arguments: Strings; pc) -> c_int {
        // SAFETY: the program promises libc that its arguments are valid.
        unsafe { exec(file, arguments, environ, true, pc) }
    }

    fn execvpe(file: *const c_char, arguments: Strings, environment: Strings; pc) -> c_int {
        // SAFETY: the program promises libc that its arguments are valid.
        unsafe { exec(file, arguments, environment, true, pc) }
    }

    fn fexecve(descriptor: c_int, arguments: Strings, environment: Strings; pc) -> c_int, calling execute {
        let file = file_of(descriptor);
        end_run(Some(&file), pc);
        // SAFETY: the program promises libc that its arguments are valid.
        unsafe { go_on_as(&file, environment, |environment| execute(descriptor, arguments, environment)) }
    }

    fn execveat(
        directory: c_int, path: *const c_char, arguments: Strings, environment: Strings, flags: c_int; pc
    ) -> c_int, calling execute {
        // SAFETY: the program promises libc that its arguments are valid.
        let name = unsafe { path_of(path) };
        let from = if directory == libc::AT_FDCWD { PathBuf::from(".") } else { file_of(directory) };
        // An empty name is the file of the descriptor.
        let file = if name.as_os_str().is_empty() { from } else { from.join(name) };
        end_run(executable(&file).as_deref(), pc);
        let execute = |environment| {
            // SAFETY: the program promises libc that its arguments are valid.
            unsafe { execute(directory, path, arguments, environment, flags) }
        };
        // SAFETY: the program promises libc that its arguments are valid.
        unsafe { go_on_as(&file, environment, execute) }
    }
}

/// Which of the functions with a list of arguments was called.
const EXECL: u64 = 0;
const EXECLP: u64 = 1;
const EXECLE: u64 = 2;

/// Exports a function with a list of arguments: those in registers are put below those on the stack, so that all can be
/// read in their order.
macro_rules! with_list {
    ($($name:ident = $which:expr;)+) => { export! { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                // The return address, then the registers.
                "mov r10, [rsp]",
                "sub rsp, 56",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov rdi, rsp",
                "lea rsi, [rsp + 64]",
                "mov rdx, r10",
                "mov ecx, {which}",
                "call {list}",
                "add rsp, 56",
                "ret",
                which = const $which,
                list = sym exec_list,
            )
        }
    )+ } };
}

with_list! {
    execl = EXECL;
    execlp = EXECLP;
    execle = EXECLE;
}

/// # Safety
/// `registers` are the six that arguments come in, `stack` is where the others follow. The first is a string, the others
/// are strings up to a null, after which `execle` has its environment.
unsafe extern "C" fn exec_list(registers: *const u64, stack: *const u64, pc: u64, which: u64) -> c_int {
    // SAFETY: the caller's promise: nothing is read beyond the null, or what follows it.
    let word = |at: usize| unsafe { if at < 6 { *registers.add(at) } else { *stack.add(at - 6) } };
    let count = (1..).take_while(|&at| word(at) != 0).count();
    let arguments: Vec<*const c_char> = (1..=count + 1).map(|at| word(at) as *const c_char).collect();
    // SAFETY: libc keeps the environment a list of strings.
    let environment = if which == EXECLE { word(count + 2) as Strings } else { unsafe { environ } };
    let (path, arguments) = (word(0) as *const c_char, arguments.as_ptr());
    // SAFETY: the caller's promise.
    unsafe {
        match active() {
            true => exec(path, arguments, environment, which == EXECLP, pc),
            false if which == EXECLP => {
                real!(execvpe(path => *const c_char, arguments => Strings, environment => Strings) -> c_int)
            }
            false => {
                real!(execve(path => *const c_char, arguments => Strings, environment => Strings) -> c_int)
            }
        }
    }
}
