//! Call stacks of the program's threads.
//!
//! The compiler calls `__tsan_func_entry` and `__tsan_func_exit`, which keep a shadow call stack for each thread. A
//! call stack gets a number when the first event happens in it. The numbers are nodes of a tree in the shared file. A
//! frame remembers its node, so an event in a known stack costs one load.

use std::arch::naked_asm;
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};

use threadbare_trace::{StackIndex, ThreadIndex};
use threadbare_wire::{MAX_THREADS, Stack};

use crate::entry::intercept::{ENTRY, export};
use crate::entry::{library_code, log, modules};
use crate::hash::Hasher;
use crate::memory::layout::{self, CALLS, CALLS_SLOT};
use crate::schedule::carrier::Carrier;
use crate::time::work;

/// One activation of an instrumented function.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Call {
    /// Where it returns to.
    pc: u64,
    /// The stack pointer at its entry. A function that is entered with a higher one was called after a `longjmp`.
    stack_pointer: u64,
    /// The number of the call stack up to here; empty when it has none yet.
    node: StackIndex,
}

/// The running thread's first free slot; null while the runtime is inactive. A handler reads it too, whatever it has
/// interrupted, so it is an atomic.
static TOP: AtomicPtr<Call> = AtomicPtr::new(std::ptr::null_mut());

#[derive(Default)]
struct Tree {
    /// The last one that was given a number.
    last: StackIndex,
    children: HashMap<(StackIndex, u64), StackIndex, Hasher>,
}

impl Tree {
    fn publish(&self) {
        log::control().stacks.store(self.last.next().number(), Ordering::Relaxed);
    }
}

static TREE: Carrier<Option<Tree>> = Carrier::new(None);

/// A thread's place on its shadow call stack while another runs.
#[derive(Clone, Copy)]
pub struct Saved(*mut Call);

#[cfg(test)]
impl Saved {
    /// Of a thread that runs nothing.
    pub fn none() -> Saved {
        Saved(std::ptr::null_mut())
    }
}

/// Left unmapped at the end of each slot.
const GUARD: u64 = 4096;

/// A fault at this address means that a thread's calls nest deeper than its slot is long: 8 million calls.
///
/// That takes a stack of more than 128 MiB, since a frame has at least 16 bytes and an entry here has 24. Threads with
/// a stack of the runtime's have no such stack. Others may: the main thread without a limit, or a thread with a stack
/// of the program's. To compare with the end at every call would cost time, and a page that is not there costs none.
pub fn is_overflow(address: u64) -> bool {
    const END: u64 = CALLS + MAX_THREADS as u64 * CALLS_SLOT;
    const _: () = assert!(GUARD > size_of::<Call>() as u64);
    (CALLS..END).contains(&address)
}

/// An empty shadow call stack for thread `index`; `None` when there is no memory for it.
pub fn create(index: ThreadIndex) -> Option<Saved> {
    let base = CALLS + u64::from(index.number()) * CALLS_SLOT;
    if !layout::reserve(base, CALLS_SLOT - GUARD) {
        return None;
    }
    let bottom = base as *mut Call;
    // SAFETY: just mapped. The bottom entry is never popped: no stack pointer is above it.
    unsafe { bottom.write(Call { pc: 0, stack_pointer: u64::MAX, node: StackIndex::EMPTY }) };
    // SAFETY: the slot is longer than two entries.
    Some(Saved(unsafe { bottom.add(1) }))
}

/// Makes another thread's stack the current one; returns the one that was.
pub fn exchange(load: Saved) -> Saved {
    let before = TOP.load(Ordering::Relaxed);
    TOP.store(load.0, Ordering::Relaxed);
    Saved(before)
}

export! {
    #[unsafe(naked)]
    unsafe extern "C" fn __tsan_func_entry(return_address: u64) {
        naked_asm!("lea rsi, [rsp + 8]", "mov rdx, [rsp]", "jmp {}", sym enter)
    }
}

extern "C" fn enter(return_address: u64, stack_pointer: u64, inside: u64) {
    let mut top = TOP.load(Ordering::Relaxed);
    if top.is_null() {
        return;
    }
    // SAFETY: `top` points into the running thread's slot, above an entry that stops the loop: `create` wrote it. At
    // the end of the slot the write faults, and the run ends (see `is_overflow`).
    unsafe {
        while (*top.sub(1)).stack_pointer <= stack_pointer {
            top = top.sub(1);
        }
        top.write(Call { pc: return_address, stack_pointer, node: StackIndex::EMPTY });
        TOP.store(top.add(1), Ordering::Relaxed);
    }
    work::does(1);
    if log::records_functions() {
        log::function(true, inside);
    }
}

export! {
    #[unsafe(naked)]
    unsafe extern "C" fn __tsan_func_exit() {
        naked_asm!("mov rdi, [rsp]", "jmp {}", sym leave)
    }
}

extern "C" fn leave(inside: u64) {
    let top = TOP.load(Ordering::Relaxed);
    if top.is_null() {
        return;
    }
    if log::records_functions() {
        log::function(false, inside);
    }
    // SAFETY: `top` points into the running thread's slot, above the bottom entry, which `create` wrote and which
    // stays.
    unsafe {
        if (*top.sub(1)).stack_pointer != u64::MAX {
            TOP.store(top.sub(1), Ordering::Relaxed);
        }
    }
}

/// The number of the running thread's call stack.
pub fn current() -> StackIndex {
    number(child)
}

/// The same, for a handler that ends the run. It may have interrupted anything, so it borrows and allocates nothing:
/// calls that have no number yet get one in the shared file alone. That is all the tool reads.
pub fn last() -> StackIndex {
    number(|parent, pc| {
        let stacks = &log::control().stacks;
        let node = StackIndex::new(stacks.load(Ordering::Relaxed));
        if !log::set_stack(node, Stack { pc, parent: parent.number(), unused: 0 }) {
            return parent;
        }
        stacks.store(node.next().number(), Ordering::Relaxed);
        node
    })
}

/// The number of the running thread's call stack; `child` gives numbers to calls that have none.
#[inline(always)]
fn number(child: impl Fn(StackIndex, u64) -> StackIndex) -> StackIndex {
    let top = TOP.load(Ordering::Relaxed);
    if top.is_null() {
        return StackIndex::EMPTY;
    }
    // SAFETY: entries below `top` down to the bottom one are this thread's.
    unsafe {
        let mut known = top.sub(1);
        while (*known).node.is_empty() && (*known).stack_pointer != u64::MAX {
            known = known.sub(1);
        }
        let mut node = (*known).node;
        while known < top.sub(1) {
            known = known.add(1);
            node = child(node, (*known).pc);
            (*known).node = node;
        }
        node
    }
}

/// The number of the call stack that a call which returns to `pc` makes of `parent`.
pub fn child(parent: StackIndex, pc: u64) -> StackIndex {
    TREE.with(|tree| {
        let tree = tree.get_or_insert_default();
        if let Some(&node) = tree.children.get(&(parent, pc)) {
            return node;
        }
        let node = tree.last.next();
        if !log::set_stack(node, Stack { pc, parent: parent.number(), unused: 0 }) {
            return parent;
        }
        tree.last = node;
        tree.children.insert((parent, pc), node);
        tree.publish();
        node
    })
}

/// Tells the tool how many stacks there are. At the start of a run that takes back what earlier runs added.
pub fn publish() {
    TREE.with(|tree| tree.get_or_insert_default().publish());
}

/// The return address of call stack `node`'s innermost call, and the stack of the function it returns to.
pub fn caller(node: StackIndex) -> Option<(u64, StackIndex)> {
    if node.is_empty() {
        return None;
    }
    let stack = log::stack(node);
    // This library calls the outermost function. That call is not the program's.
    (!modules::is_ours(stack.pc)).then_some((stack.pc, StackIndex::new(stack.parent)))
}

/// The call site of the running thread's innermost instrumented function; 0 if there is none.
pub fn innermost() -> u64 {
    caller(current()).map_or(0, |(pc, _)| pc)
}

/// The stack pointer of the running thread's innermost instrumented function.
pub fn innermost_stack_pointer() -> u64 {
    let top = TOP.load(Ordering::Relaxed);
    // SAFETY: entries below `top` down to the bottom one are this thread's.
    if top.is_null() { u64::MAX } else { unsafe { (*top.sub(1)).stack_pointer } }
}

/// Where the running thread's own part of the stack ends and the runtime's begins, if that is known: its caller is the
/// program, or a library.
pub fn users_stack_pointer() -> Option<u64> {
    entry_caller().map(|_| ENTRY.load(Ordering::Relaxed))
}

/// Where the last call of an exported function returns to, if that is known and not in this library.
pub fn entry_caller() -> Option<u64> {
    let entry = ENTRY.load(Ordering::Relaxed);
    if entry == 0 || entry >= innermost_stack_pointer() {
        return None;
    }
    // SAFETY: the caller's return address, on this thread's stack: the call has not returned yet, or what was there has
    // been written over since, which is no harm.
    let caller = unsafe { (entry as *const u64).read_volatile() };
    (!modules::is_ours(caller)).then_some(caller)
}

/// The running thread goes on inside a call that it made when the stack was there, if that is known.
pub fn go_on_in_call(users_stack_pointer: Option<u64>) {
    ENTRY.store(users_stack_pointer.unwrap_or(0), Ordering::Relaxed);
}

/// The program has called a function that does not record where the stack was.
pub fn enter_unseen() {
    ENTRY.store(0, Ordering::Relaxed);
}

/// Up to three return addresses in the program's own code, innermost first: `pc`, and those of call stack `node`.
pub fn users_calls(pc: u64, node: StackIndex) -> [u64; 3] {
    let mut users = [0; 3];
    let outer = std::iter::successors(caller(node), |&(_, parent)| caller(parent)).map(|(pc, _)| pc);
    let calls = std::iter::once(pc).chain(outer).filter(|&pc| library_code::is_users(pc));
    for (slot, pc) in users.iter_mut().zip(calls) {
        *slot = pc;
    }
    users
}
