//! System calls of the runtime's own, and errno. libc's functions will not do: here many of their names are the
//! runtime's, and lead on to the program's libraries.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_long};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::time::clock::nanoseconds;

/// The kernel's answer; errors are negative.
///
/// # Safety
/// What the kernel does in answer breaks no memory: pointers among the arguments are to memory as large as the call
/// takes it for, and no mapping goes away that is in use.
pub unsafe fn call(number: c_long, [a, b, c, d, e, f]: [u64; 6]) -> c_long {
    let result: c_long;
    GATE.store(OPEN, Ordering::Relaxed);
    // SAFETY: the caller's promise. The instruction changes no register but those named.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    GATE.store(CLOSED, Ordering::Relaxed);
    result
}

/// While it is open, the kernel makes system calls from anywhere, if [`super::dispatch`] watches them.
static GATE: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = 0;
const CLOSED: u8 = 1;

/// Where the kernel looks.
pub fn gate() -> u64 {
    GATE.as_ptr() as u64
}

/// The same for calls whose arguments are numbers.
fn call_with_numbers(number: c_long, arguments: [u64; 6]) -> c_long {
    // SAFETY: only the functions below call this, with calls that take no pointers and unmap nothing.
    unsafe { call(number, arguments) }
}

/// This memory can be read. To read it would end the program if not.
pub fn can_read(address: u64, bytes: u64) -> bool {
    let mut copy = [0u8; 8];
    let bytes = bytes.min(copy.len() as u64);
    let (to, from) = ([copy.as_mut_ptr() as u64, bytes], [address, bytes]);
    let me = call_with_numbers(libc::SYS_getpid, [0; 6]) as u64;
    let arguments = [me, to.as_ptr() as u64, 1, from.as_ptr() as u64, 1, 0];
    // SAFETY: the kernel writes to the copy alone, no more than it has room for.
    let result = unsafe { call(libc::SYS_process_vm_readv, arguments) };
    result != -c_long::from(libc::EFAULT)
}

pub fn close(descriptor: c_int) {
    call_with_numbers(libc::SYS_close, [descriptor as u64, 0, 0, 0, 0, 0]);
}

/// `fcntl`, for commands whose argument is a number.
pub fn fcntl(descriptor: c_int, command: c_int, argument: c_long) -> c_long {
    const WITH_NUMBER: [c_int; 5] =
        [libc::F_GETFD, libc::F_GETFL, libc::F_SETFL, libc::F_GETPIPE_SZ, libc::F_SETPIPE_SZ];
    assert!(WITH_NUMBER.contains(&command), "the command may take a pointer");
    call_with_numbers(libc::SYS_fcntl, [descriptor as u64, command as u64, argument as u64, 0, 0, 0])
}

/// Puts `new` in the place of `old`.
pub fn dup3(new: c_int, old: c_int, flags: c_int) -> c_long {
    call_with_numbers(libc::SYS_dup3, [new as u64, old as u64, flags as u64, 0, 0, 0])
}

pub fn eventfd(flags: c_int) -> c_int {
    call_with_numbers(libc::SYS_eventfd2, [0, flags as u64, 0, 0, 0, 0]) as c_int
}

pub fn epoll_create() -> c_int {
    call_with_numbers(libc::SYS_epoll_create1, [0; 6]) as c_int
}

/// A descriptor for a process; negative if there is none.
pub fn open_process(process: libc::pid_t) -> c_int {
    call_with_numbers(libc::SYS_pidfd_open, [process as u64, 0, 0, 0, 0, 0]) as c_int
}

pub fn kill(process: libc::pid_t, signal: c_int) {
    call_with_numbers(libc::SYS_kill, [process as u64, signal as u64, 0, 0, 0, 0]);
}

/// The kernel's number for this process.
pub fn process_id() -> libc::pid_t {
    call_with_numbers(libc::SYS_getpid, [0; 6]) as libc::pid_t
}

/// Both numbers of this process mean the same open file.
pub fn is_same_file(one: c_int, other: c_int) -> bool {
    const KCMP_FILE: u64 = 0;
    let me = process_id() as u64;
    call_with_numbers(libc::SYS_kcmp, [me, me, KCMP_FILE, one as u64, other as u64, 0]) == 0
}

/// Makes a copy of the process with these flags of `clone`; 0 in the copy.
///
/// The bare system call, because glibc's fork would take the parked threads' stacks for garbage. Only the carrier runs,
/// so no lock of libc's is held by anybody else.
pub fn fork(flags: c_int) -> i64 {
    assert!(flags & libc::CLONE_VM == 0, "a fork shares no memory");
    call_with_numbers(libc::SYS_clone, [flags as u64, 0, 0, 0, 0, 0])
}

/// Waits for a child to end; its status, or `None` when that failed.
pub fn wait_for(child: libc::pid_t, options: c_int) -> Option<c_int> {
    let mut status = 0;
    let arguments = [child as u64, (&raw mut status) as u64, options as u64, 0, 0, 0];
    // SAFETY: the status is written to a place of our own.
    (unsafe { call(libc::SYS_wait4, arguments) } == i64::from(child)).then_some(status)
}

/// This child has not ended yet. If it has, the kernel forgets it.
pub fn is_child_running(child: libc::pid_t) -> bool {
    const NOW: u64 = (libc::__WALL | libc::WNOHANG) as u64;
    // No place is given for the status. 0 is the answer for a child that runs.
    call_with_numbers(libc::SYS_wait4, [child as u64, 0, NOW, 0, 0, 0]) == 0
}

/// There is such a child. It may have ended.
pub fn has_child(kind: libc::idtype_t, id: libc::pid_t) -> bool {
    const LOOK_ONLY: u64 = (libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) as u64;
    // No place is given for a description of the child.
    call_with_numbers(libc::SYS_waitid, [kind.into(), id as u64, 0, LOOK_ONLY, 0, 0]) >= 0
}

/// Waits until a descriptor is ready, at most so many milliseconds. Returns how many are ready.
pub fn poll(entries: &[Cell<libc::pollfd>], milliseconds: u64) -> c_long {
    let arguments = [entries.as_ptr() as u64, entries.len() as u64, milliseconds, 0, 0, 0];
    // SAFETY: the kernel writes to the entries, which are `Cell`s.
    unsafe { call(libc::SYS_poll, arguments) }
}

pub fn read(descriptor: c_int, buffer: &mut [u8]) -> c_long {
    let arguments = [descriptor as u64, buffer.as_mut_ptr() as u64, buffer.len() as u64, 0, 0, 0];
    // SAFETY: the kernel writes to the buffer alone.
    unsafe { call(libc::SYS_read, arguments) }
}

pub fn write(descriptor: c_int, bytes: &[u8]) -> c_long {
    let arguments = [descriptor as u64, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0, 0];
    // SAFETY: the kernel reads the bytes alone.
    unsafe { call(libc::SYS_write, arguments) }
}

/// Sends on a socket.
pub fn send(socket: c_int, bytes: &[u8], flags: c_int) -> c_long {
    let arguments = [socket as u64, bytes.as_ptr() as u64, bytes.len() as u64, flags as u64, 0, 0];
    // SAFETY: the kernel reads the bytes alone.
    unsafe { call(libc::SYS_sendto, arguments) }
}

/// Opens a file that is there; negative if that fails.
pub fn open(path: &CStr, flags: c_int) -> c_int {
    // SAFETY: the path ends in a zero.
    unsafe { call(libc::SYS_open, [path.as_ptr() as u64, flags as u64, 0, 0, 0, 0]) as c_int }
}

/// Opens a file to read; negative if that fails.
pub fn open_to_read(path: &CStr) -> c_int {
    open(path, libc::O_RDONLY | libc::O_CLOEXEC)
}

/// Reads two numbers from a file; `false` at its end.
pub fn read_words(file: c_int, words: &mut [u64; 2]) -> bool {
    let bytes = size_of_val(words);
    // SAFETY: the kernel writes to the two words alone, and any bytes are numbers.
    unsafe {
        call(libc::SYS_read, [file as u64, words.as_mut_ptr() as u64, bytes as u64, 0, 0, 0]) == bytes as i64
    }
}

/// Lists a directory that is open. libc would allocate memory for that, from a `malloc` that may be the program's.
pub fn for_each_name(directory: c_int, mut visit: impl FnMut(&[u8])) {
    /// Where an entry has its own length, and where its name begins.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut entries = [0u64; 512];
    loop {
        let arguments =
            [directory as u64, entries.as_mut_ptr() as u64, size_of_val(&entries) as u64, 0, 0, 0];
        // SAFETY: the kernel writes to the array alone, and says how many bytes.
        let (Ok(count @ 1..), start) = (
            usize::try_from(unsafe { call(libc::SYS_getdents64, arguments) }),
            entries.as_ptr().cast::<u8>(),
        ) else {
            return;
        };
        // SAFETY: so many bytes of the array.
        let mut rest = unsafe { std::slice::from_raw_parts(start, count) };
        while let Some(&[low, high]) = rest.get(LENGTH..LENGTH + 2) {
            let (entry, others) = rest.split_at(usize::from(u16::from_ne_bytes([low, high])));
            visit(entry[NAME..].split(|&byte| byte == 0).next().unwrap_or_default());
            rest = others;
        }
    }
}

/// What the kernel says of an open file.
pub fn status(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: all zeroes is a status, and the kernel writes to it alone.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let arguments = [descriptor as u64, (&raw mut status) as u64, 0, 0, 0, 0];
        (call(libc::SYS_fstat, arguments) == 0).then_some(status)
    }
}

/// The text of a file, or nothing. What the program reads is part of what it knows; this is not.
pub fn read_file(path: &str) -> String {
    let (path, mut text) = (format!("{path}\0"), Vec::new());
    let file = CStr::from_bytes_with_nul(path.as_bytes()).map_or(-1, open_to_read);
    if file >= 0 {
        let mut piece = [0u8; 4096];
        while let Ok(count @ 1..) = usize::try_from(read(file, &mut piece)) {
            text.extend_from_slice(&piece[..count]);
        }
        close(file);
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Ends the process with all its threads.
pub fn exit(code: i32) -> ! {
    call_with_numbers(libc::SYS_exit_group, [code as u64, 0, 0, 0, 0, 0]);
    unreachable!("exit_group returned")
}

/// Waits as long as a word that processes share has this value, at most so many nanoseconds.
pub fn futex_wait(word: &AtomicU32, value: u32, max: Option<i64>) {
    let max = max.map(|max| libc::timespec { tv_sec: 0, tv_nsec: max });
    let max = max.as_ref().map_or(0, |max| std::ptr::from_ref(max) as u64);
    let address = std::ptr::from_ref(word) as u64;
    // SAFETY: the kernel reads the word and the time.
    unsafe { call(libc::SYS_futex, [address, libc::FUTEX_WAIT as u64, u64::from(value), max, 0, 0]) };
}

/// Wakes whoever waits for the word to change.
pub fn futex_wake(word: &AtomicU32) {
    let address = std::ptr::from_ref(word) as u64;
    // SAFETY: the word is only named.
    unsafe { call(libc::SYS_futex, [address, libc::FUTEX_WAKE as u64, 1, 0, 0, 0]) };
}

/// Real time, in nanoseconds from some moment on.
pub fn monotonic_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let place = &raw mut time as u64;
    // SAFETY: the time is written to a place of our own.
    unsafe { call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as u64, place, 0, 0, 0, 0]) };
    nanoseconds(&time)
}

/// errno of the running thread.
pub fn errno() -> c_int {
    // SAFETY: libc gives every thread an errno, which stays where it is while the thread runs.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(error: c_int) {
    // SAFETY: libc gives every thread an errno, which stays where it is while the thread runs.
    unsafe { *libc::__errno_location() = error };
}

/// Fails as libc's functions do.
pub fn fail(error: c_int) -> c_int {
    set_errno(error);
    -1
}

/// Does `work`, after which the program must find errno as it left it.
pub fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = work();
    set_errno(before);
    result
}
