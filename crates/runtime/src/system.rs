//! System calls of the runtime's own. libc's `syscall` will not do: here that name is the runtime's.

use std::ffi::c_long;

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

/// Ends the process with all its threads.
pub fn exit(code: i32) -> ! {
    call(libc::SYS_exit_group, [code as u64, 0, 0, 0, 0, 0]);
    unreachable!("exit_group returned")
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
