//! `syscall`: system calls that a program makes by their number.

use std::arch::naked_asm;
use std::ffi::{c_int, c_long};

use crate::active;
use crate::entry::intercept::export;
use crate::memory::mappings;
use crate::os::{identity, randomness, system};
use crate::schedule::carrier::Carrier;
use crate::sync::futex;
use crate::time::sleep;

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
    if active() {
        let pc = RETURN_ADDRESS.get();
        match number {
            libc::SYS_futex => {
                let call = futex::Call {
                    address: a,
                    operation: b as c_int,
                    value: c as u32,
                    timeout: d as *const libc::timespec,
                    mask: f as u32,
                };
                // SAFETY: the program promises the kernel that these arguments are valid for the call.
                return unsafe { futex::call(&call, pc) };
            }
            libc::SYS_getrandom => {
                // SAFETY: the program promises the kernel a buffer of this length.
                unsafe { randomness::fill(a as *mut u8, b as usize) };
                return b as c_long;
            }
            libc::SYS_getpid => return c_long::from(identity::process_id()),
            libc::SYS_gettid => return c_long::from(identity::thread_id()),
            libc::SYS_sched_yield => {
                sleep::give_way(pc);
                return 0;
            }
            _ => mappings::before_raw_call(number, d as c_int),
        }
    }
    // SAFETY: the program promises the kernel that its arguments are valid; they are passed on as they are.
    result(unsafe { system::call(number, [a, b, c, d, e, f]) })
}

/// The kernel's answer as libc gives it.
pub fn result(answer: c_long) -> c_long {
    if (-4095..0).contains(&answer) { system::fail(-answer as c_int).into() } else { answer }
}
