//! The rest of ThreadSanitizer's interface: what a program may call to tell a race detector things.
//!
//! None of it changes what a schedule can do, so here it is accepted and has no effect.

use std::ffi::{c_char, c_int, c_long, c_void};

use crate::entry::intercept::export;

macro_rules! nothing {
    ($($name:ident($($ty:ty),*);)+) => { export! { $(
        extern "C" fn $name($(_: $ty),*) {}
    )+ } };
}

nothing! {
    __tsan_init();
    __tsan_acquire(*mut c_void);
    __tsan_release(*mut c_void);
    __tsan_ignore_thread_begin();
    __tsan_ignore_thread_end();
    __tsan_flush_memory();
    __tsan_mutex_create(*mut c_void, u32);
    __tsan_mutex_destroy(*mut c_void, u32);
    __tsan_mutex_pre_lock(*mut c_void, u32);
    __tsan_mutex_post_lock(*mut c_void, u32, c_int);
    __tsan_mutex_post_unlock(*mut c_void, u32);
    __tsan_mutex_pre_signal(*mut c_void, u32);
    __tsan_mutex_post_signal(*mut c_void, u32);
    __tsan_mutex_pre_divert(*mut c_void, u32);
    __tsan_mutex_post_divert(*mut c_void, u32);
    __tsan_external_register_header(*mut c_void, *const c_char);
    __tsan_external_assign_tag(*mut c_void, *mut c_void);
    __tsan_external_read(*mut c_void, *mut c_void, *mut c_void);
    __tsan_external_write(*mut c_void, *mut c_void, *mut c_void);
    __tsan_destroy_fiber(*mut c_void);
    __tsan_switch_to_fiber(*mut c_void, u32);
    __tsan_set_fiber_name(*mut c_void, *const c_char);
    AnnotateHappensBefore(*const c_char, c_int, usize);
    AnnotateHappensAfter(*const c_char, c_int, usize);
    AnnotateCondVarSignal(*const c_char, c_int, usize);
    AnnotateCondVarSignalAll(*const c_char, c_int, usize);
    AnnotateCondVarWait(*const c_char, c_int, usize, usize);
    AnnotateMutexIsNotPHB(*const c_char, c_int, usize);
    AnnotateMutexIsUsedAsCondVar(*const c_char, c_int, usize);
    AnnotateRWLockCreate(*const c_char, c_int, usize);
    AnnotateRWLockCreateStatic(*const c_char, c_int, usize);
    AnnotateRWLockDestroy(*const c_char, c_int, usize);
    AnnotateRWLockAcquired(*const c_char, c_int, usize, usize);
    AnnotateRWLockReleased(*const c_char, c_int, usize, usize);
    AnnotateTraceMemory(*const c_char, c_int, usize);
    AnnotateFlushState(*const c_char, c_int);
    AnnotateNewMemory(*const c_char, c_int, usize, usize);
    AnnotateNoOp(*const c_char, c_int, usize);
    AnnotateFlushExpectedRaces(*const c_char, c_int);
    AnnotateEnableRaceDetection(*const c_char, c_int, c_int);
    AnnotateExpectRace(*const c_char, c_int, usize, *const c_char);
    AnnotateBenignRace(*const c_char, c_int, usize, *const c_char);
    AnnotateBenignRaceSized(*const c_char, c_int, usize, usize, *const c_char);
    AnnotatePCQCreate(*const c_char, c_int, usize);
    AnnotatePCQDestroy(*const c_char, c_int, usize);
    AnnotatePCQPut(*const c_char, c_int, usize);
    AnnotatePCQGet(*const c_char, c_int, usize);
    AnnotatePublishMemoryRange(*const c_char, c_int, usize, usize);
    AnnotateUnpublishMemoryRange(*const c_char, c_int, usize, usize);
    AnnotateMemoryIsInitialized(*const c_char, c_int, usize, usize);
    AnnotateMemoryIsUninitialized(*const c_char, c_int, usize, usize);
    AnnotateIgnoreReadsBegin(*const c_char, c_int);
    AnnotateIgnoreReadsEnd(*const c_char, c_int);
    AnnotateIgnoreWritesBegin(*const c_char, c_int);
    AnnotateIgnoreWritesEnd(*const c_char, c_int);
    AnnotateIgnoreSyncBegin(*const c_char, c_int);
    AnnotateIgnoreSyncEnd(*const c_char, c_int);
    AnnotateThreadName(*const c_char, c_int, *const c_char);
}

export! {
    extern "C" fn __tsan_mutex_pre_unlock(_: *mut c_void, _: u32) -> c_int {
        0
    }

    extern "C" fn __tsan_external_register_tag(_: *const c_char) -> *mut c_void {
        std::ptr::null_mut()
    }

    extern "C" fn __tsan_create_fiber(_: u32) -> *mut c_void {
        std::ptr::null_mut()
    }

    extern "C" fn __tsan_get_current_fiber() -> *mut c_void {
        std::ptr::null_mut()
    }

    extern "C" fn RunningOnValgrind() -> c_int {
        0
    }

    extern "C" fn ValgrindSlowdown() -> f64 {
        1.0
    }

    /// A program may define these to be called by ThreadSanitizer; here they are only there to be referred to.
    extern "C" fn __tsan_get_alloc_stack(
        _: usize,
        _: *mut usize,
        _: usize,
        _: *mut c_int,
        _: *mut c_long,
    ) -> c_int {
        0
    }
}
