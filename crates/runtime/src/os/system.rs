//! System calls of the runtime's own. libc's `syscall` will not do: here that name is the runtime's.

use std::ffi::{c_int, c_long};
use std::sync::atomic::AtomicU32;

use crate::time::clock::nanoseconds;

/// The kernel's answer; errors are negative.
pub fn call(number: c_long, [a, b, c, d, e, f]: [u64; 6]) -> c_long {
    let result: c_long;
    // SAFETY: the caller answers for what it asks of the kernel.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Fails as libc's functions do.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: errno of the running thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// The text of a file, or nothing. What the program reads is part of what it knows; this is not.
pub fn read_file(path: &str) -> String {
    let (path, mut text) = (format!("{path}\0"), Vec::new());
    let file = call(libc::SYS_open, [path.as_ptr() as u64, libc::O_RDONLY as u64, 0, 0, 0, 0]);
    if file >= 0 {
        let mut piece = [0u8; 4096];
        while let Ok(count @ 1..) =
            usize::try_from(call(libc::SYS_read, [file as u64, piece.as_mut_ptr() as u64, 4096, 0, 0, 0]))
        {
            text.extend_from_slice(&piece[..count]);
        }
        call(libc::SYS_close, [file as u64, 0, 0, 0, 0, 0]);
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Ends the process with all its threads.
pub fn exit(code: i32) -> ! {
    call(libc::SYS_exit_group, [code as u64, 0, 0, 0, 0, 0]);
    unreachable!("exit_group returned")
}

/// Waits as long as a word that processes share has this value, at most so many nanoseconds.
pub fn futex_wait(word: &AtomicU32, value: u32, most: Option<i64>) {
    let most = most.map(|most| libc::timespec { tv_sec: 0, tv_nsec: most });
    let most = most.as_ref().map_or(0, |most| std::ptr::from_ref(most) as u64);
    let address = std::ptr::from_ref(word) as u64;
    call(libc::SYS_futex, [address, libc::FUTEX_WAIT as u64, u64::from(value), most, 0, 0]);
}

/// Wakes whoever waits for the word to change.
pub fn futex_wake(word: &AtomicU32) {
    let address = std::ptr::from_ref(word) as u64;
    call(libc::SYS_futex, [address, libc::FUTEX_WAKE as u64, 1, 0, 0, 0]);
}

/// Real time, in nanoseconds from some moment on.
pub fn monotonic_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let place = &raw mut time as u64;
    call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as u64, place, 0, 0, 0, 0]);
    nanoseconds(&time)
}

/// Does `work`, after which the program must find errno as it left it.
pub fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: errno of the running thread, which is the same one afterwards.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    let result = work();
    *errno = before;
    result
}
