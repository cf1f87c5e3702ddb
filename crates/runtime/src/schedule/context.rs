//! Borrowed contexts: logical threads on one OS thread.
//!
//! A real pthread is created, so that glibc lays out its stack and its thread-local storage, and parks itself
//! in the kernel for ever. The carrier then runs on its stack with its FS base, which on x86-64 is all that
//! tells glibc which thread it is on: `errno`, `__thread`, `pthread_self` and C++ thread-locals are right.
//! After a fork the parked threads are gone, but their memory is not, and memory is all that was borrowed.
//! That is why contexts can be made once, before the fork server forks, and why a fork in the middle of a run
//! is a snapshot of all its threads.
//!
//! Stacks lie in slots of their own (see `layout`), so that a thread's addresses depend on its number and not
//! on when its context was made.

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use threadbare_trace::ThreadIndex;

use crate::entry::real::real;
use crate::memory::layout::{self, STACK_SLOT, STACKS};
use crate::os::system;
use crate::signals::masks;

/// A suspended thread of execution.
#[repr(C)]
pub struct Context {
    stack_pointer: Cell<u64>,
    fs_base: Cell<u64>,
    parked: AtomicU32,
    handle: Cell<libc::pthread_t>,
}

impl Context {
    fn new(fs_base: u64, handle: libc::pthread_t) -> Context {
        let [stack_pointer, fs_base, handle] = [0, fs_base, handle].map(Cell::new);
        Context { stack_pointer, fs_base, parked: AtomicU32::new(0), handle }
    }

    /// Where its stack was when it was suspended last.
    pub fn stack_pointer(&self) -> u64 {
        self.stack_pointer.get()
    }

    /// What the program knows the thread by.
    pub fn handle(&self) -> libc::pthread_t {
        self.handle.get()
    }
}

/// Whether user code may write the FS base itself; if not, a system call does it.
static FSGSBASE: AtomicBool = AtomicBool::new(false);

/// The stack of a pooled context; what glibc gives by default.
pub const POOL_STACK: u64 = 8 << 20;
/// Left unmapped below each stack.
const GUARD: u64 = 64 << 10;

/// The context of the thread that calls it: the carrier, on the main thread's stack.
pub fn of_main() -> Context {
    const AT_HWCAP2: libc::c_ulong = 26;
    const HWCAP2_FSGSBASE: libc::c_ulong = 2;
    // SAFETY: both only read what libc and the kernel say of this process.
    unsafe {
        FSGSBASE.store(libc::getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE != 0, Ordering::Relaxed);
        let handle = libc::pthread_self();
        Context::new(handle, handle)
    }
}

/// Where a new thread's stack is to come from.
#[derive(Clone, Copy)]
pub enum Stack {
    /// The slot of thread `index`, for a stack of at most this many bytes.
    Slot { index: ThreadIndex, bytes: u64 },
    /// The program brought its own.
    Given { start: u64, bytes: u64 },
}

/// The first address after the slot of thread `index`.
fn slot_end(index: ThreadIndex) -> u64 {
    STACKS + (u64::from(index.number()) + 1) * STACK_SLOT
}

/// The address lies in a slot.
pub fn is_in_slot(address: u64) -> bool {
    (STACKS..layout::CALLS).contains(&address)
}

/// The thread in whose slot the address lies.
pub fn slot_of(address: u64) -> Option<ThreadIndex> {
    is_in_slot(address).then(|| ThreadIndex::at(((address - STACKS) / STACK_SLOT) as usize))
}

impl Stack {
    /// The largest stack a slot can hold.
    pub const SLOT_MAX: u64 = STACK_SLOT - GUARD;

    /// Its lowest address, and the first after it.
    pub fn range(self) -> (u64, u64) {
        match self {
            Stack::Slot { index, bytes } => {
                let end = slot_end(index);
                (end - bytes.min(Stack::SLOT_MAX), end)
            }
            Stack::Given { start, bytes } => (start, start + bytes),
        }
    }
}

/// Creates a pthread and parks it. Fails with an error number, as `pthread_create` does.
///
/// # Safety
/// Nobody else uses the memory of a stack that is given.
pub unsafe fn create(stack: Stack) -> Result<&'static Context, c_int> {
    let (start, bytes) = match stack {
        Stack::Slot { index, bytes } => {
            let bytes = bytes.next_multiple_of(4096).min(Stack::SLOT_MAX);
            let start = slot_end(index) - bytes;
            if !layout::reserve(start, bytes) {
                return Err(libc::EAGAIN);
            }
            (start, bytes)
        }
        Stack::Given { start, bytes } => (start, bytes),
    };
    let context: &'static Context = Box::leak(Box::new(Context::new(0, 0)));
    // SAFETY: the attributes are initialised before use; the new thread only ever parks on `context`, which is
    // never freed; all signals are blocked around creation, so that none is delivered to a parked thread.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstack(&mut attributes, start as *mut c_void, bytes as usize);
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        masks::real_mask(libc::SIG_SETMASK, Some(&all), Some(&mut old));
        let error = real!(pthread_create(
            context.handle.as_ptr() => *mut libc::pthread_t,
            &raw const attributes => *const libc::pthread_attr_t,
            first_frame => extern "C" fn(*mut c_void) -> *mut c_void,
            std::ptr::from_ref(context).cast_mut().cast() => *mut c_void,
        ) -> c_int);
        masks::real_mask(libc::SIG_SETMASK, Some(&old), None);
        libc::pthread_attr_destroy(&mut attributes);
        if error != 0 {
            return Err(error);
        }
        while context.parked.load(Ordering::Acquire) == 0 {
            system::futex_wait(&context.parked, 0, None);
        }
    }
    Ok(context)
}

/// What glibc starts in the new pthread. It goes no further than `park`; the carrier returns from there.
extern "C" fn first_frame(context: *mut c_void) -> *mut c_void {
    // SAFETY: `create` passes a context.
    unsafe { park(context.cast::<Context>()) };
    crate::sync::threads::run_borrowed()
}

/// Saves the running thread in the context that `rdi` points to: what functions keep across calls, on its stack,
/// and its stack pointer in the context.
macro_rules! suspend {
    () => {
        "push rbp
         push rbx
         push r12
         push r13
         push r14
         push r15
         sub rsp, 8
         stmxcsr [rsp]
         fnstcw [rsp + 4]
         mov [rdi], rsp"
    };
}

/// Saves the calling pthread in `context` as [`switch`] would, says so, and sleeps for ever. After the store
/// to `parked` its stack is not touched again, because the carrier may be on it.
#[unsafe(naked)]
unsafe extern "C" fn park(context: *const Context) {
    naked_asm!(
        suspend!(),
        "mov rax, fs:[0x10]",
        "mov [rdi + 8], rax",
        "lea rdi, [rdi + 16]",
        "mov dword ptr [rdi], 1",
        "mov esi, 1", // FUTEX_WAKE
        "mov edx, 1",
        "mov eax, 202", // SYS_futex
        "syscall",
        "2:",
        "xor esi, esi", // FUTEX_WAIT
        "mov edx, 1",
        "xor r10d, r10d",
        "mov eax, 202",
        "syscall",
        "jmp 2b",
    )
}

/// Suspends the running thread in `save` and goes on with `load`.
///
/// # Safety
/// `load` was suspended by `switch` or parked by [`create`], and is not the running thread.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: &Context, load: &Context) {
    naked_asm!(
        suspend!(),
        "mov rsp, [rsi]",
        "cmp byte ptr [rip + {fsgsbase}], 0",
        "mov rsi, [rsi + 8]",
        "je 3f",
        ".byte 0xf3, 0x48, 0x0f, 0xae, 0xd6", // wrfsbase rsi
        "2:",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        "3:",
        "mov edi, 0x1002", // ARCH_SET_FS
        "mov eax, 158",    // SYS_arch_prctl
        "syscall",
        "jmp 2b",
        fsgsbase = sym FSGSBASE,
    )
}
