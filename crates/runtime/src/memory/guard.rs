//! Freed memory that nobody can access.
//!
//! An access by instrumented code is checked before it happens. Code that is not instrumented tells nothing: libc, other
//! libraries, and the parts of Rust's standard library that come compiled. In a *guarded* run a block lies on pages of its
//! own, and when it is freed they are *closed*: an access to them is a fault, which the handler of signals takes for the
//! use after free that it is. They are opened when the block leaves the quarantine.
//!
//! A call of the kernel for each free costs about a microsecond, and each block takes a page. So only some runs are
//! guarded. The blocks from before the first thread are there for all runs. The first few of them lie apart, too few to
//! slow down the forks of a program that has many.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::entry::log;
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

/// How many blocks from before the first thread lie apart.
const BLOCKS_OF_SERVER: u32 = 256;
/// How many blocks of a guarded run lie apart, be they live or in the quarantine: at most 64 MiB go into whole pages.
const BLOCKS_OF_RUN: u32 = 16 << 10;

/// The run is guarded. Handlers of signals ask.
static ON: AtomicBool = AtomicBool::new(false);
/// How many more blocks may lie apart.
static LEFT: Carrier<u32> = Carrier::new(BLOCKS_OF_SERVER);

pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A guarded run begins.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
    LEFT.set(BLOCKS_OF_RUN);
}

/// A run begins that is not guarded: none of its blocks lies apart.
pub fn stay_off() {
    LEFT.set(0);
}

/// Whether the next block is to lie apart. If so, there is one less to come.
#[inline]
pub fn takes_one() -> bool {
    let left = LEFT.get();
    if left > 0 {
        LEFT.set(left - 1);
    }
    left > 0
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
    let Some(pages) = pages else { return };
    if is_on() {
        open(&pages);
    }
    if is_on() || !scheduler::is_running() {
        LEFT.set(LEFT.get() + 1);
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
