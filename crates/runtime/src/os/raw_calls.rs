//! System calls that a program makes by their number: with libc's `syscall`, or with an instruction of its own
//! ([`super::dispatch`]).
//!
//! A call that libc has a function for is a call of that function, as far as the runtime models it. What matters to
//! the schedule and is not modelled is refused by its name. The rest is the kernel's.

use std::arch::naked_asm;
use std::ffi::{c_int, c_long};

use super::{children, system};
use crate::active;
use crate::entry::intercept::export;
use crate::entry::process;
use crate::memory::mappings;
use crate::os::randomness;
use crate::schedule::carrier::Carrier;
use crate::sync::futex;

/// Seven arguments leave no register for the return address; only the carrier needs it.
static RETURN_ADDRESS: Carrier<u64> = Carrier::new(0);

export! {
    #[unsafe(naked)]
    unsafe extern "C" fn syscall() {
        naked_asm!(
            "mov rax, [rsp]",
            "mov [rip + {address}], rax",
            "jmp {call}",
            address = sym RETURN_ADDRESS,
            call = sym call,
        )
    }
}

unsafe extern "C" fn call(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long {
    // SAFETY: the program promises the kernel that its arguments are valid.
    result(unsafe { perform(number, [a, b, c, d, e, f], RETURN_ADDRESS.get()) })
}

/// The kernel's answer as libc gives it.
pub fn result(answer: c_long) -> c_long {
    if (-4095..0).contains(&answer) { system::fail(-answer as c_int).into() } else { answer }
}

/// libc's answer as the kernel gives it.
fn answer(result: c_long) -> c_long {
    if result == -1 { -c_long::from(system::errno()) } else { result }
}

/// Makes the program's call that returns to `pc`. The answer is as the kernel gives it.
///
/// # Safety
/// The program promises the kernel that its arguments are valid.
pub unsafe fn perform(number: c_long, arguments: [u64; 6], pc: u64) -> c_long {
    let [a, b, c, d, _, f] = arguments;
    if active() {
        match number {
            libc::SYS_futex => {
                let call = futex::Call {
                    address: a,
                    operation: b as c_int,
                    value: c as u32,
                    timeout: d as *const libc::timespec,
                    mask: f as u32,
                };
                // SAFETY: the caller's promise.
                return answer(unsafe { futex::call(&call, pc) });
            }
            libc::SYS_getrandom => {
                // SAFETY: the caller promises a buffer of this length.
                unsafe { randomness::fill(a as *mut u8, b as usize) };
                return b as c_long;
            }
            libc::SYS_clone | libc::SYS_vfork | libc::SYS_fork => {
                return children::clone(number, arguments, pc);
            }
            _ => {}
        }
        if let Some(name) = refused(number) {
            process::unsupported(&format!("system call {name}"), pc);
        }
        if let Some(function) = function(number) {
            // SAFETY: libc's function of that name takes what the system call takes.
            return answer(unsafe { function.call(arguments) });
        }
        mappings::before_raw_call(number, d as c_int);
    }
    // SAFETY: the caller's promise.
    unsafe { system::call(number, arguments) }
}

/// A function of the runtime's that stands in for libc's, and takes what a system call takes.
enum Function {
    /// It returns an `int`.
    Int(unsafe extern "C" fn()),
    /// It returns a size, or a longer number.
    Long(unsafe extern "C" fn()),
    /// It returns the number of an error, and does not set errno.
    Error(unsafe extern "C" fn()),
}

impl Function {
    /// # Safety
    /// The arguments are valid for it.
    unsafe fn call(self, [a, b, c, d, e, f]: [u64; 6]) -> c_long {
        type OfInt = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> c_int;
        type OfLong = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> c_long;
        type Any = unsafe extern "C" fn();
        // SAFETY: the caller's promise. A function ignores the arguments that it does not have.
        unsafe {
            match self {
                Function::Int(int) => std::mem::transmute::<Any, OfInt>(int)(a, b, c, d, e, f).into(),
                Function::Long(long) => std::mem::transmute::<Any, OfLong>(long)(a, b, c, d, e, f),
                Function::Error(error) => match std::mem::transmute::<Any, OfInt>(error)(a, b, c, d, e, f) {
                    0 => 0,
                    error => system::fail(error).into(),
                },
            }
        }
    }
}

/// `functions! { kind: names }`: the functions of this library that have the names of system calls.
macro_rules! functions {
    ($($kind:ident: $($number:ident $name:ident)+;)+) => {
        fn function(number: c_long) -> Option<Function> {
            unsafe extern "C" { $($( fn $name(); )+)+ }
            match number {
                $($( libc::$number => Some(Function::$kind($name)), )+)+
                _ => None,
            }
        }
    };
}

functions! {
    Int:
        SYS_accept accept SYS_accept4 accept4 SYS_clock_gettime clock_gettime SYS_close close
        SYS_close_range close_range SYS_connect connect SYS_dup2 dup2 SYS_dup3 dup3 SYS_epoll_pwait epoll_pwait
        SYS_epoll_pwait2 epoll_pwait2 SYS_epoll_wait epoll_wait SYS_eventfd2 eventfd SYS_execve execve
        SYS_execveat execveat SYS_exit_group _exit SYS_fcntl fcntl SYS_flock flock SYS_getpid getpid SYS_gettid gettid SYS_gettimeofday gettimeofday
        SYS_kill kill SYS_nanosleep nanosleep SYS_pipe pipe SYS_pipe2 pipe2 SYS_poll poll SYS_ppoll ppoll
        SYS_recvmmsg recvmmsg SYS_sched_yield sched_yield SYS_select select SYS_sendmmsg sendmmsg
        SYS_shutdown shutdown SYS_socketpair socketpair SYS_timerfd_create timerfd_create
        SYS_timerfd_settime timerfd_settime SYS_timerfd_gettime timerfd_gettime SYS_wait4 wait4;
    Long:
        SYS_preadv2 preadv2 SYS_pwritev2 pwritev2 SYS_read read SYS_readv readv SYS_recvfrom recvfrom
        SYS_recvmsg recvmsg SYS_sendfile sendfile SYS_sendmsg sendmsg SYS_sendto sendto SYS_splice splice
        SYS_tee tee SYS_time time SYS_vmsplice vmsplice SYS_write write SYS_writev writev;
    Error:
        SYS_clock_nanosleep clock_nanosleep;
}

/// The name of a call that would go past the scheduler.
fn refused(number: c_long) -> Option<&'static str> {
    /// Newer than the `libc` crate.
    const SYS_FUTEX_WAKE: c_long = 454;
    const SYS_FUTEX_WAIT: c_long = 455;
    const SYS_FUTEX_REQUEUE: c_long = 456;
    Some(match number {
        libc::SYS_clone3 => "clone3",
        libc::SYS_exit => "exit (of one thread)",
        libc::SYS_futex_waitv => "futex_waitv",
        libc::SYS_io_uring_setup => "io_uring_setup",
        libc::SYS_io_uring_enter => "io_uring_enter",
        libc::SYS_io_uring_register => "io_uring_register",
        libc::SYS_io_submit => "io_submit",
        libc::SYS_io_getevents => "io_getevents",
        libc::SYS_pselect6 => "pselect6",
        libc::SYS_tgkill => "tgkill",
        libc::SYS_tkill => "tkill",
        SYS_FUTEX_WAKE => "futex_wake",
        SYS_FUTEX_WAIT => "futex_wait",
        SYS_FUTEX_REQUEUE => "futex_requeue",
        _ => return None,
    })
}
