//! How a thread ends: unwinding, clean-up handlers, destructors of thread-local variables and of keys.

use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;

use crate::entry::log::{self, Entry};
use crate::entry::modules::{_Unwind_GetCFA, UnwindContext};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{self, Operation, point};

pub type Destructor = unsafe extern "C" fn(*mut c_void);

/// Destructors of thread-specific keys, by key.
static KEYS: Carrier<Vec<(libc::pthread_key_t, Destructor)>> = Carrier::new(Vec::new());

/// What a thread has to do when it ends.
#[derive(Default)]
pub struct Duties {
    /// Destructors of thread-local variables, with the variables.
    destructors: Vec<(Destructor, *mut c_void)>,
    /// Clean-up handlers of C code, innermost last.
    cleanups: Vec<*mut CleanupBuffer>,
}

impl Duties {
    /// The thread destroys a variable when it ends.
    ///
    /// # Safety
    /// The destructor may be called with the object then.
    pub unsafe fn add_destructor(&mut self, destructor: Destructor, object: *mut c_void) {
        self.destructors.push((destructor, object));
    }

    /// The thread jumps to `buffer` when it is unwound that far.
    ///
    /// # Safety
    /// `setjmp` has filled the buffer in a function of this thread that calls
    /// [`remove_cleanup`](Duties::remove_cleanup) before it returns.
    pub unsafe fn add_cleanup(&mut self, buffer: *mut CleanupBuffer) {
        self.cleanups.push(buffer);
    }

    pub fn remove_cleanup(&mut self, buffer: *mut CleanupBuffer) {
        self.cleanups.retain(|&other| other != buffer);
    }
}

/// The program has made a key.
///
/// # Safety
/// The key exists until [`remove_key`], and the destructor may be called with any value that a thread has for it.
pub unsafe fn add_key(key: libc::pthread_key_t, destructor: Destructor) {
    KEYS.with(|keys| keys.push((key, destructor)));
}

/// The program deletes a key.
pub fn remove_key(key: libc::pthread_key_t) {
    KEYS.with(|keys| keys.retain(|&(other, _)| other != key));
}

/// Ends the running thread.
pub fn end(result: *mut c_void) -> ! {
    run_thread_locals();
    run_keys();
    scheduler::with_me(|me| me.result = result);
    point(Operation::new(EventKind::End, 0, 0));
    Entry::new(EventKind::End, 0, 0).write();
    scheduler::end_thread()
}

#[repr(C)]
struct Exception {
    class: u64,
    cleanup: *mut c_void,
    private: [u64; 4],
}

type Stop = extern "C" fn(c_int, c_int, u64, *mut Exception, *mut UnwindContext, *mut c_void) -> c_int;

unsafe extern "C" {
    fn _Unwind_ForcedUnwind(exception: *mut Exception, stop: Stop, argument: *mut c_void) -> c_int;
    fn siglongjmp(buffer: *mut CleanupBuffer, value: c_int) -> !;
}

/// Unwinds the running thread and ends it: destructors and clean-up handlers run on the way.
pub fn exit(result: *mut c_void) -> ! {
    extern "C" fn stop(
        _: c_int,
        actions: c_int,
        _: u64,
        _: *mut Exception,
        context: *mut UnwindContext,
        result: *mut c_void,
    ) -> c_int {
        const END_OF_STACK: c_int = 16;
        const NO_REASON: c_int = 0;
        let base = log::stack_span(scheduler::current()).base;
        // SAFETY: the unwinder calls this with a context that is valid during the call.
        let stack_pointer = unsafe { _Unwind_GetCFA(context) } as u64;
        if let Some(buffer) = scheduler::with_me(|me| me.duties.cleanups.last().copied()) {
            // SAFETY: whoever called `add_cleanup` promised that its function has not returned.
            if actions & END_OF_STACK != 0 || unsafe { (*buffer).stack_pointer() } <= stack_pointer {
                scheduler::with_me(|me| {
                    me.duties.cleanups.pop();
                    me.result = result;
                });
                // SAFETY: whoever called `add_cleanup` promised that `setjmp` has filled it. The code there calls the
                // handler and then `__pthread_unwind_next`.
                unsafe { siglongjmp(buffer, 1) };
            }
        }
        // The frames of the runtime and of libc outside the thread's routine hold nothing to clean up.
        if actions & END_OF_STACK != 0 || stack_pointer >= base {
            end(result);
        }
        NO_REASON
    }
    let exception =
        Box::leak(Box::new(Exception { class: 0, cleanup: std::ptr::null_mut(), private: [0; 4] }));
    // SAFETY: the exception is never freed, and `stop` has the signature that the unwinder calls.
    unsafe { _Unwind_ForcedUnwind(exception, stop, result) };
    end(result)
}

/// What `pthread_cleanup_push` in C (without `-fexceptions`) leaves on the stack: glibc's
/// `__pthread_unwind_buf_t`, which begins like a `sigjmp_buf`.
#[repr(C)]
pub struct CleanupBuffer {
    registers: [u64; 8],
    mask_was_saved: c_int,
    private: [*mut c_void; 4],
}

impl CleanupBuffer {
    /// A jump there restores the signal mask too.
    pub fn restores_mask(&self) -> bool {
        self.mask_was_saved != 0
    }

    /// The stack pointer to go back to. glibc hides it with a secret of the process.
    pub fn stack_pointer(&self) -> u64 {
        const RSP: usize = 6;
        let guard: u64;
        // SAFETY: glibc keeps the pointer guard there in every thread.
        unsafe { std::arch::asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, readonly, pure)) };
        self.registers[RSP].rotate_right(17) ^ guard
    }
}

/// Destroys the running thread's C++ and Rust thread-locals, as the end of a thread does and `exit` too. (The
/// main thread's are libc's.)
pub fn run_thread_locals() {
    while let Some((destructor, object)) = scheduler::with_me(|me| me.duties.destructors.pop()) {
        // SAFETY: whoever called `add_destructor` promised that it may be called with this object.
        unsafe { destructor(object) };
    }
}

/// Runs the destructors of thread-specific keys, as the end of a thread does and `exit` does not.
fn run_keys() {
    const ROUNDS: usize = 4;
    for _ in 0..ROUNDS {
        let mut ran = false;
        // A destructor may make and delete keys.
        for i in 0.. {
            let Some((key, destructor)) = KEYS.with(|keys| keys.get(i).copied()) else { break };
            // SAFETY: whoever called `add_key` promised that the key exists and that its destructor takes its values.
            unsafe {
                let value = libc::pthread_getspecific(key);
                if !value.is_null() {
                    libc::pthread_setspecific(key, std::ptr::null());
                    destructor(value);
                    ran = true;
                }
            }
        }
        if !ran {
            break;
        }
    }
}
