//! `flockfile`: a lock on a stream that a thread may hold for longer than one call.
//!
//! The runtime keeps a lock of its own for each stream. libc's lock is not taken, because another thread may run while
//! it is held. Functions that use a stream wait until no other thread has locked it. No thread runs between that and
//! their own work, so they need not hold the lock.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};

use super::Patience;
use super::mutex::{self, Mutex};
use crate::active;
use crate::entry::intercept::{export, intercept};
use crate::entry::real;
use crate::hooks::calls;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

type Stream = *mut libc::FILE;

/// A recursive mutex for each stream that was ever locked.
static LOCKS: Carrier<Vec<(Stream, &'static Mutex)>> = Carrier::new(Vec::new());

fn find(stream: Stream) -> Option<&'static Mutex> {
    LOCKS.with(|locks| locks.iter().find(|(other, _)| *other == stream).map(|&(_, lock)| lock))
}

fn find_or_make(stream: Stream) -> &'static Mutex {
    find(stream).unwrap_or_else(|| {
        // SAFETY: all zeroes is a mutex that nobody holds; it is never freed.
        let lock = unsafe { Mutex::at(Box::leak(Box::new(std::mem::zeroed()))) };
        lock.set_kind(Mutex::RECURSIVE);
        LOCKS.with(|locks| locks.push((stream, lock)));
        lock
    })
}

intercept! {
    fn flockfile(stream: Stream; pc) {
        mutex::lock(find_or_make(stream), Patience::Endless, pc);
    }

    fn ftrylockfile(stream: Stream; pc) -> c_int {
        mutex::lock(find_or_make(stream), Patience::None, pc)
    }

    fn funlockfile(stream: Stream; pc) {
        mutex::unlock(find_or_make(stream), pc);
    }
}

unsafe extern "C" {
    static stdin: Stream;
    static stdout: Stream;
    static stderr: Stream;
}

/// Waits until no other thread has locked the stream. All calls go on to libc afterwards, so while the runtime is
/// inactive there is just no wait.
fn wait_for(stream: Stream, pc: u64) {
    if !active() {
        return;
    }
    calls::enter_unseen();
    let Some(lock) = find(stream) else { return };
    if !lock.is_free() && !lock.is_owned_by(scheduler::current()) {
        mutex::lock(lock, Patience::Endless, pc);
        mutex::unlock(lock, pc);
    }
}

/// `uses_stream! { name: stream; }`: exports `name`, which waits for the stream and goes on to libc's function with
/// all its arguments, of which there may be any number. The stream is one of the first six, given as a number, or
/// else a standard one.
macro_rules! uses_stream {
    ($($name:ident: $stream:tt;)+) => { $(
        export! {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            /// Waits; returns libc's function.
            extern "C" fn before(arguments: &[Stream; 6], pc: u64) -> *mut c_void {
                let _ = arguments;
                wait_for(uses_stream!(@stream arguments $stream), pc);
                real::found!(next, $name, None)
            }
            naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbp, 0",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 192",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov [rsp + 48], rax",
                "movaps [rsp + 64], xmm0",
                "movaps [rsp + 80], xmm1",
                "movaps [rsp + 96], xmm2",
                "movaps [rsp + 112], xmm3",
                "movaps [rsp + 128], xmm4",
                "movaps [rsp + 144], xmm5",
                "movaps [rsp + 160], xmm6",
                "movaps [rsp + 176], xmm7",
                "mov rdi, rsp",
                "mov rsi, [rbp + 8]",
                "call {before}",
                "mov r11, rax",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "mov rax, [rsp + 48]",
                "movaps xmm0, [rsp + 64]",
                "movaps xmm1, [rsp + 80]",
                "movaps xmm2, [rsp + 96]",
                "movaps xmm3, [rsp + 112]",
                "movaps xmm4, [rsp + 128]",
                "movaps xmm5, [rsp + 144]",
                "movaps xmm6, [rsp + 160]",
                "movaps xmm7, [rsp + 176]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "jmp r11",
                ".cfi_endproc",
                before = sym before,
            )
        }
        }
    )+ };
    // SAFETY: libc sets it before the program's code runs, and the program keeps a stream there.
    (@stream $arguments:ident stdin) => { unsafe { stdin } };
    // SAFETY: libc sets it before the program's code runs, and the program keeps a stream there.
    (@stream $arguments:ident stdout) => { unsafe { stdout } };
    // SAFETY: libc sets it before the program's code runs, and the program keeps a stream there.
    (@stream $arguments:ident stderr) => { unsafe { stderr } };
    (@stream $arguments:ident $index:literal) => { $arguments[$index] };
}

uses_stream! {
    printf: stdout;
    vprintf: stdout;
    __printf_chk: stdout;
    __vprintf_chk: stdout;
    puts: stdout;
    putchar: stdout;
    perror: stderr;
    fprintf: 0;
    vfprintf: 0;
    __fprintf_chk: 0;
    __vfprintf_chk: 0;
    fputs: 1;
    fputc: 1;
    putc: 1;
    fwrite: 3;
    fflush: 0;
    scanf: stdin;
    vscanf: stdin;
    __isoc99_scanf: stdin;
    __isoc99_vscanf: stdin;
    __isoc23_scanf: stdin;
    __isoc23_vscanf: stdin;
    getchar: stdin;
    fscanf: 0;
    vfscanf: 0;
    __isoc99_fscanf: 0;
    __isoc99_vfscanf: 0;
    __isoc23_fscanf: 0;
    __isoc23_vfscanf: 0;
    fgetc: 0;
    getc: 0;
    ungetc: 1;
    fgets: 2;
    __fgets_chk: 3;
    fread: 3;
    __fread_chk: 4;
    getline: 2;
    getdelim: 3;
}
