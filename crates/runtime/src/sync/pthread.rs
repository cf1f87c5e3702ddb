//! The functions of pthreads and semaphores that a program calls. What they do is in the models of this directory.

use std::ffi::{c_int, c_void};

use threadbare_trace::ThreadIndex;

use super::barrier::{self, Barrier};
use super::mutex::{self, Mutex};
use super::primitives::{Primitive, destroy};
use super::rwlock::{self, RwLock};
use super::semaphore::{self, Semaphore};
use super::spin_lock::{self, SpinLock};
use super::thread_end::{self, CleanupBuffer, Destructor};
use super::{Patience, cancellation, condition, threads};
use crate::entry::intercept::intercept;
use crate::entry::modules::is_left_alone;
use crate::schedule::thread::Routine;
use crate::schedule::{context, scheduler};
use crate::time::clock::{Clock, deadline, until};

type MutexPointer = *mut libc::pthread_mutex_t;
type RwLockPointer = *mut libc::pthread_rwlock_t;
type Spin = *mut c_int;
type Condition = *mut libc::pthread_cond_t;
type SemaphorePointer = *mut libc::sem_t;
type Time = *const libc::timespec;
type Handle = libc::pthread_t;
type Result = *mut *mut c_void;

/// `locks! { name(lock: model, arguments) => operation, patience; }`: entries for functions that take the object and
/// how long to wait for it. The patience is `Endless`, `None`, or `until` an absolute time.
macro_rules! locks {
    ($($name:ident($object:ident: $pointer:ty $(, $arg:ident: $ty:ty)*; $pc:ident) $(when ($($condition:tt)+))?
        => $operation:path, $model:ident, $patience:expr;)+) => {
        intercept! { $(
            fn $name($object: $pointer $(, $arg: $ty)*; $pc) -> c_int $(, when ($($condition)+))? {
                // SAFETY: the program promises libc an object of this kind, and a time where there is one.
                unsafe { $operation($model::at($object), $patience, $pc) }
            }
        )+ }
    };
}

locks! {
    pthread_mutex_lock(mutex: MutexPointer; pc) when (!is_left_alone(pc)) => mutex::lock, Mutex, Patience::Endless;
    pthread_mutex_trylock(mutex: MutexPointer; pc) when (!is_left_alone(pc)) => mutex::lock, Mutex, Patience::None;
    pthread_mutex_timedlock(mutex: MutexPointer, time: Time; pc) when (!is_left_alone(pc))
        => mutex::lock, Mutex, until(time);
    pthread_mutex_clocklock(mutex: MutexPointer, clock: Clock, time: Time; pc) when (!is_left_alone(pc))
        => mutex::lock, Mutex, until(time);
    pthread_spin_lock(lock: Spin; pc) => spin_lock::lock, SpinLock, Patience::Endless;
    pthread_spin_trylock(lock: Spin; pc) => spin_lock::lock, SpinLock, Patience::None;
    pthread_rwlock_rdlock(lock: RwLockPointer; pc) => rwlock::lock_shared, RwLock, Patience::Endless;
    pthread_rwlock_tryrdlock(lock: RwLockPointer; pc) => rwlock::lock_shared, RwLock, Patience::None;
    pthread_rwlock_timedrdlock(lock: RwLockPointer, time: Time; pc) => rwlock::lock_shared, RwLock, until(time);
    pthread_rwlock_clockrdlock(lock: RwLockPointer, clock: Clock, time: Time; pc)
        => rwlock::lock_shared, RwLock, until(time);
    pthread_rwlock_wrlock(lock: RwLockPointer; pc) => rwlock::lock_exclusive, RwLock, Patience::Endless;
    pthread_rwlock_trywrlock(lock: RwLockPointer; pc) => rwlock::lock_exclusive, RwLock, Patience::None;
    pthread_rwlock_timedwrlock(lock: RwLockPointer, time: Time; pc) => rwlock::lock_exclusive, RwLock, until(time);
    pthread_rwlock_clockwrlock(lock: RwLockPointer, clock: Clock, time: Time; pc)
        => rwlock::lock_exclusive, RwLock, until(time);
    sem_wait(semaphore: SemaphorePointer; pc) => semaphore::wait, Semaphore, Patience::Endless;
    sem_trywait(semaphore: SemaphorePointer; pc) => semaphore::wait, Semaphore, Patience::None;
    sem_timedwait(semaphore: SemaphorePointer, time: Time; pc) => semaphore::wait, Semaphore, until(time);
    sem_clockwait(semaphore: SemaphorePointer, clock: Clock, time: Time; pc)
        => semaphore::wait, Semaphore, until(time);
}

intercept! {
    fn pthread_mutex_unlock(mutex: MutexPointer; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        mutex::unlock(unsafe { Mutex::at(mutex) }, pc)
    }

    fn pthread_mutex_consistent(mutex: MutexPointer; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        mutex::make_consistent(unsafe { Mutex::at(mutex) })
    }

    fn pthread_spin_unlock(lock: Spin; pc) -> c_int {
        // SAFETY: the program promises libc a spin lock.
        spin_lock::unlock(unsafe { SpinLock::at(lock) }, pc)
    }

    fn pthread_rwlock_unlock(lock: RwLockPointer; pc) -> c_int {
        // SAFETY: the program promises libc a read-write lock.
        rwlock::unlock(unsafe { RwLock::at(lock) }, pc)
    }

    fn sem_post(semaphore: SemaphorePointer; pc) -> c_int {
        // SAFETY: the program promises libc a semaphore.
        semaphore::post(unsafe { Semaphore::at(semaphore) }, pc)
    }

    fn pthread_barrier_wait(barrier: *mut libc::pthread_barrier_t; pc) -> c_int {
        // SAFETY: the program promises libc a barrier.
        barrier::wait(unsafe { Barrier::at(barrier) }, pc)
    }
}

intercept! {
    fn pthread_cond_wait @ c"GLIBC_2.3.2" (condition: Condition, mutex: MutexPointer; pc) -> c_int {
        // SAFETY: the program promises libc a mutex.
        condition::wait(condition as u64, unsafe { Mutex::at(mutex) }, None, pc)
    }

    fn pthread_cond_timedwait @ c"GLIBC_2.3.2" (
        condition: Condition, mutex: MutexPointer, time: Time; pc
    ) -> c_int {
        // SAFETY: the program promises libc a mutex and a time.
        unsafe { condition::wait(condition as u64, Mutex::at(mutex), deadline(time), pc) }
    }

    fn pthread_cond_clockwait(condition: Condition, mutex: MutexPointer, clock: Clock, time: Time; pc) -> c_int {
        // SAFETY: the program promises libc a mutex and a time.
        unsafe { condition::wait(condition as u64, Mutex::at(mutex), deadline(time), pc) }
    }

    fn pthread_cond_signal @ c"GLIBC_2.3.2" (condition: Condition; pc) -> c_int {
        condition::signal(condition as u64, pc)
    }

    fn pthread_cond_broadcast @ c"GLIBC_2.3.2" (condition: Condition; pc) -> c_int {
        condition::broadcast(condition as u64, pc)
    }

    /// glibc's would wait for waiters it believes in.
    fn pthread_cond_destroy @ c"GLIBC_2.3.2" (condition: Condition; pc) -> c_int {
        // SAFETY: the program promises libc a condition variable.
        unsafe { destroy(Primitive::Condition, condition as u64, pc) }
    }

    fn pthread_mutex_destroy(mutex: MutexPointer; pc) -> c_int, when (!is_left_alone(pc)) {
        // SAFETY: the program promises libc a mutex.
        unsafe { destroy(Primitive::Mutex, mutex as u64, pc) }
    }

    fn pthread_rwlock_destroy(lock: RwLockPointer; pc) -> c_int {
        // SAFETY: the program promises libc a read-write lock.
        unsafe { destroy(Primitive::RwLock, lock as u64, pc) }
    }

    fn pthread_spin_destroy(lock: Spin; pc) -> c_int {
        // SAFETY: the program promises libc a spin lock.
        unsafe { destroy(Primitive::SpinLock, lock as u64, pc) }
    }

    fn pthread_barrier_destroy(barrier: *mut libc::pthread_barrier_t; pc) -> c_int {
        // SAFETY: the program promises libc a barrier.
        unsafe { destroy(Primitive::Barrier, barrier as u64, pc) }
    }

    fn sem_destroy(semaphore: SemaphorePointer; pc) -> c_int {
        // SAFETY: the program promises libc a semaphore.
        unsafe { destroy(Primitive::Semaphore, semaphore as u64, pc) }
    }
}

intercept! {
    fn pthread_create(
        handle: *mut Handle, attributes: *const libc::pthread_attr_t, routine: Routine, argument: *mut c_void; pc
    ) -> c_int {
        // SAFETY: the program promises libc a place for the handle, and its attributes.
        unsafe { threads::create(handle, attributes, routine, argument, pc) }
    }

    fn pthread_join(handle: Handle, result: Result; pc) -> c_int {
        // SAFETY: the program promises libc a place for the result.
        unsafe { threads::join(handle, result, Patience::Endless, pc) }
    }

    fn pthread_tryjoin_np(handle: Handle, result: Result; pc) -> c_int {
        // SAFETY: the program promises libc a place for the result.
        unsafe { threads::join(handle, result, Patience::None, pc) }
    }

    fn pthread_timedjoin_np(handle: Handle, result: Result, time: Time; pc) -> c_int {
        // SAFETY: the program promises libc a place for the result, and a time or null.
        unsafe { threads::join(handle, result, until(time), pc) }
    }

    fn pthread_clockjoin_np(handle: Handle, result: Result, clock: Clock, time: Time; pc) -> c_int {
        // SAFETY: the program promises libc a place for the result, and a time or null.
        unsafe { threads::join(handle, result, until(time), pc) }
    }

    fn pthread_detach(handle: Handle; pc) -> c_int {
        threads::detach(handle, pc)
    }

    /// The attributes of a thread. glibc was given the stack and does not know of the guard below it. Rust's standard
    /// library needs one.
    fn pthread_getattr_np(handle: Handle, attributes: *mut libc::pthread_attr_t) -> c_int, calling ask {
        let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the program promises libc a thread, and a place for the attributes. libc has initialised them there
        // if there was no error.
        unsafe {
            let error = ask(handle, attributes);
            let is_told = error == 0 && libc::pthread_attr_getstack(attributes, &mut start, &mut bytes) == 0;
            if is_told && context::is_in_slot(start as u64) {
                libc::pthread_attr_setguardsize(attributes, 4096);
            }
            error
        }
    }

    fn pthread_exit(result: *mut c_void) -> ! {
        thread_end::exit(result)
    }

    fn __pthread_register_cancel(buffer: *mut CleanupBuffer) {
        // SAFETY: what the compiler makes of `pthread_cleanup_push` fills the buffer and unregisters it before it
        // returns.
        scheduler::with_me(|me| unsafe { me.duties.add_cleanup(buffer) });
    }

    fn __pthread_unregister_cancel(buffer: *mut CleanupBuffer) {
        scheduler::with_me(|me| me.duties.remove_cleanup(buffer));
    }

    /// A clean-up handler has run: on with the unwinding.
    fn __pthread_unwind_next(buffer: *mut CleanupBuffer) -> ! {
        thread_end::exit(scheduler::with_me(|me| me.result))
    }

    /// C++ and Rust register destructors of thread-local variables here. The main thread's are left to libc.
    fn __cxa_thread_atexit_impl(
        destructor: Destructor, object: *mut c_void, library: *mut c_void
    ) -> c_int, when (crate::active() && scheduler::current() != ThreadIndex::MAIN) {
        // SAFETY: the compiler registers both for the end of the thread.
        scheduler::with_me(|me| unsafe { me.duties.add_destructor(destructor, object) });
        0
    }

    fn pthread_key_create(key: *mut libc::pthread_key_t, destructor: Option<Destructor>) -> c_int, calling create {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let error = unsafe { create(key, destructor) };
        if let (0, Some(destructor)) = (error, destructor) {
            // SAFETY: libc has just made the key. The program promises libc that the destructor takes its values.
            unsafe { thread_end::add_key(*key, destructor) };
        }
        error
    }

    fn pthread_key_delete(key: libc::pthread_key_t) -> c_int, calling delete {
        thread_end::remove_key(key);
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { delete(key) }
    }
}

intercept! {
    fn pthread_cancel(handle: Handle; pc) -> c_int {
        cancellation::request(handle, pc)
    }

    fn pthread_testcancel() {
        cancellation::act();
    }

    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int {
        const DISABLE: c_int = 1;
        let new = state == DISABLE;
        let before = scheduler::with_me(|me| std::mem::replace(&mut me.cancellation.disabled, new));
        // SAFETY: the program promises libc a place for the old setting, or null.
        unsafe { store(before, old) }
    }

    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
        const ASYNCHRONOUS: c_int = 1;
        let new = kind == ASYNCHRONOUS;
        let before = scheduler::with_me(|me| std::mem::replace(&mut me.cancellation.asynchronous, new));
        // SAFETY: the program promises libc a place for the old setting, or null.
        unsafe { store(before, old) }
    }
}

/// Tells the program how a setting was.
///
/// # Safety
/// `old` is null or can be written to.
unsafe fn store(before: bool, old: *mut c_int) -> c_int {
    if !old.is_null() {
        // SAFETY: the caller's promise.
        unsafe { old.write(c_int::from(before)) };
    }
    0
}
