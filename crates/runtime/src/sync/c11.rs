//! The functions of C11 threads that a program calls.
//!
//! glibc's are the pthread functions under other names and with other result codes. They call each other inside libc,
//! where nothing can stand in front of them.

use std::ffi::{c_int, c_void};

use super::mutex::{self, Mutex};
use super::primitives::{Primitive, destroy};
use super::thread_end::{self, Destructor};
use super::{Patience, condition, once, threads};
use crate::entry::intercept::{export, intercept};
use crate::entry::modules::is_left_alone;
use crate::schedule::thread::Routine;
use crate::time::clock::{deadline, until};
use crate::time::sleep;

type MutexPointer = *mut libc::pthread_mutex_t;
type Condition = *mut libc::pthread_cond_t;
type Time = *const libc::timespec;
type Handle = libc::pthread_t;

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

intercept! {
    /// The routine returns an `int`, which is a pointer whose upper half means nothing.
    fn thrd_create(handle: *mut Handle, routine: Routine, argument: *mut c_void; pc) -> c_int {
        // SAFETY: the program promises libc a place for the handle.
        result(unsafe { threads::create(handle, std::ptr::null(), routine, argument, pc) })
    }

    fn thrd_join(handle: Handle, value: *mut c_int; pc) -> c_int {
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the result is a variable of this function's.
        let error = unsafe { threads::join(handle, &mut pointer, Patience::Endless, pc) };
        if error == 0 && !value.is_null() {
            // SAFETY: the program promises libc a place for the result.
            unsafe { value.write(pointer as usize as c_int) };
        }
        result(error)
    }

    fn thrd_detach(handle: Handle; pc) -> c_int {
        result(threads::detach(handle, pc))
    }

    fn thrd_exit(value: c_int) -> ! {
        thread_end::exit(value as usize as *mut c_void)
    }

    fn thrd_yield(; pc) {
        sleep::give_way(pc);
    }

    fn thrd_sleep(duration: Time, rest: *mut libc::timespec; pc) -> c_int {
        // SAFETY: the program promises libc a time, or null.
        unsafe { sleep::for_duration(duration, pc) };
        0
    }

    fn mtx_lock(mutex: MutexPointer; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        result(mutex::lock(unsafe { Mutex::at(mutex) }, Patience::Endless, pc))
    }

    fn mtx_trylock(mutex: MutexPointer; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        result(mutex::lock(unsafe { Mutex::at(mutex) }, Patience::None, pc))
    }

    fn mtx_timedlock(mutex: MutexPointer, time: Time; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex and a time.
        result(unsafe { mutex::lock(Mutex::at(mutex), until(time), pc) })
    }

    fn mtx_unlock(mutex: MutexPointer; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        result(mutex::unlock(unsafe { Mutex::at(mutex) }, pc))
    }

    fn cnd_wait(condition: Condition, mutex: MutexPointer; pc) -> c_int {
        // SAFETY: the program promises libc a mutex.
        result(condition::wait(condition as u64, unsafe { Mutex::at(mutex) }, None, pc))
    }

    fn cnd_timedwait(condition: Condition, mutex: MutexPointer, time: Time; pc) -> c_int {
        // SAFETY: the program promises libc a mutex and a time.
        result(unsafe { condition::wait(condition as u64, Mutex::at(mutex), deadline(time), pc) })
    }

    fn cnd_signal(condition: Condition; pc) -> c_int {
        result(condition::signal(condition as u64, pc))
    }

    fn cnd_broadcast(condition: Condition; pc) -> c_int {
        result(condition::broadcast(condition as u64, pc))
    }

    fn mtx_destroy(mutex: MutexPointer; pc), when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        unsafe { destroy(Primitive::Mutex, mutex as u64, pc) };
    }

    /// glibc's would wait for waiters it believes in.
    fn cnd_destroy(condition: Condition; pc) {
        // SAFETY: the program promises libc a condition variable.
        unsafe { destroy(Primitive::Condition, condition as u64, pc) };
    }

    fn tss_create(key: *mut libc::pthread_key_t, destructor: Option<Destructor>) -> c_int, calling create {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let error = unsafe { create(key, destructor) };
        if let (0, Some(destructor)) = (error, destructor) {
            // SAFETY: libc has just made the key. The program promises libc that the destructor takes its values.
            unsafe { thread_end::add_key(*key, destructor) };
        }
        error
    }

    fn tss_delete(key: libc::pthread_key_t), calling delete {
        thread_end::remove_key(key);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { delete(key) };
    }
}

export! {
    /// `call_once` is `pthread_once` to the bit.
    #[unsafe(naked)]
    unsafe extern "C" fn call_once(control: *mut c_int, routine: extern "C" fn()) {
        std::arch::naked_asm!("jmp {}", sym once::pthread_once)
    }
}
