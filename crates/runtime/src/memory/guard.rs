//! Freed memory that nobody can access.
//!
//! An access by instrumented code is checked before it happens. Code that is not instrumented tells nothing: libc, other
//! libraries, and the parts of Rust's standard library that come compiled. In a *guarded* run a block lies on pages of its
//! own, and when it is freed they are *closed*: an access to them is a fault, which the handler of signals takes for the
//! use after free that it is. They are opened when the block leaves the quarantine.
//!
//! A block that lies apart costs about 5 µs: for a page that the kernel makes, and for a call that closes it. Any other
//! costs 0.2 µs. So only some runs are guarded, and of many blocks only some lie apart in them: the first ones, and then
//! ever fewer, the more there are.
//!
//! The blocks from before the first thread are there for all runs, guarded or not. Each page of theirs that a run writes
//! to is copied, for 2.5 µs. So only the first few of them lie apart.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::entry::log;
use crate::os::system;
use crate::schedule::carrier::Carrier;

/// How many blocks from before the first thread lie apart.
const FIRST_OF_SERVER: u64 = 16;
/// How many blocks of a guarded run lie apart, before it is only some of them.
const FIRST_OF_RUN: u64 = 128;

/// The run is guarded. Handlers of signals ask.
static ON: AtomicBool = AtomicBool::new(false);
/// Which blocks lie apart.
static CHOICE: Carrier<Choice> = Carrier::new(Choice::First(FIRST_OF_SERVER));

#[derive(Clone, Copy)]
enum Choice {
    /// So many, and no others.
    First(u64),
    /// Some, after so many blocks that the run has had.
    Some(u64),
}

impl Choice {
    /// Whether the next block lies apart, and the choice for the one after it.
    fn next(self) -> (bool, Choice) {
        match self {
            Choice::First(0) => (false, self),
            Choice::First(left) => (true, Choice::First(left - 1)),
            Choice::Some(before) => {
                // All of the first ones, then one in two for as many again, then one in four for twice as many.
                let step = (before / FIRST_OF_RUN + 1).next_power_of_two();
                (before.is_multiple_of(step), Choice::Some(before + 1))
            }
        }
    }
}

pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A guarded run begins.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
    CHOICE.set(Choice::Some(0));
}

/// A run begins that is not guarded: none of its blocks lies apart.
pub fn stay_off() {
    CHOICE.set(Choice::First(0));
}

/// Whether the block that is allocated now is to lie apart.
#[inline]
pub fn chooses() -> bool {
    let (is_apart, choice) = CHOICE.get().next();
    CHOICE.set(choice);
    is_apart
}

/// The block with these pages of its own was freed.
pub fn close(pages: Option<Range<u64>>) {
    if let Some(pages) = pages.filter(|_| is_on()) {
        // The value of the program's last write is still to be read, and may be there.
        log::close_write();
        protect(&pages, libc::PROT_NONE);
    }
}

/// The block with these pages of its own leaves the quarantine.
pub fn give_back(pages: Option<Range<u64>>) {
    if let Some(pages) = pages.filter(|_| is_on()) {
        open(&pages);
    }
}

/// Makes the pages of a block accessible again.
pub fn open(pages: &Range<u64>) {
    protect(pages, libc::PROT_READ | libc::PROT_WRITE);
}

fn protect(pages: &Range<u64>, access: libc::c_int) {
    let call = [pages.start, pages.end - pages.start, access as u64, 0, 0, 0];
    // SAFETY: the pages are one freed block's alone. Only what uses it although it was freed notices. If the kernel
    // refuses, the block is not guarded.
    unsafe { system::call(libc::SYS_mprotect, call) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(mut choice: Choice, blocks: usize) -> usize {
        let mut next = || {
            let (is_apart, after) = choice.next();
            choice = after;
            is_apart
        };
        (0..blocks).filter(|_| next()).count()
    }

    /// Protects programs with many blocks: a guarded run of theirs must not take for ever.
    #[test]
    fn few_of_many_blocks_lie_apart() {
        assert_eq!(apart(Choice::First(16), 1000), 16);
        assert_eq!(apart(Choice::Some(0), 128), 128);
        assert_eq!(apart(Choice::Some(0), 256), 192);
        assert!(apart(Choice::Some(0), 1_000_000) < 1_000);
    }
}
