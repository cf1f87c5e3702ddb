//! C11 threads: glibc's are the pthread functions under other names and other result codes, but they call each
//! other inside libc, where nothing can stand in front of them.

use std::ffi::{c_int, c_void};

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::modules::is_left_alone;
use crate::entry::real::real;
use crate::sync::{conditions, locks, threads};
use crate::time::clock;

type Mutex = *mut libc::pthread_mutex_t;
type Condition = *mut libc::pthread_cond_t;
type Time = *const libc::timespec;
type Routine = extern "C" fn(*mut c_void) -> *mut c_void;
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

intercept! {
    thrd_create/3 => create;
    thrd_join/2 => join;
    thrd_detach/1 => detach;
    thrd_exit/1 => exit;
    thrd_yield/0 => yield_;
    thrd_sleep/2 => sleep;
    mtx_lock/1 => lock;
    mtx_trylock/1 => try_lock;
    mtx_timedlock/2 => timed_lock;
    mtx_unlock/1 => unlock;
    cnd_wait/2 => wait;
    cnd_timedwait/3 => timed_wait;
    cnd_signal/1 => signal;
    cnd_broadcast/1 => broadcast;
    cnd_destroy/1 => destroy;
}

/// The C11 result for an error number.
fn result(error: c_int) -> c_int {
    const SUCCESS: c_int = 0;
    const BUSY: c_int = 1;
    const ERROR: c_int = 2;
    const NO_MEMORY: c_int = 3;
    const TIMED_OUT: c_int = 4;
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// The routine returns an `int`, which is a pointer whose upper half means nothing.
extern "C" fn create(
    handle: *mut libc::pthread_t,
    routine: Routine,
    argument: *mut c_void,
    pc: u64,
) -> c_int {
    if !active() {
        return real!(thrd_create(
            handle => *mut libc::pthread_t, routine => Routine, argument => *mut c_void
        ) -> c_int);
    }
    result(threads::create(handle, std::ptr::null(), routine, argument, pc))
}

extern "C" fn join(handle: libc::pthread_t, value: *mut c_int, pc: u64) -> c_int {
    if !active() {
        return real!(thrd_join(handle => libc::pthread_t, value => *mut c_int) -> c_int);
    }
    let mut pointer = std::ptr::null_mut();
    let error = threads::join(handle, &mut pointer, pc);
    if error == 0 && !value.is_null() {
        // SAFETY: the program's place for the result.
        unsafe { value.write(pointer as usize as c_int) };
    }
    result(error)
}

extern "C" fn detach(handle: libc::pthread_t, pc: u64) -> c_int {
    if !active() {
        return real!(thrd_detach(handle => libc::pthread_t) -> c_int);
    }
    result(threads::detach(handle, pc))
}

extern "C" fn exit(value: c_int, pc: u64) -> ! {
    if !active() {
        real!(thrd_exit(value => c_int));
        unreachable!("thrd_exit returned")
    }
    threads::exit_thread(value as usize as *mut c_void, pc)
}

extern "C" fn yield_(pc: u64) {
    if !active() {
        return real!(thrd_yield());
    }
    clock::give_way(pc);
}

extern "C" fn sleep(duration: Time, rest: *mut libc::timespec, pc: u64) -> c_int {
    if !active() {
        return real!(thrd_sleep(duration => Time, rest => *mut libc::timespec) -> c_int);
    }
    clock::nanosleep_(duration, rest, pc)
}

extern "C" fn lock(mutex: Mutex, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(mtx_lock(mutex => Mutex) -> c_int);
    }
    result(locks::mutex_lock(mutex, pc))
}

extern "C" fn try_lock(mutex: Mutex, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(mtx_trylock(mutex => Mutex) -> c_int);
    }
    result(locks::mutex_try_lock(mutex, pc))
}

extern "C" fn timed_lock(mutex: Mutex, until: Time, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(mtx_timedlock(mutex => Mutex, until => Time) -> c_int);
    }
    result(locks::mutex_timed_lock(mutex, until, pc))
}

extern "C" fn unlock(mutex: Mutex, pc: u64) -> c_int {
    if is_left_alone(pc) {
        return real!(mtx_unlock(mutex => Mutex) -> c_int);
    }
    result(locks::mutex_unlock(mutex, pc))
}

extern "C" fn wait(condition: Condition, mutex: Mutex, pc: u64) -> c_int {
    if !active() {
        return real!(cnd_wait(condition => Condition, mutex => Mutex) -> c_int);
    }
    result(conditions::wait(condition, mutex, pc))
}

extern "C" fn timed_wait(condition: Condition, mutex: Mutex, until: Time, pc: u64) -> c_int {
    if !active() {
        return real!(cnd_timedwait(condition => Condition, mutex => Mutex, until => Time) -> c_int);
    }
    result(conditions::timed_wait(condition, mutex, until, pc))
}

extern "C" fn signal(condition: Condition, pc: u64) -> c_int {
    if !active() {
        return real!(cnd_signal(condition => Condition) -> c_int);
    }
    result(conditions::signal(condition, pc))
}

extern "C" fn broadcast(condition: Condition, pc: u64) -> c_int {
    if !active() {
        return real!(cnd_broadcast(condition => Condition) -> c_int);
    }
    result(conditions::broadcast(condition, pc))
}

extern "C" fn destroy(condition: Condition, _: u64) {
    if !active() {
        real!(cnd_destroy(condition => Condition));
    }
}

/// `call_once` is `pthread_once` to the bit.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn call_once(control: *mut c_int, routine: extern "C" fn()) {
    std::arch::naked_asm!("jmp {}", sym crate::sync::semaphores::pthread_once)
}

#[unsafe(no_mangle)]
extern "C" fn tss_create(key: *mut libc::pthread_key_t, destructor: Destructor) -> c_int {
    result(threads::pthread_key_create(key, destructor))
}

#[unsafe(no_mangle)]
extern "C" fn tss_delete(key: libc::pthread_key_t) {
    threads::pthread_key_delete(key);
}
