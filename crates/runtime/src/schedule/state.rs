//! The state of the program, as one number.
//!
//! A thread's own state follows from what it has read and from the results of its operations. So a hash of that history
//! stands for it. The state that threads share is added: the contents of shared memory that was accessed, wake-ups on
//! their way, virtual time, and the order of output. The state of locks and semaphores follows from the histories.
//!
//! What a program learns past the runtime is not part of it: files that threads share, input read with stdio.

use std::collections::HashMap;

use threadbare_trace::{EventKind, ThreadId, ThreadIndex};

use crate::entry::log::{self, Entry};
use crate::hash::{Hasher, mix};
use crate::os::{randomness, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{self, Operation, Scheduler};
use crate::schedule::spinning;

#[derive(Default)]
struct State {
    /// By thread; begins as the thread's id.
    histories: Vec<u64>,
    /// The sum of what threads that have ended add to the state.
    ended: u64,
    /// Shared memory that was accessed, in pieces of eight bytes.
    cells: HashMap<u64, Cell, Hasher>,
    /// The sum of all the cells' terms.
    contents: u64,
    /// Accesses that were under way when the contents were last looked at.
    under_way: Vec<(u64, u64)>,
    /// A hash of input and output, in order.
    outside: u64,
    /// Bytes printed so far.
    printed: u64,
}

/// Eight bytes of memory.
#[derive(Default)]
struct Cell {
    /// The bytes that were accessed, a bit each.
    accessed: u8,
    term: u64,
}

static STATE: Carrier<Option<State>> = Carrier::new(None);

/// Begins to keep track, with the threads there are.
pub fn start<'a>(threads: impl Iterator<Item = &'a ThreadId>) {
    let histories = threads.map(beginning).collect();
    STATE.with(|state| *state = Some(State { histories, ..State::default() }));
}

/// Whether it keeps track.
#[inline(always)]
fn is_on() -> bool {
    STATE.with(|state| state.is_some())
}

fn with<R>(work: impl FnOnce(&mut State) -> R) -> Option<R> {
    STATE.with(|state| state.as_mut().map(work))
}

/// What a thread's history begins with.
fn beginning(id: &ThreadId) -> u64 {
    mix(id.path().iter().map(|&part| u64::from(part)))
}

/// A thread is created.
pub fn begins(id: &ThreadId) {
    with(|state| state.histories.push(beginning(id)));
}

/// Thread `me` does an operation: what it reads there is part of its history.
#[inline(always)]
pub fn operates(me: ThreadIndex, operation: &Operation) {
    if is_on() && operation.kind.is_access() {
        accesses(me, operation);
    }
}

/// An event of thread `me` is being recorded.
#[inline(always)]
pub fn event(me: ThreadIndex, entry: &Entry) {
    with(|state| state.event(me, entry));
}

/// The running thread learnt a value that no event tells of.
pub fn learns(value: u64) {
    spinning::learns();
    with(|state| state.remember(scheduler::current(), [value]));
}

/// The running thread was given these bytes from outside.
///
/// # Safety
/// They can be read.
pub unsafe fn learns_bytes(start: u64, len: u64) {
    spinning::learns();
    if is_on() {
        // SAFETY: the caller's promise.
        learns(unsafe { contents(start, len) });
    }
}

/// Thread `index` has ended: its history is whole.
pub fn ends(index: ThreadIndex) {
    with(|state| state.ended = state.ended.wrapping_add(mix([state.histories[index.index()]])));
}

/// The state that the program is in, between two operations.
pub fn number(sched: &Scheduler) -> u64 {
    settle();
    let printed = bytes_printed();
    let number = with(|state| {
        state.look_at_output(scheduler::current(), printed);
        let alive = sched.alive.iter().map(|index| state.thread(sched, index)).fold(0, u64::wrapping_add);
        let wakeups = state.wakeups(sched);
        let left = [sched.follower.spurious_left(), sched.follower.outlastings_left()];
        let shared = [sched.now, sched.signals, randomness::position(), wakeups].into_iter().chain(left);
        mix([state.contents, state.outside, alive, state.ended].into_iter().chain(shared))
    });
    number.unwrap_or(0)
}

/// Reads the memory that was accessed since this was last called, while it is still there. Nothing is borrowed while it
/// reads: if the memory is gone, a handler finds all in order.
pub fn settle() {
    for (start, len) in with(|state| std::mem::take(&mut state.under_way)).into_iter().flatten() {
        let end = start + len;
        for granule in start >> 3..end.div_ceil(8) {
            let (low, high) = (start.max(granule << 3), end.min((granule + 1) << 3));
            let accessed = (((1u16 << (high - low)) - 1) << (low & 7)) as u8;
            // SAFETY: the program has accessed a byte of these eight, which are in one page with it. Whoever takes
            // memory away calls this before.
            let word = unsafe { ((granule << 3) as *const u64).read_volatile() };
            with(|state| state.look(granule, accessed, word));
        }
    }
}

/// Accesses that are under way are not read back: the memory may not be there.
pub fn forget_accesses() {
    with(|state| state.under_way.clear());
}

/// Thread `me` accesses memory.
#[cold]
fn accesses(me: ThreadIndex, operation: &Operation) {
    with(|state| state.under_way.push((operation.object, operation.size())));
    if matches!(operation.kind, EventKind::Read | EventKind::AtomicLoad | EventKind::AtomicRmw) {
        // SAFETY: whoever made the operation promised that the program reads the same bytes next. If it cannot, the
        // fault is the program's own; nothing is borrowed here that its handler could find in use.
        let seen = unsafe { contents(operation.object, operation.size()) };
        with(|state| state.remember(me, [seen]));
    }
}

impl State {
    #[cold]
    fn event(&mut self, me: ThreadIndex, entry: &Entry) {
        let how = entry.kind as u64 | (entry.outcome as u64) << 8;
        self.remember(me, [how, entry.pc, entry.object, entry.size, entry.value]);
        if entry.kind == EventKind::Io {
            self.leaves(me);
        }
    }

    fn remember<const N: usize>(&mut self, me: ThreadIndex, words: [u64; N]) {
        let history = &mut self.histories[me.index()];
        *history = mix([*history].into_iter().chain(words));
    }

    /// Something left the program at this point of thread `me`'s history.
    fn leaves(&mut self, me: ThreadIndex) {
        self.outside = mix([self.outside, self.histories[me.index()]]);
    }

    /// The eight bytes of memory `granule` hold `word`, and these of them were accessed.
    fn look(&mut self, granule: u64, accessed: u8, word: u64) {
        let cell = self.cells.entry(granule).or_default();
        cell.accessed |= accessed;
        let term = cell.of(granule, word);
        self.contents = self.contents.wrapping_sub(cell.term).wrapping_add(term);
        cell.term = term;
    }

    /// Notes that thread `me` printed, if it did.
    fn look_at_output(&mut self, me: ThreadIndex, printed: u64) {
        if printed != self.printed {
            self.printed = printed;
            self.leaves(me);
        }
    }

    fn thread(&self, sched: &Scheduler, index: ThreadIndex) -> u64 {
        let thread = &sched.threads[index];
        let cancelled = u64::from(thread.cancellation.is_due());
        mix([
            self.histories[index.index()],
            cancelled,
            thread.signals,
            thread.deadline.map_or(0, |deadline| deadline.wrapping_add(1)),
        ])
    }

    /// Wake-ups on their way: each is known by who may have it.
    fn wakeups(&self, sched: &Scheduler) -> u64 {
        let tokens = sched.wakeups.tokens().iter().map(|token| {
            let waiting = sched.alive.iter().filter(|&index| sched.threads[index].wait.may_take(token));
            let who = waiting.map(|index| self.histories[index.index()]).fold(0, u64::wrapping_add);
            mix([token.address, u64::from(token.mask), who])
        });
        tokens.fold(0, u64::wrapping_add)
    }
}

impl Cell {
    /// The term for these eight bytes. Those that were not accessed do not count.
    fn of(&self, granule: u64, word: u64) -> u64 {
        let bytes = (0..8).filter(|byte| self.accessed >> byte & 1 == 1);
        let mask = bytes.fold(0, |mask, byte| mask | 0xff << (byte * 8));
        mix([granule, u64::from(self.accessed), word & mask])
    }
}

/// One number for `len` bytes of memory.
///
/// # Safety
/// They can be read.
unsafe fn contents(start: u64, len: u64) -> u64 {
    // SAFETY: the caller promises that these bytes can be read.
    let words =
        (start..start + len).step_by(8).map(|at| unsafe { log::read_memory(at, (start + len - at).min(8)) });
    mix([len].into_iter().chain(words))
}

/// What the program has printed on standard output, with what still is in its buffer.
fn bytes_printed() -> u64 {
    /// The beginning of glibc's `FILE`, which its inline functions have made part of the ABI.
    #[repr(C)]
    struct Stream {
        flags: u64,
        read: [u64; 3],
        write_base: u64,
        write_position: u64,
    }
    unsafe extern "C" {
        static stdout: *const Stream;
    }
    // SAFETY: libc keeps a stream there, or null once it is closed.
    let stream = unsafe { stdout.as_ref() };
    let buffered = stream.map_or(0, |stream| stream.write_position.wrapping_sub(stream.write_base));
    buffered.wrapping_add(bytes_flushed())
}

/// How much of that the kernel has.
pub fn bytes_flushed() -> u64 {
    system::status(libc::STDOUT_FILENO).map_or(0, |status| status.st_size as u64)
}
