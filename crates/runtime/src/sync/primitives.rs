//! Primitives that must not be used: those that were freed, and those that were destroyed.
//!
//! Every event of a primitive is [checked](check) when it is recorded, and before that when its thread
//! [arrives](arrive) at the operation, for which it may have to wait.
//!
//! A destroyed primitive has a mark in itself. glibc gives a mutex a kind that none has; the others get a value that
//! none can have. So an object that is initialised again, by a function or by an initialiser, is as good as new, and so
//! is memory that is used for another object. A table says who destroyed it.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt;

use threadbare_trace::{End, EventKind, Failure, FailureKind, Related, Role, ThreadIndex};
use threadbare_wire::CodePlace;

use super::mutex::Mutex;
use super::rwlock::RwLock;
use crate::entry::log;
use crate::entry::modules::users_call;
use crate::hash::Hasher;
use crate::memory::gone;
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::{finish, here};
use crate::schedule::scheduler::{self, Scheduler};
use crate::schedule::wait::Wait;

/// What can be destroyed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Primitive {
    Mutex,
    RwLock,
    SpinLock,
    Condition,
    Semaphore,
    Barrier,
}

/// By address: what was destroyed there last, and where.
type Destroyed = HashMap<u64, (Primitive, CodePlace), Hasher>;
static DESTROYED: Carrier<Option<Destroyed>> = Carrier::new(None);

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Primitive::Mutex => "mutex",
            Primitive::RwLock => "read-write lock",
            Primitive::SpinLock => "spin lock",
            Primitive::Condition => "condition variable",
            Primitive::Semaphore => "semaphore",
            Primitive::Barrier => "barrier",
        })
    }
}

impl Primitive {
    /// The word in which a destroyed one at `address` is marked, and its mark.
    ///
    /// A mutex: its kind, as glibc does it. The others: their first word, where a semaphore has its value, which is
    /// never that large, a read-write lock its readers, and a spin lock 1 or less.
    fn mark(self, address: u64) -> (*mut u32, u32) {
        const KIND_OF_MUTEX: u64 = 16;
        match self {
            Primitive::Mutex => ((address + KIND_OF_MUTEX) as *mut u32, u32::MAX),
            Primitive::RwLock
            | Primitive::SpinLock
            | Primitive::Condition
            | Primitive::Semaphore
            | Primitive::Barrier => (address as *mut u32, 0x8bad_f00d),
        }
    }

    /// A thread that uses the one at `address`, other than the running one, and what it does with it.
    ///
    /// # Safety
    /// There is a primitive of this kind.
    unsafe fn user(self, sched: &Scheduler, address: u64) -> Option<(ThreadIndex, &'static str)> {
        let holds = |holder: ThreadIndex| {
            (holder != scheduler::current() && !sched.threads[holder].done).then_some((holder, "holds it"))
        };
        match self {
            // SAFETY: the caller's promise.
            Primitive::Mutex => unsafe { Mutex::at(address as *mut _) }.owner().and_then(holds),
            Primitive::RwLock => {
                // SAFETY: the caller's promise.
                let lock = unsafe { RwLock::at(address as *mut _) };
                Wait::WriteLock(lock).holder(sched).and_then(holds)
            }
            Primitive::Condition => sched.left_waiting(address).map(|thread| (thread, "waits for it")),
            Primitive::SpinLock | Primitive::Semaphore | Primitive::Barrier => {
                let waits = |&index: &ThreadIndex| {
                    sched.threads[index].wait.concerns(address)
                        && sched.threads[index].deadline.is_none()
                        && !sched.can_run(index)
                };
                sched.alive.iter().find(waits).map(|thread| (thread, "waits for it"))
            }
        }
    }
}

/// A thread does what an event of this kind says to the primitive at `address`, if it is one. Ends the run if the
/// primitive is gone.
#[inline]
pub fn check(kind: EventKind, address: u64, pc: u64) {
    if kind.needs_primitive() {
        check_use(format_args!("{kind}"), address, pc);
    }
}

/// A thread comes to an operation. Ends the run if the primitive is gone.
///
/// The primitive is read here, where it is the thread's own fault if that fails. Later, the scheduler may read it while
/// another thread runs.
///
/// # Safety
/// If the operation needs a primitive, the program says that there is one.
#[inline]
pub unsafe fn arrive(kind: EventKind, address: u64, pc: u64) {
    if kind.needs_primitive() {
        check_use(format_args!("{kind}"), address, pc);
        // SAFETY: the caller's promise.
        unsafe { (address as *const u8).read_volatile() };
    }
}

/// No primitive is smaller.
const SMALLEST: u64 = 4;

fn check_use(what: fmt::Arguments<'_>, address: u64, pc: u64) {
    gone::check(address, SMALLEST, what, pc);
    let destroyed = DESTROYED.with(|destroyed| destroyed.as_ref()?.get(&address).copied());
    let Some((primitive, at)) = destroyed else { return };
    let (word, mark) = primitive.mark(address);
    // SAFETY: the program uses the primitive that was there, so its memory can be read.
    if unsafe { word.read_volatile() } == mark {
        let related = Related { role: Role::Destroyed, at };
        end_with(FailureKind::UseAfterDestroy, format!("{what} of a {primitive}"), related, pc);
    }
}

fn end_with(kind: FailureKind, message: String, related: Related<CodePlace>, pc: u64) -> ! {
    finish(&End::Failed(Failure { kind, message, at: here(pc), related: vec![related] }))
}

/// The program destroys the primitive at `address`. Whoever uses it from then on fails, and so does this call if
/// another thread still needs it.
///
/// # Safety
/// There is a primitive of this kind.
pub unsafe fn destroy(primitive: Primitive, address: u64, pc: u64) -> c_int {
    let pc = users_call(pc);
    check_use(format_args!("destroy"), address, pc);
    // SAFETY: the caller's promise.
    if let Some((user, uses)) = scheduler::with(|sched| unsafe { primitive.user(sched, address) }) {
        let id = scheduler::with(|sched| sched.threads[user].id.clone());
        let pending = log::pending(user);
        let at = CodePlace { thread: user, stack: pending.stack_index(), pc: pending.pc };
        let message = format!("a {primitive}, while thread {id} {uses}");
        end_with(FailureKind::DestroyedInUse, message, Related { role: Role::Used, at }, pc);
    }
    // SAFETY: the caller's promise.
    if primitive == Primitive::Mutex && !unsafe { Mutex::at(address as *mut _) }.is_free() {
        return libc::EBUSY;
    }
    let (word, mark) = primitive.mark(address);
    // SAFETY: the word is in the primitive, which nobody may use any more.
    unsafe { word.write_volatile(mark) };
    DESTROYED.with(|destroyed| destroyed.get_or_insert_default().insert(address, (primitive, here(pc))));
    0
}
