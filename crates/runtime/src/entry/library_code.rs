//! Whether an operation in library code counts as the program's own.
//!
//! Rust's standard library is compiled into the program. The tool finds its functions by their symbols and puts them
//! into one of two classes. What *quiet* code does is no event. What *passing* code does belongs to its caller: a `Vec`
//! that grows is the work of the function that pushes.

use std::hash::Hasher as _;
use std::sync::atomic::Ordering;

use threadbare_trace::{CodeClass, StackIndex};
use threadbare_wire::{CODE_BYTES, CODE_OFFSET, Code};

use crate::entry::{log, modules};
use crate::hash::Mix;
use crate::hooks::calls;
use crate::memory::layout::WIRE;
use crate::schedule::carrier::Carrier;

/// Whether each call stack is quiet, by its number; `None` if nobody has asked yet.
static QUIET: Carrier<Vec<Option<bool>>> = Carrier::new(Vec::new());

/// A cache of classes: addresses and their classes, by a hash of the address. No address is 0.
static LATEST: Carrier<[(u64, Option<CodeClass>); LATEST_LEN]> = Carrier::new([(0, None); LATEST_LEN]);
const LATEST_LEN: usize = 512;

fn table() -> &'static [Code] {
    let count = log::control().code.load(Ordering::Relaxed).min(CODE_BYTES / size_of::<Code>() as u64);
    // SAFETY: the region is mapped, and the tool writes to it only before the program starts.
    unsafe { std::slice::from_raw_parts((WIRE + CODE_OFFSET) as *const Code, count as usize) }
}

/// The class of the function around the call that returns to `pc`; `None` for the program's own.
fn class(pc: u64) -> Option<CodeClass> {
    let mut mix = Mix::default();
    mix.write_u64(pc);
    let slot = mix.finish() as usize % LATEST_LEN;
    LATEST.with(|latest| {
        if latest[slot].0 != pc {
            latest[slot] = (pc, find(pc));
        }
        latest[slot].1
    })
}

fn find(pc: u64) -> Option<CodeClass> {
    let address = pc.checked_sub(modules::program_base() + 1)?;
    let table = table();
    let after = table.partition_point(|code| code.start <= address);
    let code = table.get(after.checked_sub(1)?)?;
    if address < code.end { CodeClass::from_number(code.class) } else { None }
}

/// The code at `pc` is the program's own, or is not known to be the library's.
pub fn is_users(pc: u64) -> bool {
    class(pc).is_none()
}

/// The running thread's operation at `pc` is quiet: it is no event.
#[inline]
pub fn is_quiet(pc: u64) -> bool {
    is_there() && look(pc)
}

/// The program has Rust's standard library in it.
pub fn is_there() -> bool {
    log::control().code.load(Ordering::Relaxed) != 0
}

fn look(pc: u64) -> bool {
    match class(pc) {
        None => false,
        Some(CodeClass::Quiet) => true,
        Some(CodeClass::Passing) => is_quiet_stack(calls::current()),
    }
}

fn is_quiet_stack(node: StackIndex) -> bool {
    let known = QUIET.with(|known| {
        if known.len() <= node.index() {
            known.resize(node.index() + 1, None);
        }
        known[node.index()]
    });
    if let Some(quiet) = known {
        return quiet;
    }
    let quiet = match calls::caller(node) {
        // No code of the program's is on the stack yet.
        None => true,
        Some((pc, parent)) => match class(pc) {
            None => false,
            Some(CodeClass::Quiet) => true,
            Some(CodeClass::Passing) => is_quiet_stack(parent),
        },
    };
    QUIET.with(|known| known[node.index()] = Some(quiet));
    quiet
}
