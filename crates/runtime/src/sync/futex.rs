//! System calls made by hand: futexes, on which Rust, libstdc++ and many libraries build their own locks.

use std::arch::naked_asm;
use std::ffi::{c_int, c_long};

use threadbare_trace::{EventKind, Outcome};

use crate::active;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::os::{identity, randomness, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;
use crate::schedule::scheduler::{Operation, point};
use crate::schedule::wait::{Wait, resume_kind};
use crate::sync::threads;
use crate::time::clock;

/// Seven arguments leave no register for the return address; only the carrier needs it.
static RETURN_ADDRESS: Carrier<u64> = Carrier::new(0);

#[unsafe(no_mangle)]
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

extern "C" fn call(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long {
    let pc = *RETURN_ADDRESS.get();
    if active() {
        match number {
            libc::SYS_futex => return futex(a, b as c_int, c as u32, d, e, f as u32, pc),
            libc::SYS_getrandom => return randomness::system_call(a, b),
            libc::SYS_getpid => return c_long::from(identity::process_id()),
            libc::SYS_gettid => return c_long::from(identity::thread_id()),
            libc::SYS_sched_yield => {
                clock::give_way(pc);
                return 0;
            }
            _ => {}
        }
    }
    result(system::call(number, [a, b, c, d, e, f]))
}

/// The kernel's answer as libc gives it.
fn result(answer: c_long) -> c_long {
    if (-4095..0).contains(&answer) { fail(-answer as c_int) } else { answer }
}

fn fail(error: c_int) -> c_long {
    system::fail(error).into()
}

fn futex(address: u64, operation: c_int, value: u32, timeout: u64, _: u64, mask: u32, pc: u64) -> c_long {
    const ALL: u32 = libc::FUTEX_BITSET_MATCH_ANY as u32;
    let pc = users_call(pc);
    match operation & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT => wait(address, value, clock::after(timeout as *const _), ALL, pc),
        libc::FUTEX_WAIT_BITSET => wait(address, value, clock::deadline(timeout as *const _), mask, pc),
        libc::FUTEX_WAKE => wake(address, value, ALL, pc),
        libc::FUTEX_WAKE_BITSET => wake(address, value, mask, pc),
        other => threads::unsupported(&format!("futex operation {other} is not modelled"), pc),
    }
}

fn wait(address: u64, expected: u32, deadline: Option<u64>, mask: u32, pc: u64) -> c_long {
    point(Operation::new(EventKind::FutexWait, pc, address));
    // SAFETY: the program's futex.
    let found = unsafe { (address as *const u32).read_volatile() };
    let entry = Entry::new(EventKind::FutexWait, pc, address).value(u64::from(found)).size(4);
    if found != expected {
        entry.outcome(Outcome::Failed).write();
        return fail(libc::EAGAIN);
    }
    entry.write();
    let ticket = scheduler::get().wakeups.ticket();
    let waiting = Wait::Wakeup { address, ticket, mask, mutex: None };
    let kind = resume_kind(None);
    let timed_out = point(Operation::new(kind, pc, address).waiting(waiting).until(deadline));
    if timed_out {
        Entry::new(kind, pc, address).outcome(Outcome::TimedOut).write();
        return fail(libc::ETIMEDOUT);
    }
    scheduler::get().wakeups.take(address, ticket, mask);
    Entry::new(kind, pc, address).write();
    0
}

fn wake(address: u64, most: u32, mask: u32, pc: u64) -> c_long {
    point(Operation::new(EventKind::FutexWake, pc, address));
    let woken = scheduler::get().notify(address, u64::from(most), mask);
    Entry::new(EventKind::FutexWake, pc, address).value(woken).write();
    woken as c_long
}
